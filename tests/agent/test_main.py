"""The command `forewarn agent`: words in, hooks run, text and status out."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

import forewarn
from forewarn.agent import running
from forewarn.agent.main import main
from forewarn.cli import main as cli
from forewarn.errors import Malformed, Unavailable
from forewarn.statuses import STATUS_OF
from forewarn.testing.scheduled_events import ScheduledEvents

SOURCE: Final = str(Path(forewarn.__file__).parents[1])
SECONDS_MAX: Final = 60
EVENT: Final = {
    "EventId": "4F2A0000-0000-4000-8000-000000000001",
    "EventType": "Reboot",
    "EventStatus": "Scheduled",
    "EventSource": "Platform",
    "Resources": ["web-0"],
    "NotBefore": "2199-11-15T22:15:00+00:00",
    "DurationInSeconds": -1,
    "Description": "",
}
IN_HAND: Final[dict[str, Any]] = {
    "name": "web-0",
    "incarnation": 2,
    "trouble": "the disk is full",
    "events": [
        {
            "event": EVENT,
            "phases": {
                "prepare": [
                    {"hook": "10-drain", "attempt": 2, "result": "failed", "code": 3},
                    {"hook": "20-flush", "attempt": 1, "result": None, "code": None},
                    {"hook": "30-sync", "attempt": 0, "result": None, "code": None},
                ]
            },
            "approved": None,
            "is_over": False,
            "approves": False,
            "why": "the hooks are not over",
        }
    ],
}


def put(file: Path, script: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def settled(directory: Path, *lines: str) -> str:
    """The agent's file, for hooks below the same directory."""
    file = directory / "agent.toml"
    (directory / "hooks.d").mkdir(exist_ok=True)
    hooks = f'hooks = "{directory / "hooks.d"}"'
    state = f'state = "{directory / "state"}"'
    name = [] if any(line.startswith("endpoint") for line in lines) else ['name = "web-0"']
    file.write_text("\n".join([hooks, state, *name, *lines]))
    return str(file)


@contextmanager
def answering(body: bytes, status: int = 200) -> Iterator[str]:
    """Somebody who answers all questions alike; where."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


# -- words ---------------------------------------------------------------------------------------


def test_statuses_are_those_of_forewarn() -> None:
    assert main(["nonsense"]) == cli.main(["nonsense"]) == STATUS_OF[Malformed] == 2


@pytest.mark.parametrize("words", [[], ["run"], ["test"], ["explain"], ["status"], ["approve"]])
def test_help_has_examples(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--help"], prog="forewarn-agent") == 0

    text = capsys.readouterr().out
    assert "For example:" in text
    assert f"    {' '.join(['forewarn-agent', *words])}" in text


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{forewarn.__version__}\n"


REFUSED: Final = [
    (["tset"], 'there is no command "tset" (did you mean "test"?); see `forewarn agent --help`'),
    (["fly"], 'there is no command "fly"; see `forewarn agent --help`'),
    (["test"], "the following arguments are required: TYPE; see `forewarn agent test --help`"),
    (["test", "Frieze"], "'Frieze' is no event type: did you mean Freeze?"),
    (["test", "Reboot", "--limit", "x"], "'x' is not a duration: write it like"),
    (["explain"], "one of the arguments EVENT_ID --type is required; see `forewarn agent explain"),
    (["explain", "--type", "Reboot", "--source", "x"], "'x' is no source: give Platform or User"),
    (
        ["--config", "f", "status"],
        "unrecognized arguments: status; see `forewarn agent run --help`",
    ),
    (
        ["test", "Reboot", "--json"],
        "unrecognized arguments: --json; see `forewarn agent test --help`",
    ),
    (["approve", "4F2"], "'4F2' is too short for an event: give its first 4"),
    (["run", "--config", "/nowhere"], "there is no file /nowhere: give --config the agent's file"),
]


@pytest.mark.parametrize(("words", "expected"), REFUSED)
def test_a_mistake_is_refused_with_the_next_step(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"forewarn agent: {expected}")
    assert told.err.count("\n") == 1


def test_a_file_with_faults_is_told_line_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "agent.toml"
    file.write_text('state = "x"\ncolor = 1\n')

    assert main(["explain", "--type", "Reboot", "--config", str(file)]) == 2

    first, second, last = capsys.readouterr().err.splitlines()
    assert first.startswith(f"{file}:1: state = 'x' is not an absolute path")
    assert second.startswith(f"{file}:2: the agent's file has no member 'color'")
    assert last == "forewarn agent: 2 errors"


def test_forewarn_has_the_agent_among_its_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["--help"]) == 0
    assert "Run a VM's hooks before an event" in " ".join(capsys.readouterr().out.split())

    assert cli.main(["agent", "explain", "--type", "Reboot", "--config", settled(tmp_path)]) == 0
    assert "the file has none: the defaults count" in capsys.readouterr().out
    assert cli.main(["agent", "--help"]) == 0
    assert "usage: forewarn agent" in capsys.readouterr().out

    assert cli.main(["completion", "bash"]) == 0
    assert "agent" in capsys.readouterr().out


# -- test ----------------------------------------------------------------------------------------


def test_a_test_runs_the_hooks_of_every_phase(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hooks = tmp_path / "hooks.d"
    for phase in ("prepare", "started", "undo"):
        put(hooks / phase / "10-x", 'echo "$EVENT_PHASE $EVENT_TYPE $EVENT_SOURCE $EVENT_DURATION"')
    words = ["test", "reboot", "--config", settled(tmp_path), "--source", "user"]

    assert main([*words, "--duration", "9s", "--limit", "30s"]) == 0

    told = capfd.readouterr()
    assert told.err == "prepare Reboot User 9\nstarted Reboot User 9\nundo Reboot User 9\n"
    assert told.out.splitlines() == [
        "a Reboot is played to web-0: hooks are really run, nothing is approved",
        "prepare   10-x begins, and may take 30s",
        "prepare   10-x is ready",
        "approval  it would be approved: the hooks are over, and it is ready",
        "started   10-x begins, and may take 30s",
        "started   10-x is ready",
        "undo      10-x begins, and may take 30s",
        "undo      10-x is ready",
        "all is well",
    ]
    assert not (tmp_path / "state").exists()


def test_a_test_in_which_a_hook_fails_says_which(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "hooks.d/prepare/10-bad", "exit 3")
    put(tmp_path / "hooks.d/prepare/20-well", "exit 0")
    put(tmp_path / "hooks.d/undo/10-bad", "exit 1")

    assert main(["test", "Freeze", "--config", settled(tmp_path)]) == 7

    told = capfd.readouterr()
    assert "prepare   20-well is ready" in told.out
    assert "approval  it would not be approved: a hook failed" in told.out
    assert told.err == (
        "forewarn agent: prepare/10-bad failed with status 3; undo/10-bad failed with status 1: "
        "mend them and test again\n"
    )


def test_a_test_stops_what_takes_too_long(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "hooks.d/prepare/10-slow", "exec sleep 600")

    assert main(["test", "Reboot", "--config", settled(tmp_path), "--limit", "1s"]) == 7

    assert "10-slow was not over in time, and was stopped: mend it" in capfd.readouterr().err


def test_a_test_has_no_more_time_than_the_notice_gives(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "hooks.d/prepare/10-slow", "exec sleep 600")

    assert main(["test", "Preempt", "--config", settled(tmp_path), "--notice", "2s"]) == 7

    told = capfd.readouterr()
    assert "prepare   10-slow was not over in time, and was stopped" in told.out
    # It may have done half of its work.
    assert "undo      no hook is for a Preempt" in told.out


def test_a_test_without_hooks_says_where_they_belong(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["test", "Reboot", "--config", settled(tmp_path)]) == 0

    *_, verdict, started, undo, last = capfd.readouterr().out.splitlines()
    assert verdict == "approval  it would be approved: there is no hook for it"
    assert started == "started   no hook is for a Reboot"
    assert undo == "undo      nothing is run: nothing was done that is to be undone"
    assert last == (
        f"no hook was run: put programs into {tmp_path}/hooks.d/prepare, and make them executable"
    )


def test_a_test_in_which_nothing_was_to_be_done_undoes_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "hooks.d/prepare/10-idle", "exit 70")
    put(tmp_path / "hooks.d/undo/10-idle", "echo undone")

    assert main(["test", "Reboot", "--config", settled(tmp_path)]) == 0

    told = capfd.readouterr()
    assert "prepare   10-idle had nothing to do" in told.out
    assert told.err == ""


def test_a_test_is_for_this_vm(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["test", "Reboot", "--config", settled(tmp_path), "--resources", "web-1,web-2"]

    assert main(words) == 2

    assert "web-0 is not among web-1, web-2" in capfd.readouterr().err


def test_a_test_that_is_interrupted_undoes_what_it_did(tmp_path: Path) -> None:
    put(tmp_path / "hooks.d/prepare/10-slow", "echo working; exec sleep 600")
    put(tmp_path / "hooks.d/undo/10-slow", "echo undone")
    words = [sys.executable, "-m", "forewarn.agent", "test", "Reboot"]
    with subprocess.Popen(
        [*words, "--config", settled(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "working\n":
                process.send_signal(signal.SIGINT)
                break
        rest = process.stdout.read()

    assert process.returncode == 130
    assert "interrupted: hooks are stopped, and what they did is undone" in rest
    assert "undone" in rest.splitlines()


# -- explain -------------------------------------------------------------------------------------


def test_what_would_happen_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hook = put(tmp_path / "hooks.d/prepare/10-x", "exit 0")
    file = settled(tmp_path, '[[rules]]\ntypes = ["Freeze"]', '[[rules]]\nonly = ["leader"]')
    words = ["explain", "--type", "Reboot", "--resources", "web-1, web-0", "--config", file]

    assert main(words) == 0

    told = capsys.readouterr().out
    assert (
        "rule 1    no: it is for Freeze, and this is a Reboot\nrule 2    it is this one\n" in told
    )
    assert f"prepare   10-x (may take 14m59s): {hook}\n" in told
    assert "and only by the first of its VMs, which is web-1, not web-0\n" in told

    assert main([*words, "--json"]) == 0

    content = json.loads(capsys.readouterr().out)
    assert (content["rule"], content["why"]) == (2, "the hooks are not over")


def test_an_event_of_the_document_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scheduled_events: ScheduledEvents
) -> None:
    event = scheduled_events.reboot("web-0")
    other = scheduled_events.freeze("web-0")
    file = settled(tmp_path, f'endpoint = "{scheduled_events.url}"', 'listen = ""')

    assert main(["explain", event.id.lower(), "--config", file]) == 0
    assert capsys.readouterr().out.startswith(f"Reboot {event.id.upper()}, Scheduled, of ")

    assert main(["explain", "", "--config", file]) == 4
    assert "several events begin with" in capsys.readouterr().err

    assert main(["explain", "zzz", "--config", file]) == 4
    told = capsys.readouterr().err
    assert "no event zzz is in the document: there is " in told
    assert other.id.upper() in told


def test_an_event_in_hand_is_explained_as_the_agent_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(json.dumps(IN_HAND).encode()) as place:
        file = settled(tmp_path, f'listen = "{place}"')
        assert main(["explain", "4f2a", "--config", file]) == 0
        text = capsys.readouterr().out
        assert main(["explain", "4f2a", "--config", file, "--json"]) == 0
        content = json.loads(capsys.readouterr().out)

    assert "now       no: the hooks are not over\n" in text
    assert "in hand:\nprepare   10-drain is over: failed (status 3), attempt 2\n" in text
    assert text.endswith("approval  not given: the hooks are not over\n")
    assert (content["approved"], content["why"]) == (False, "the hooks are not over")


def test_what_is_made_up_and_what_is_there_are_not_mixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["explain", "4F2A", "--duration", "9s", "--config", settled(tmp_path)]

    assert main(words) == 2

    assert "--duration is for events that are made up: leave out 4F2A" in capsys.readouterr().err


def test_the_endpoint_says_who_this_vm_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scheduled_events: ScheduledEvents
) -> None:
    file = settled(tmp_path, f'endpoint = "{scheduled_events.url}"')

    assert main(["explain", "--type", "Freeze", "--config", file]) == 0
    assert ", for web-0, " in capsys.readouterr().out


def test_where_nobody_says_who_this_vm_is_it_has_its_hosts_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(b"no", status=403) as place:
        file = settled(tmp_path, f'endpoint = "http://{place}"')
        assert main(["explain", "--type", "Freeze", "--config", file]) == 0

    told = capsys.readouterr()
    assert f", for {os.uname().nodename}, " in told.out
    assert "no metadata service says who this VM is" in told.err


def test_a_service_that_does_not_answer_is_told_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(b"") as place:
        pass
    file = settled(tmp_path, f'endpoint = "http://{place}"', 'listen = ""')

    assert main(["explain", "4F2A", "--config", file]) == 6

    told = capsys.readouterr().err
    assert f"; it was looked for at http://{place}: is that the one? Else write `endpoint`" in told


# -- approve -------------------------------------------------------------------------------------


def test_an_event_that_is_held_is_approved_by_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scheduled_events: ScheduledEvents
) -> None:
    event = scheduled_events.reboot("web-0")
    file = settled(tmp_path, f'endpoint = "{scheduled_events.url}"', 'listen = ""')

    assert main(["approve", event.id[:8].lower(), "--config", file]) == 0
    called = f"Reboot {event.id.upper()}"
    told = capsys.readouterr().out
    assert told == f"{called} is approved: it may start now, for web-0\n"
    assert event.approved_by == "web-0"

    assert main(["approve", event.id, "--config", file]) == 0
    assert capsys.readouterr().out == f"{called} has started already\n"

    assert main(["approve", "zzzz", "--config", file]) == 4
    assert capsys.readouterr().err.endswith("; see `forewarn-agent status`\n")


def test_an_event_that_is_gone_is_not_approved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [event] = IN_HAND["events"]
    gone = {**IN_HAND, "events": [{**event, "is_over": True}]}
    with answering(json.dumps(gone).encode()) as place:
        assert main(["approve", "4F2A", "--config", settled(tmp_path, f'listen = "{place}"')]) == 4

    assert " is gone: there is nothing to approve; see `forewarn-agent" in capsys.readouterr().err


# -- status --------------------------------------------------------------------------------------


def test_the_agent_is_asked_what_it_has_in_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(json.dumps(IN_HAND).encode()) as place:
        file = settled(tmp_path, f'listen = "{place}"')
        assert main(["status", "--config", file]) == 0
        text = capsys.readouterr().out
        assert main(["status", "--config", file, "--json"]) == 0
        content = json.loads(capsys.readouterr().out)

    first, trouble, empty, event, *runs = text.splitlines()
    assert (first, trouble, empty) == ("web-0: 1 event in hand", "trouble: the disk is full", "")
    assert event.startswith("Reboot 4F2A0000-0000-4000-8000-000000000001, Scheduled, of Platform")
    assert runs == [
        "prepare   10-drain is over: failed (status 3), attempt 2",
        "          20-flush runs",
        "          30-sync has not begun",
        "approval  not given: the hooks are not over",
    ]
    assert content == IN_HAND


def test_an_agent_with_nothing_in_hand_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = b'{"name": null, "incarnation": null, "trouble": null, "events": []}'
    with answering(nothing) as place:
        port = place.rpartition(":")[2]
        file = settled(tmp_path, f'listen = "0.0.0.0:{port}"')
        assert main(["status", "--config", file]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "a VM whose name is not known yet: no event in hand",
        "scheduled events were not read yet: the metadata service has not answered",
    ]


def test_an_event_that_is_gone_is_undone_or_waits_for_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [event] = IN_HAND["events"]
    waits = {**event, "is_over": True}
    undo = [{"hook": "10-drain", "attempt": 1, "result": None, "code": None}]
    undone = {**waits, "phases": {"undo": undo}, "approved": "2026-11-15T22:00:00Z"}
    gone = {**IN_HAND, "events": [waits, undone]}
    with answering(json.dumps(gone).encode()) as place:
        assert main(["status", "--config", settled(tmp_path, f'listen = "{place}"')]) == 0

    text = capsys.readouterr().out
    assert text.startswith("web-0: 2 events in hand\n")
    first, second = text.split("\n\n")[1:]
    assert first.startswith("gone: Reboot 4F2A0000-")
    assert "not before" not in first
    assert first.splitlines()[-2:] == [
        "          it is gone; undoing it waits until no hook runs and no other event is in hand",
        "approval  not given by this agent: the event is gone",
    ]
    assert second.splitlines()[1:] == [
        "undo      10-drain runs",
        "          it is gone; undoing it runs",
        "approval  given",
    ]


def test_an_event_that_started_unapproved_is_told_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [event] = IN_HAND["events"]
    started = {**event, "event": {**EVENT, "EventStatus": "Started", "NotBefore": ""}}
    with answering(json.dumps({**IN_HAND, "events": [started]}).encode()) as place:
        assert main(["status", "--config", settled(tmp_path, f'listen = "{place}"')]) == 0

    assert "approval  not given by this agent: it has started, at its" in capsys.readouterr().out


def test_an_agent_that_is_not_there_is_told_with_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(b"") as place:
        pass

    assert main(["status", "--config", settled(tmp_path, f'listen = "{place}"')]) == 6

    told = capsys.readouterr().err
    assert told.startswith(f"forewarn agent: no agent answers at {place} (")
    assert told.endswith("is it running? `systemctl status forewarn-agent`\n")


@pytest.mark.parametrize("listen", ["", "127.0.0.1:0"])
def test_an_agent_that_tells_nobody_cannot_be_asked(
    tmp_path: Path, listen: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--config", settled(tmp_path, f'listen = "{listen}"')]) == 6

    assert 'write listen = "127.0.0.1:8171", and restart it' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "status", "code", "expected"),
    [
        (b"no", 404, 6, "is no agent of ours (404): give --config the file"),
        (b"no", 200, 2, "the agent's answer cannot be read"),
        (b'{"name": "x", "trouble": null, "events": [{}]}', 200, 2, "cannot be read (KeyError("),
        (b'{"name": "x", "trouble": null, "events": [{"phases": 1}]}', 200, 2, "cannot be read"),
    ],
)
def test_an_answer_that_is_no_agents_is_refused(
    tmp_path: Path, body: bytes, status: int, code: int, expected: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with answering(body, status) as place:
        assert main(["status", "--config", settled(tmp_path, f'listen = "{place}"')]) == code

    assert expected in capsys.readouterr().err


# -- run -----------------------------------------------------------------------------------------


def test_the_agent_works_until_it_is_stopped(
    tmp_path: Path, scheduled_events: ScheduledEvents
) -> None:
    put(tmp_path / "hooks.d/prepare/10-x", "exit 0")
    file = settled(tmp_path, f'endpoint = "{scheduled_events.url}"', 'listen = ""')
    with subprocess.Popen(
        [sys.executable, "-m", "forewarn", "agent", "--config", file],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, *sys.path])},
    ) as process:
        event = scheduled_events.reboot("web-0")
        end = time.monotonic() + SECONDS_MAX
        while event.approved_by != "web-0" and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=SECONDS_MAX)

    assert process.returncode == 0
    assert event.approved_by == "web-0", log
    assert f"event {event.id.upper()} (Reboot): hook 10-x of prepare begins" in log
    assert "made ready" in log


def test_an_agent_at_work_is_asked(
    tmp_path: Path, scheduled_events: ScheduledEvents, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "hooks.d/prepare/10-bad", "exit 3")
    with answering(b"") as place:
        pass
    listen = f'listen = "{place}"'
    file = settled(tmp_path, f'endpoint = "{scheduled_events.url}"', listen)
    event = scheduled_events.reboot("web-0")
    with subprocess.Popen(
        [sys.executable, "-m", "forewarn.agent", "--config", file],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "failed with status 3" in line:
                break
        end = time.monotonic() + SECONDS_MAX
        text = ""
        while "failed" not in text and time.monotonic() < end:
            assert main(["status", "--config", file]) == 0
            text = capsys.readouterr().out
        assert main(["explain", event.id, "--config", file]) == 0
        explained = capsys.readouterr().out
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS_MAX)

    assert text.startswith(f"web-0: 1 event in hand\n\nReboot {event.id.upper()}, Scheduled, of ")
    assert text.endswith(
        "prepare   10-bad is over: failed (status 3)\napproval  not given: a hook failed\n"
    )
    assert explained.endswith(text.split(" takes an unknown time\n")[-1])
    assert "now       no: a hook failed\n" in explained


def test_systemd_is_told_that_it_lives_and_journald_how_bad_it_is(
    tmp_path: Path, scheduled_events: ScheduledEvents
) -> None:
    put(tmp_path / "hooks.d/prepare/10-bad", "exit 3")
    file = settled(tmp_path, f'endpoint = "{scheduled_events.url}"', 'listen = ""')
    scheduled_events.reboot("web-0")
    heard: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(SECONDS_MAX)
        with subprocess.Popen(
            [sys.executable, "-m", "forewarn.agent", "--config", file],
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": SOURCE,
                "NOTIFY_SOCKET": str(tmp_path / "notify"),
                "JOURNAL_STREAM": "8:1",
            },
        ) as process:
            while "WATCHDOG=1" not in heard or "STATUS=1 events in hand" not in heard:
                heard.append(manager.recv(4096).decode())
            assert process.stderr is not None
            log = held = ""
            while "failed with status 3" not in log:
                log = process.stderr.readline()
            while "is not approved" not in held:
                held = process.stderr.readline()
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=SECONDS_MAX)
        while "STOPPING=1" not in heard[-1]:
            heard.append(manager.recv(4096).decode())

    assert heard[0].startswith("READY=1\n")
    assert log.startswith("<4>event ")
    assert held.startswith("<6>event ")
    assert held.endswith(" (Reboot) is not approved: a hook failed\n")


def test_a_dry_run_only_tells(tmp_path: Path, scheduled_events: ScheduledEvents) -> None:
    put(tmp_path / "hooks.d/prepare/10-x", f"touch {tmp_path}/run")
    file = settled(tmp_path, f'endpoint = "{scheduled_events.url}"', 'listen = ""')
    event = scheduled_events.reboot("web-0")
    with subprocess.Popen(
        [sys.executable, "-m", "forewarn.agent", "run", "--dry-run", "--config", file],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    ) as process:
        assert process.stderr is not None
        log: list[str] = []
        for line in process.stderr:
            log.append(line)
            if "would be approved" in line:
                process.send_signal(signal.SIGTERM)
                break
        process.communicate(timeout=SECONDS_MAX)

    assert process.returncode == 0
    assert event.approved_by is None
    assert not (tmp_path / "run").exists()
    [would] = [line for line in log if "would be run" in line]
    assert f"dry run: in prepare of event {event.id.upper()} would be run, until 20" in would
    assert would.endswith(f"Z at most: {tmp_path}/hooks.d/prepare/10-x\n")


def test_two_agents_do_not_work_with_the_same_state(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = settled(tmp_path, 'endpoint = "http://127.0.0.1:9"', 'listen = ""')
    (tmp_path / "state").mkdir()

    with running.alone(tmp_path / "state"):
        assert main(["run", "--config", file]) == 6
    told = capfd.readouterr().err
    assert f"another agent is at work with {tmp_path}/state: stop it first, or try" in told

    with running.alone(tmp_path / "state"):
        pass
    with (
        pytest.raises(Unavailable, match="have `state` name another"),
        running.alone(tmp_path / "nowhere"),
    ):
        pass


def test_a_reader_who_has_seen_enough_is_no_trouble(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "forewarn.agent", "explain", "--type", "Reboot"]
    with subprocess.Popen(
        [*words, "--config", settled(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": SOURCE},
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, error = process.communicate(timeout=SECONDS_MAX)

    assert (process.returncode, error) == (141, b"")
