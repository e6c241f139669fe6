"""Faults of a real `forewarn emulate`: over its API and its command line, felt on real sockets."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import get_args

import pytest

from forewarn.cli import faults as cli_faults
from forewarn.cli.main import main
from forewarn.testing.emulators import EmulatorProcess
from forewarn.testing.processes import PATH, VERSION, ServiceProcess, request
from forewarn.testing.receivers import Received, Receiver
from forewarn.web.faults import FaultKind

pytestmark = pytest.mark.end_to_end

FAULTS = "/emulator/faults"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def started(
    tmp_path_factory: pytest.TempPathFactory, receiver: Receiver
) -> Iterator[EmulatorProcess]:
    options = ("--availability-set", "web:3", "--vm", "db", "--clock", "manual")
    allow = ("--webhook-allow", f"127.0.0.1:{receiver.port}")
    log = tmp_path_factory.mktemp("faults") / "log"
    with EmulatorProcess(log, *options, *allow) as emulator:
        yield emulator


@pytest.fixture
def emulator(started: EmulatorProcess, receiver: Receiver) -> EmulatorProcess:
    """An emulator as it is after its start."""
    started.ask("POST", "/emulator/reset", {})
    receiver.received.clear()
    return started


def add(emulator: EmulatorProcess, kind: str, **how: object) -> dict[str, object]:
    fault: dict[str, object] = emulator.ask("POST", FAULTS, {"kind": kind, **how})
    return fault


@pytest.mark.parametrize("status", [429, 410, 500, 503])
def test_a_status_is_answered_to_one_vm_so_many_times(
    emulator: EmulatorProcess, status: int
) -> None:
    """Keeps N1."""
    add(emulator, str(status), machine="web-0", times=2)

    assert [emulator.guest("web-0").status for _ in range(3)] == [status, status, 200]
    assert emulator.guest("web-1").status == 200
    seen = emulator.ask("GET", "/emulator/requests")["requests"]
    assert [one["status"] for one in seen] == [status, status, 200, 200]


def test_a_fault_ends_when_its_time_is_over(emulator: EmulatorProcess) -> None:
    """Keeps N1: 200 and nothing in it, as some nodes of Azure answered for days."""
    fault = add(emulator, "empty", seconds=60)

    assert emulator.guest("db").body == b""
    assert emulator.ask("GET", FAULTS) == {"faults": [fault]}
    emulator.advance(seconds=60)
    assert emulator.guest("db").json["Events"] == []
    assert emulator.ask("GET", FAULTS) == {"faults": []}


def test_a_truncated_answer_and_a_reset_are_what_a_client_takes_them_for(
    emulator: EmulatorProcess,
) -> None:
    add(emulator, "truncated", times=1)
    add(emulator, "reset", times=1)

    with pytest.raises(http.client.IncompleteRead):
        emulator.guest("db")
    with pytest.raises(ConnectionResetError):
        emulator.guest("db")
    assert emulator.guest("db").status == 200


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def wait_until_struck(emulator: EmulatorProcess) -> None:
    """Wait until the only fault, which was to strike once, has done so."""
    wait_until(lambda: not emulator.ask("GET", FAULTS)["faults"])


def seconds_between(first: str, second: str) -> float:
    return (datetime.fromisoformat(second) - datetime.fromisoformat(first)).total_seconds()


def test_a_slow_approval_counts_when_its_delay_is_over(emulator: EmulatorProcess) -> None:
    """However far time is advanced at once: each thing is done when it is due."""
    event = emulator.announce("Reboot", "web-0", source="User")["event_id"]
    add(emulator, "slow", machine="web-0", delay_seconds=30, times=1)
    begun = emulator.ask("GET", "/emulator/clock")["now"]
    with ThreadPoolExecutor() as pool:
        approval = {"StartRequests": [{"EventId": event}]}
        answer = pool.submit(emulator.guest, "web-0", "POST", approval)
        wait_until_struck(emulator)

        emulator.advance(seconds=29)
        assert not answer.done()
        emulator.advance(seconds=3600)

        assert answer.result().status == 200
    record = emulator.ask("GET", f"/events/{event}")
    assert seconds_between(begun, record["approved"]["at"]) == 30
    assert seconds_between(begun, record["started_at"]) == 30


def test_the_next_thing_may_be_an_approval_that_was_slow(emulator: EmulatorProcess) -> None:
    event = emulator.announce("Reboot", "db")["event_id"]
    add(emulator, "slow", times=1)
    begun = emulator.ask("GET", "/emulator/clock")["now"]
    with ThreadPoolExecutor() as pool:
        approval = {"StartRequests": [{"EventId": event}]}
        answer = pool.submit(emulator.guest, "db", "POST", approval)
        wait_until_struck(emulator)

        told = emulator.advance(next=True)

        assert answer.result().status == 200
    assert told["happened"]
    assert seconds_between(begun, told["now"]) == 10


def test_the_first_answer_takes_two_minutes(emulator: EmulatorProcess) -> None:
    """Keeps S13, N1."""
    assert add(emulator, "slow-first", times=1)["delay_seconds"] == 120
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(emulator.guest, "web-0")
        wait_until_struck(emulator)
        emulator.advance(seconds=119)
        assert not answer.done()
        emulator.advance(seconds=1)
        assert answer.result().status == 200

    assert emulator.guest("web-0").status == 200


def test_a_slow_answer_takes_its_time_where_time_passes(tmp_path: Path) -> None:
    with EmulatorProcess(tmp_path / "log", "--speed", "3600") as emulator:
        add(emulator, "slow", delay_seconds=2)
        base, target = emulator.told["machines"]["vm-0"], f"{PATH}?api-version={VERSION}"

        with pytest.raises(TimeoutError):
            request(base, "GET", target, headers={"Metadata": "true"}, seconds_max=0.2)

        assert emulator.guest("vm-0").status == 200


def test_beginning_anew_clears_faults_and_waits_for_no_delay(emulator: EmulatorProcess) -> None:
    add(emulator, "slow", times=1)
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(emulator.guest, "db")
        wait_until_struck(emulator)
        add(emulator, "503")

        emulator.ask("POST", "/emulator/reset", {})

        # Whoever waited was answered by the world that it had asked.
        assert answer.result().status == 503
    assert emulator.ask("GET", FAULTS) == {"faults": []}
    assert emulator.guest("db").status == 200
    assert add(emulator, "429")["id"] == "1"


def test_documents_are_counted_from_1_again(emulator: EmulatorProcess) -> None:
    """Keeps N1."""
    event = emulator.announce("Reboot", "web-0")["event_id"]
    before = emulator.guest("web-1").json["DocumentIncarnation"]

    add(emulator, "incarnation-restart", machine="web-0")
    restarted = emulator.guest("web-1").json
    emulator.ask("POST", f"/events/{event}/cancel", {})
    canceled = emulator.guest("web-0").json

    assert before > 1
    assert restarted["DocumentIncarnation"] == 1
    assert [one["EventId"] for one in restarted["Events"]] == [event]
    assert canceled == {"DocumentIncarnation": 2, "Events": []}


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"kind": "418"}, 400),
        ({"kind": "429", "times": 0}, 400),
        ({"kind": "429", "seconds": 0}, 400),
        ({"kind": "429", "delay_seconds": 1}, 400),
        ({"kind": "429", "machine": "nobody"}, 404),
        ({"kind": "incarnation-restart", "times": 1}, 400),
        ({}, 400),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(
    emulator: EmulatorProcess, asked: object, status: int
) -> None:
    assert emulator.try_to("POST", FAULTS, asked).status == status
    assert emulator.ask("GET", FAULTS) == {"faults": []}


def test_one_fault_or_all_of_them_are_ended(emulator: EmulatorProcess) -> None:
    for _ in range(3):
        add(emulator, "429")

    emulator.ask("DELETE", f"{FAULTS}/2")
    assert [fault["id"] for fault in emulator.ask("GET", FAULTS)["faults"]] == ["1", "3"]
    assert emulator.try_to("DELETE", f"{FAULTS}/2").status == 404
    emulator.ask("DELETE", FAULTS)
    assert emulator.guest("db").status == 200


def test_two_vms_of_one_name_are_told_apart(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    scope = '[[scope]]\nname = "{0}"\nkind = "standalone"\n  [[scope.machine]]\n  name = "vm"\n'
    fleet.write_text(scope.format("one") + scope.format("two"))
    with EmulatorProcess(tmp_path / "log", "--fleet", str(fleet)) as emulator:
        one, two = emulator.told["machines"]
        assert emulator.try_to("POST", FAULTS, {"kind": "410", "machine": "vm"}).status == 409

        assert add(emulator, "410", machine=one)["machine"] == one

        assert [emulator.guest(name).status for name in (one, two)] == [410, 200]


# -- webhooks ----------------------------------------------------------------------------------


def words(received: list[Received]) -> list[str]:
    return [one.json["type"].removeprefix("forewarn.event.") for one in received]


def subscribe(emulator: EmulatorProcess, receiver: Receiver) -> None:
    emulator.ask("POST", "/webhooks", {"name": "pager", "url": receiver.url})


def test_a_webhook_is_told_twice_when_told_to(
    emulator: EmulatorProcess, receiver: Receiver
) -> None:
    subscribe(emulator, receiver)
    add(emulator, "webhook-duplicate", machine="web-0", times=1)

    emulator.announce("Freeze", "db")
    emulator.announce("Freeze", "web-0")
    receiver.wait_for(lambda taken: len(taken) == 5)

    ids = [one.id for one in receiver.taken]
    twice = {one for one in ids if ids.count(one) == 2}
    (told,) = {
        json.dumps(one.json["data"]["Resources"]) for one in receiver.taken if one.id in twice
    }
    assert told == '["web-0"]'
    assert len(set(ids)) == 4


def test_a_webhook_is_told_in_another_order_when_told_to(
    emulator: EmulatorProcess, receiver: Receiver
) -> None:
    subscribe(emulator, receiver)
    add(emulator, "webhook-reordered", times=1)

    event = emulator.announce("Freeze", "db")["event_id"]
    receiver.wait_for(lambda taken: len(taken) == 2)
    emulator.ask("POST", f"/events/{event}/cancel", {})
    receiver.wait_for(lambda taken: len(taken) == 3)

    assert words(receiver.taken) == ["readable", "scheduled", "canceled"]


def test_what_is_held_back_comes_late_if_nothing_follows(
    emulator: EmulatorProcess, receiver: Receiver
) -> None:
    webhook = {"name": "pager", "url": receiver.url, "changes": ["scheduled", "canceled"]}
    emulator.ask("POST", "/webhooks", webhook)
    add(emulator, "webhook-reordered", times=1, delay_seconds=60)

    event = emulator.announce("Freeze", "db")["event_id"]
    wait_until_struck(emulator)
    assert receiver.taken == []
    emulator.advance(seconds=60)
    receiver.wait_for(lambda taken: len(taken) == 1)
    emulator.ask("POST", f"/events/{event}/cancel", {})
    receiver.wait_for(lambda taken: len(taken) == 2)

    assert words(receiver.taken) == ["scheduled", "canceled"]


def test_an_emulator_tells_only_whom_it_was_allowed(emulator: EmulatorProcess) -> None:
    refused = emulator.try_to("POST", "/webhooks", {"name": "x", "url": "https://example.org/"})

    assert refused.status == 409
    assert b"--webhook-allow" in refused.body


# -- the command line and the log ----------------------------------------------------------------


def test_commands_add_list_and_clear_faults(
    emulator: EmulatorProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data", str(emulator.told["data"])]

    assert main(["fault", "list", *data]) == 0
    assert main(["fault", "add", "429", "--vm", "web-0", "--times", "3", *data]) == 0
    assert main(["fault", "add", "slow", "--delay", "30s", "--for", "1m", *data]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "nothing goes wrong; `forewarn fault add KIND` changes that"
    assert said[1] == "fault 1 is in force: 429 web-0 3 times"
    assert said[2].startswith("fault 2 is in force: slow all VMs until 20")
    assert main(["fault", "list", *data]) == 0
    assert "web-0" in capsys.readouterr().out
    assert main(["fault", "clear", "2", *data]) == 0
    assert capsys.readouterr().out == "1 left in force\n"
    assert main(["fault", "list", "--json", *data]) == 0
    (left,) = json.loads(capsys.readouterr().out)["faults"]
    assert (left["kind"], left["machine"], left["times"]) == ("429", "web-0", 3)
    assert main(["fault", "clear", "--json", *data]) == 0
    assert json.loads(capsys.readouterr().out) == {"faults": []}
    assert main(["fault", "clear", "1", *data]) == 4
    assert main(["fault", "add", "empty", "--json", *data]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "empty"
    assert main(["fault", "clear", *data]) == 0
    assert main(["fault", "add", "418", *data]) == 2


def test_commands_begin_anew_come_to_rest_and_list_requests(
    emulator: EmulatorProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data", str(emulator.told["data"])]

    assert main(["emulator", "requests", *data]) == 0
    emulator.guest("web-1")
    assert main(["emulator", "requests", *data]) == 0
    nobody, headings, row = capsys.readouterr().out.splitlines()
    assert nobody == "nobody asked anything"
    assert "scheduledevents" in row
    assert len(headings.split()) == len(row.split()) == 7
    assert main(["emulator", "requests", "--json", *data]) == 0
    assert json.loads(capsys.readouterr().out)["requests"][0]["machine"] == "web-1"
    assert main(["emulator", "seed", "7", *data]) == 0
    assert main(["emulator", "idle", *data]) == 0
    assert main(["emulator", "reset", "--json", *data]) == 0
    seeded, idle, *reset = capsys.readouterr().out.splitlines()
    assert seeded == "begun anew with seed 7; it is 2030-01-01T12:00:00Z"
    assert idle == "nothing more is due; it is 2030-01-01T12:00:00Z"
    assert json.loads("".join(reset))["speed"] == 0


def test_the_terminal_shows_what_goes_wrong(emulator: EmulatorProcess) -> None:
    add(emulator, "410", machine="db", times=1)
    emulator.guest("db")

    lines = emulator.log.read_text().splitlines()[-3:]

    assert "fault 1 began: 410, for db, strikes left: 1" in lines[0]
    assert "fault 1 struck db: 410" in lines[1]
    assert "fault 1 ended: 410" in lines[2]


def test_a_service_that_is_no_emulator_is_said_to_be_none(tmp_path: Path) -> None:
    fleet = '[[scope]]\nname = "db"\n  [[scope.machine]]\n  name = "db"\n'
    with ServiceProcess(tmp_path / "data", fleet) as service:
        for words in (["fault", "list"], ["fault", "clear", "1"], ["emulator", "reset"], ["clock"]):
            done = service.run(*words)
            assert done.returncode == 3
            assert "this service is no emulator" in done.stderr


def test_every_kind_can_be_typed() -> None:
    assert set(get_args(cli_faults.Kind)) == {kind.value for kind in FaultKind}
