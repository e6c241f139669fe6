"""What owners do to VMs by the command line, against a running service."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from forewarn.cli.following import Patience
from forewarn.errors import Malformed
from forewarn.testing.processes import ServiceProcess

pytestmark = pytest.mark.end_to_end

FLEET: Final = """
[[scope]]
name = "web"
kind = "availability-set"
resource_group = "rg1"
enabled = "always"
machine = [
    { name = "web-0", address = "127.0.2.10", host = "host-a" },
    { name = "web-1", address = "127.0.2.11", host = "host-b" },
]

[[scope]]
name = "cheap"
resource_group = "rg1"
spot = true
enabled = "always"
machine = [{ name = "cheap", address = "127.0.2.30" }]

[[scope]]
name = "lone"
resource_group = "rg2"
machine = [{ name = "lone", address = "127.0.2.50" }]

[[scope]]
name = "ss1"
kind = "scale-set"
resource_group = "rg1"
enabled = "always"
terminate_notice = "5m"
machine = [
    { name = "ss1_0", address = "127.0.2.40" },
    { name = "ss1_1", address = "127.0.2.41" },
]
"""
SECONDS_MAX: Final = 30


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    data = tmp_path_factory.mktemp("verbs")
    with ServiceProcess(data, FLEET, "--impacts-take", "1s") as process:
        yield process


@pytest.fixture(autouse=True)
def tidy(service: ServiceProcess) -> Iterator[None]:
    """Each test finds nothing pending."""
    yield
    for event in service.json("events")["events"]:
        if event["status"] == "Scheduled":
            service.run("cancel", event["event_id"])
        else:
            service.run("wait", event["event_id"], "--timeout", "10s")


def begun(service: ServiceProcess, *words: str, **streams: Any) -> subprocess.Popen[str]:  # noqa: ANN401 - those of Popen
    command = [sys.executable, "-m", "forewarn", *words, "--data", str(service.data)]
    usual = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **{**usual, **streams})


def pending(service: ServiceProcess, machine: str) -> dict[str, Any]:
    """The event that a VM is about to undergo, once there is one."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        for event in service.json("events")["events"]:
            if machine in event["resources"] and event["status"] == "Scheduled":
                known: dict[str, Any] = event
                return known
        time.sleep(0.1)
    raise AssertionError(f"nothing was announced to {machine}")


def test_a_restart_is_followed_from_its_announcement_to_its_end(service: ServiceProcess) -> None:
    """Keeps S18: restarting schedules a Reboot, which starts when a guest has approved."""
    with begun(service, "restart", "rg1/web-0", "--wait") as following:
        event = pending(service, "web-0")
        time.sleep(1.5)
        service.approve("127.0.2.11", event["event_id"])
        out, error = following.communicate(timeout=SECONDS_MAX)

    lines = [
        line.removeprefix(f"Reboot {event['event_id'][:8]} of web-0: ") for line in out.splitlines()
    ]
    assert (following.returncode, error) == (0, "")
    assert lines[0].startswith("Scheduled, not before ")
    assert lines[0].endswith("; waiting for approval")
    assert lines[-1] == "Completed; approved by guest web-1 from 127.0.2.11"
    assert (event["type"], event["source"]) == ("Reboot", "User")


@pytest.mark.parametrize(
    ("verb", "machine", "type_"),
    [
        ("restart", "web-0", "Reboot"),
        ("redeploy", "WEB-1", "Redeploy"),
        ("freeze", "rg1/web/web-0", "Freeze"),
        ("evict", "cheap", "Preempt"),
        ("terminate", "ss1_1", "Terminate"),
    ],
)
def test_each_verb_announces_its_event_and_goes_home(
    service: ServiceProcess, verb: str, machine: str, type_: str
) -> None:
    told = service.json(verb, machine)

    (event,) = told["events"]
    name = machine.lower().rpartition("/")[2]
    assert (event["type"], event["status"], event["resources"]) == (type_, "Scheduled", [name])
    if verb in {"restart", "redeploy", "terminate"}:
        (operation,) = told["operations"]
        assert operation["status"] == "InProgress"
        assert operation["properties"]["events"] == [event["event_id"]]
    assert service.run("events").stdout.count(type_) == 1


def test_without_waiting_the_events_are_shown(service: ServiceProcess) -> None:
    done = service.run("restart", "web-0", "web-1")

    heading, *rows = done.stdout.splitlines()
    assert done.returncode == 0
    assert heading.startswith("EVENT")
    assert len(rows) == 2


def test_a_vm_is_stopped_started_deallocated_and_reimaged(service: ServiceProcess) -> None:
    def presence() -> str:
        scopes = service.json("fleet")["scopes"]
        (lone,) = (scope for scope in scopes if scope["scope"] == "lone")
        return str(lone["machines"][0]["presence"])

    for verb, expected in (
        ("stop", "stopped"),
        ("start", "running"),
        ("reimage", "running"),
        ("deallocate", "deallocated"),
        ("start", "running"),
    ):
        done = service.run(verb, "lone", "--wait")

        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1].endswith(": Completed; unannounced")
        assert presence() == expected
    again = service.run("start", "lone", "--wait")
    assert again.stdout == "start of lone: nothing had to be done\n"
    assert service.run("start", "lone").stdout == again.stdout


def test_what_was_canceled_is_an_error_with_a_status_of_its_own(service: ServiceProcess) -> None:
    with begun(service, "redeploy", "web-0", "--wait", "--json") as following:
        event = pending(service, "web-0")
        service.run("cancel", event["event_id"])
        out, error = following.communicate(timeout=SECONDS_MAX)

    told = json.loads(out)
    assert following.returncode == 7
    assert error == (
        f"forewarn: redeploy of web-0: Redeploy {event['event_id']} on web-0 was canceled\n"
    )
    assert [one["status"] for one in told["operations"]] == ["Canceled"]
    assert [one["status"] for one in told["events"]] == ["Canceled"]


def test_what_failed_says_why(service: ServiceProcess) -> None:
    body = json.dumps({"machine": "lone", "behavior": "fails"}).encode()
    service.ask("POST", "/fabric/v1/simulated-fabric", headers=service.authorized, body=body)

    done = service.run("announce", "reboot", "lone", "--unannounced", "--wait")

    body = json.dumps({"machine": "lone", "behavior": "obeys"}).encode()
    service.ask("POST", "/fabric/v1/simulated-fabric", headers=service.authorized, body=body)
    assert done.returncode == 7
    assert done.stderr == "forewarn: Reboot of lone: lone failed, lone was told to fail\n"


def test_who_does_not_wait_any_longer_is_told_how_to_follow(service: ServiceProcess) -> None:
    done = service.run("restart", "web-0", "--wait", "--timeout", "1s")

    event = pending(service, "web-0")
    assert done.returncode == 8
    assert done.stderr == (
        "forewarn: not over after 1s; it goes on: "
        f"`forewarn wait {event['event_id'][:8]}` follows it\n"
    )


def test_an_interrupt_leaves_it_going_and_says_how_to_follow(service: ServiceProcess) -> None:
    with begun(service, "restart", "web-0", "--wait") as following:
        assert following.stdout is not None
        following.stdout.readline()
        following.send_signal(signal.SIGINT)
        _, error = following.communicate(timeout=SECONDS_MAX)

    event = pending(service, "web-0")
    assert following.returncode == 130
    assert f"it goes on: `forewarn wait {event['event_id'][:8]}` follows it" in error


def test_on_a_terminal_the_line_changes_where_it_stands(service: ServiceProcess) -> None:
    master, terminal = pty.openpty()
    with begun(service, "freeze", "web-0", "--wait", stdout=terminal) as following:
        os.close(terminal)
        event = pending(service, "web-0")
        # The hands go on where the line stands.
        shown = _read_until(master, "(in 14m")
        service.approve("127.0.2.10", event["event_id"])
        shown += _read_all(master)
        following.communicate(timeout=SECONDS_MAX)

    assert following.returncode == 0
    assert "\x1b[" in shown
    assert "(in 15m" in shown
    assert "Completed" in shown


def _read_until(terminal: int, words: str) -> str:
    shown = b""
    while words.encode() not in shown:
        assert select.select([terminal], [], [], SECONDS_MAX)[0], shown
        shown += os.read(terminal, 65536)
    return shown.decode()


def _read_all(terminal: int) -> str:
    shown = b""
    while select.select([terminal], [], [], SECONDS_MAX)[0]:
        try:
            shown += os.read(terminal, 65536)
        except OSError:
            # Nobody writes to it any more.
            break
    os.close(terminal)
    return shown.decode()


def test_a_wrong_name_stops_it_before_anything_is_begun(service: ServiceProcess) -> None:
    done = service.run("restart", "web-0", "nobody")

    assert (done.returncode, done.stderr) == (
        4,
        "forewarn: no VM nobody; `forewarn fleet` lists them\n",
    )
    assert service.json("events")["events"] == []


def test_a_refusal_says_what_was_begun_before_it(service: ServiceProcess) -> None:
    done = service.run("evict", "cheap", "web-0")

    assert done.returncode == 3
    assert "web-0 is no Spot VM" in done.stderr
    assert "begun already, and going on: eviction of cheap" in done.stderr


def test_events_can_be_waited_for_by_themselves(service: ServiceProcess) -> None:
    (event,) = service.announce("freeze", "web-0", "--duration", "1s")
    service.run("approve", event["event_id"])

    done = service.run("wait", event["event_id"][:8])

    assert done.returncode == 0
    assert "Completed; approved by operator" in done.stdout


def test_a_service_that_restarts_meanwhile_is_waited_for(tmp_path: Path) -> None:
    with ServiceProcess(tmp_path, FLEET, "--impacts-take", "1s") as service:
        port = service.control.rpartition(":")[2]
        with begun(service, "restart", "web-0", "--wait") as following:
            event = pending(service, "web-0")
            service.kill()
            time.sleep(1.5)
            again = ServiceProcess(
                tmp_path, None, "--impacts-take", "1s", "--control", f"127.0.0.1:{port}"
            )
            with again:
                again.approve("127.0.2.10", event["event_id"])
                _, error = following.communicate(timeout=SECONDS_MAX)

    assert (following.returncode, error) == (0, "")


def test_a_timeout_without_waiting_is_a_mistake() -> None:
    with pytest.raises(Malformed, match="give --wait too"):
        Patience(timeout="20m").limit()
