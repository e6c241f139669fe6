"""The promises over a real process, real sockets and a real SQLite file, one story each."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from forewarn.testing.processes import PATH, ServiceProcess, request

pytestmark = pytest.mark.end_to_end

WEB = ("127.0.2.10", "127.0.2.11", "127.0.2.12")
BATCH = "127.0.2.20"
ROLE = "127.0.2.30"
ALONE = "127.0.2.40"
SPOT = "127.0.2.50"
QUIET = "127.0.2.60"
STRANGER = "127.0.2.99"

FLEET = """
[periods]
recovery = "1s"

[[scope]]
name = "web"
kind = "availability-set"
resource_group = "rg1"
update_domains = 3
user_operations_max = 2
enabled = "always"
  [[scope.machine]]
  name = "web-0"
  address = "127.0.2.10"
  host = "host-a"
  [[scope.machine]]
  name = "web-1"
  address = "127.0.2.11"
  host = "host-b"
  [[scope.machine]]
  name = "web-2"
  address = "127.0.2.12"
  host = "host-a"

[[scope]]
name = "batch"
kind = "scale-set"
terminate_notice = "5m"
enabled = "always"
  [[scope.machine]]
  name = "batch_0"
  address = "127.0.2.20"

[[scope]]
name = "roles"
kind = "cloud-service"
enabled = "always"
  [[scope.machine]]
  name = "FrontEnd_IN_0"
  address = "127.0.2.30"

[[scope]]
name = "alone"
enabled = "always"
  [[scope.machine]]
  name = "alone"
  address = "127.0.2.40"

[[scope]]
name = "spot"
spot = true
enabled = "always"
  [[scope.machine]]
  name = "spot"
  address = "127.0.2.50"

[[scope]]
name = "quiet"
  [[scope.machine]]
  name = "quiet"
  address = "127.0.2.60"
"""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path / "data", FLEET) as running:
        yield running


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Until something is so; a story that takes longer has failed."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def statuses(service: ServiceProcess, address: str) -> list[str]:
    return [event["EventStatus"] for event in service.document(address)["Events"]]


def journal(service: ServiceProcess, event_id: str) -> list[str]:
    done = service.run("journal", "--event", event_id, "--json")
    assert done.returncode == 0, done.stderr
    found: Any = json.loads(done.stdout)
    return [entry["what"] for entry in found["entries"]]


def test_the_life_of_an_event(service: ServiceProcess) -> None:
    """Keeps S1, S7, S8, S9, S14, S16, S23, N6: from nothing to nothing, as guests and operators see it."""
    empty = service.get(WEB[0])
    assert (empty.status, empty.body) == (200, b'{"DocumentIncarnation":1,"Events":[]}')

    (event,) = service.announce("Freeze", "web-0", "--duration", "1s")
    shown = service.document(WEB[2])
    (notice,) = shown["Events"]
    assert shown["DocumentIncarnation"] == 2
    assert notice == {
        "EventId": event["event_id"],
        "EventStatus": "Scheduled",
        "EventType": "Freeze",
        "ResourceType": "VirtualMachine",
        "Resources": ["web-0"],
        "NotBefore": notice["NotBefore"],
        "Description": "Host server is undergoing maintenance.",
        "EventSource": "Platform",
        "DurationInSeconds": 1,
    }
    assert list(notice)[:6] == [
        "EventId", "EventStatus", "EventType", "ResourceType", "Resources", "NotBefore",
    ]  # fmt: skip
    assert parsedate_to_datetime(notice["NotBefore"]) == datetime.fromisoformat(event["not_before"])
    assert service.document(ALONE)["Events"] == [], "a neighbor in another scope is not told"

    approved = service.approve(WEB[1], event["event_id"])
    assert (approved.status, approved.body) == (200, b"")
    wait_for(lambda: service.document(WEB[0])["Events"] == [])

    record = service.json("show", event["event_id"])
    assert record["status"] == "Completed"
    assert record["approved"]["by"] == "web-1"
    assert record["approved"]["address"] == WEB[1]
    assert record["notice_promised_seconds"] == 900
    instants = [
        datetime.fromisoformat(record[name])
        for name in ("announced_at", "readable_at", "started_at", "ended_at")
    ]
    assert instants == sorted(instants)
    assert service.document(WEB[0])["DocumentIncarnation"] == 4, "announced, started, gone"
    assert journal(service, event["event_id"]) == [
        "announced", "readable", "approved", "started", "completed",
    ]  # fmt: skip


def test_each_version_shows_what_it_knew(service: ServiceProcess) -> None:
    """Keeps S3, S4, S5: members, hidden types, underscore and header by api-version."""
    service.announce("Reboot", "batch_0")
    service.announce("Preempt", "batch_0")
    service.announce("Terminate", "batch_0")
    service.announce("Reboot", "FrontEnd_IN_0")

    def read(version: str, address: str = BATCH) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = service.get(address, f"api-version={version}").json["Events"]
        return events

    assert [e["Resources"] for e in read("2017-03-01")] == [["_batch_0"]]
    assert [e["Resources"] for e in read("2017-03-01", ROLE)] == [["FrontEnd_IN_0"]]
    assert [e["EventType"] for e in read("2017-08-01")] == ["Reboot"]
    assert [e["EventType"] for e in read("2017-11-01")] == ["Reboot", "Preempt"]
    assert [e["EventType"] for e in read("2019-01-01")] == ["Reboot", "Preempt", "Terminate"]
    for version, last in {
        "2019-01-01": "NotBefore",
        "2019-04-01": "Description",
        "2019-08-01": "EventSource",
        "2020-07-01": "DurationInSeconds",
    }.items():
        assert {list(event)[-1] for event in read(version)} == {last}

    base = service.metadata[0]
    old = request(base, "GET", f"{PATH}?api-version=2017-03-01", source=BATCH)
    new = request(base, "GET", f"{PATH}?api-version=2017-08-01", source=BATCH)
    assert (old.status, new.status) == (200, 400)
    assert service.get(BATCH, "").status == 400
    assert service.get(BATCH, "api-version=latest").status == 400
    assert service.get(BATCH, "api-version=2024-07-09").status == 404


def test_a_request_that_was_passed_on_is_refused(service: ServiceProcess) -> None:
    """Keeps S6: no header, or a header that a proxy adds, and nothing is told."""
    target = f"{PATH}?api-version=2020-07-01"
    base = service.metadata[0]

    plain = request(base, "GET", target, source=ALONE)
    forwarded = request(
        base,
        "GET",
        target,
        source=ALONE,
        headers={"Metadata": "true", "X-Forwarded-For": "10.0.0.1"},
    )
    stranger = service.get(STRANGER)

    assert plain.status == 400
    assert plain.body == b'{ "error": "Bad request: . Required metadata header not specified" }'
    assert forwarded.status == 400
    assert stranger.status == 403
    assert b"127.0.2.99" in stranger.body


@pytest.mark.parametrize(
    ("arguments", "minimum"),
    [
        (("Freeze", "alone"), timedelta(minutes=15)),
        (("Reboot", "alone", "--source", "user"), timedelta(minutes=15)),
        (("Redeploy", "alone"), timedelta(minutes=10)),
        (("Preempt", "spot"), timedelta(seconds=30)),
        (("Terminate", "batch_0"), timedelta(minutes=5)),
        (("Redeploy", "alone", "--cause", "predicted-failure"), timedelta(days=7)),
        (("Reboot", "alone", "--notice", "20m"), timedelta(minutes=20)),
    ],
)
def test_the_minimum_notice_is_true(
    service: ServiceProcess, arguments: tuple[str, ...], minimum: timedelta
) -> None:
    """Keeps S11, S12: NotBefore is never earlier than the minimum after being readable."""
    (event,) = service.announce(*arguments)

    wait_for(lambda: service.json("show", event["event_id"])["readable_at"] is not None)
    record = service.json("show", event["event_id"])
    readable_at = datetime.fromisoformat(record["readable_at"])
    notice = datetime.fromisoformat(record["not_before"]) - readable_at
    assert minimum <= notice <= minimum + timedelta(seconds=5)


def test_less_notice_than_the_minimum_is_refused(service: ServiceProcess) -> None:
    """Keeps S11: an operator may give more notice, never less."""
    refused = service.run("announce", "Reboot", "alone", "--notice", "14m59s")

    assert refused.returncode == 3
    assert "minimum" in refused.stderr
    assert service.document(ALONE)["DocumentIncarnation"] == 1


def test_without_approval_it_starts_when_its_notice_is_over(service: ServiceProcess) -> None:
    """Keeps S17: at NotBefore, and not before it."""
    (event,) = service.announce("Preempt", "spot")
    not_before = datetime.fromisoformat(event["not_before"])

    wait_for(lambda: statuses(service, SPOT) == ["Started"], seconds=45)
    assert datetime.now(UTC) >= not_before
    record = service.json("show", event["event_id"])
    assert datetime.fromisoformat(record["started_at"]) >= not_before
    assert record["notice_given_seconds"] >= 30


def test_the_first_request_enables_a_scope(service: ServiceProcess) -> None:
    """Keeps S13: before it, nothing is announced; operations run at once, without an event."""
    refused = service.run("announce", "Reboot", "quiet")
    assert refused.returncode == 3
    assert "not enabled" in refused.stderr
    assert "--unannounced" in refused.stderr

    ran = service.json("announce", "Freeze", "quiet", "--duration", "1s", "--unannounced")
    assert ran["events"] == []
    assert [event["status"] for event in ran["unannounced"]] == ["Started"]

    assert service.document(QUIET) == {"DocumentIncarnation": 1, "Events": []}
    service.restart()
    (event,) = service.announce("Reboot", "quiet")
    assert event["status"] == "Scheduled"


def test_machines_of_two_update_domains_are_never_in_one_event(service: ServiceProcess) -> None:
    """Keeps S15: web-0 and web-2 share a host, not an update domain; each has its own event."""
    events = service.announce("Freeze", "web-0", "web-1", "web-2", "--duration", "2s")

    assert [event["resources"] for event in events] == [["web-0"], ["web-1"], ["web-2"]]
    starts = [datetime.fromisoformat(event["not_before"]) for event in events]
    assert starts == sorted(starts)
    assert len(set(starts)) == 3


def test_the_limit_of_user_operations(service: ServiceProcess) -> None:
    """Keeps S19: the third is refused, clearly, and nothing changes."""
    service.announce("Reboot", "web-0", "--source", "user")
    service.announce("Redeploy", "web-1", "--source", "user")

    refused = service.run("announce", "Reboot", "web-2", "--source", "user")

    assert refused.returncode == 3
    assert "allows 2 user operations" in refused.stderr
    assert len(service.document(WEB[0])["Events"]) == 2


def test_an_approval_of_something_unknown_approves_nothing(service: ServiceProcess) -> None:
    """Keeps S16: all of the ids, or none; repeated and late ones are fine; the 2017 form works."""
    (event,) = service.announce("Freeze", "alone", "--duration", "1s")
    known, unknown = event["event_id"], "00000000-0000-0000-0000-000000000000"

    assert service.approve(ALONE, known, unknown).status == 400
    assert service.approve(BATCH, known).status == 400, "another scope's event is unknown here"
    assert service.json("show", known)["approved"] is None

    old_form = {"DocumentIncarnation": "2", "StartRequests": [{"EventId": known.lower()}]}
    reply = request(
        service.metadata[0],
        "POST",
        f"{PATH}?api-version=2017-03-01",
        source=ALONE,
        body=json.dumps(old_form).encode(),
    )
    assert reply.status == 200
    assert service.approve(ALONE, known).status == 200
    wait_for(lambda: service.document(ALONE)["Events"] == [])
    assert service.approve(ALONE, known).status == 200, "late, and still not an error"


def test_a_guest_may_wait_for_the_next_document(service: ServiceProcess) -> None:
    """Keeps N4: a long poll is answered when the document changes."""
    tag = service.get(ALONE).headers["etag"]
    headers = {"Metadata": "true", "If-None-Match": tag}
    target = f"{PATH}?api-version=2020-07-01&wait=1"
    assert request(service.metadata[0], "GET", target, source=ALONE, headers=headers).status == 304

    announcing = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "forewarn",
            "announce",
            "Reboot",
            "alone",
            "--data",
            str(service.data),
        ],
        stdout=subprocess.DEVNULL,
    )
    reply = request(
        service.metadata[0],
        "GET",
        target.replace("wait=1", "wait=60"),
        source=ALONE,
        headers=headers,
    )
    assert announcing.wait(30) == 0
    assert reply.status == 200
    assert len(reply.json["Events"]) == 1


def test_operators_cancel_postpone_approve_and_resolve(service: ServiceProcess) -> None:
    """Keeps S23: what the operator did is in the record."""
    (event,) = service.announce("Reboot", "alone")
    postponed = service.run("postpone", event["event_id"], "--by", "1h")
    assert postponed.returncode == 0, postponed.stderr
    record = service.json("show", event["event_id"])
    moved = datetime.fromisoformat(record["not_before"])
    assert moved - datetime.fromisoformat(event["not_before"]) == timedelta(hours=1)
    assert len(record["not_before_earlier"]) == 1

    too_far = service.run("postpone", event["event_id"], "--by", "24h")
    assert (too_far.returncode, "at most" in too_far.stderr) == (3, True)

    assert service.run("cancel", event["event_id"]).returncode == 0
    assert service.document(ALONE)["Events"] == []
    assert service.json("show", event["event_id"])["status"] == "Canceled"

    (hanging,) = service.announce("Redeploy", "alone")
    assert service.run("approve", hanging["event_id"]).returncode == 0
    wait_for(lambda: statuses(service, ALONE) == ["Started"])
    assert service.run("resolve", hanging["event_id"], "--failed").returncode == 0
    record = service.json("show", hanging["event_id"])
    assert (record["status"], record["outcomes"][0]["result"]) == ("Completed", "failed")


def test_the_fleet_is_read_again_on_sighup(service: ServiceProcess) -> None:
    """A machine added is known at once; a file with errors changes nothing."""
    assert service.get(STRANGER).status == 403
    addition = (
        '\n[[scope]]\nname = "new"\n  [[scope.machine]]\n  name = "new"\n  address = "127.0.2.99"\n'
    )
    service.fleet.write_text(FLEET + addition)

    service.signal(signal.SIGHUP)
    wait_for(lambda: service.get(STRANGER).status == 200)

    service.fleet.write_text(FLEET.replace("availability-set", "availability-sett"))
    service.signal(signal.SIGHUP)
    wait_for(lambda: "availability-sett" in service.log.read_text())
    assert service.get(STRANGER).status == 200

    service.fleet.write_text(FLEET)
    applied = service.run("fleet", "apply", str(service.fleet))
    assert applied.returncode == 0, applied.stderr
    assert service.get(STRANGER).status == 403


def test_a_second_service_on_the_same_data_is_refused(service: ServiceProcess) -> None:
    second = subprocess.run(
        service.command, capture_output=True, text=True, timeout=30, check=False
    )

    assert second.returncode == 3
    assert "held by another process" in second.stderr
    assert "Traceback" not in second.stderr
    assert service.get(ALONE).status == 200


def test_it_stops_cleanly_and_says_so(service: ServiceProcess) -> None:
    assert service.stop() == 0

    assert not (service.data / "endpoint.json").exists()
    unreachable = service.run("events")
    assert unreachable.returncode == 6
    assert "forewarn serve" in unreachable.stderr
    assert re.search(r"\bERROR\b|Traceback", service.log.read_text()) is None


def test_the_secrets_are_for_their_owner(service: ServiceProcess) -> None:
    public = {"ca.pem", "ca-bundle.pem", "fleet.toml", "serve.log"}
    for file in service.data.iterdir():
        assert file.name in public or file.stat().st_mode & 0o777 == 0o600, file
    assert {"operator.json", "ca.key", "server.pem", "token.key", "forewarn.db"} <= {
        file.name for file in service.data.iterdir()
    }
    target = "/fabric/v1/events"
    assert service.ask("GET", target).status == 401
    wrong = {"Authorization": "Bearer wrong"}
    assert service.ask("GET", target, headers=wrong).status == 401


def test_the_probes_and_the_metrics_need_no_token(service: ServiceProcess) -> None:
    service.announce("Reboot", "alone")

    assert service.ask("GET", "/healthz").status == 200
    assert service.ask("GET", "/readyz").status == 200
    metrics = service.ask("GET", "/metrics").body.decode()
    assert 'forewarn_events{status="Scheduled",type="Reboot"} 1.0' in metrics
