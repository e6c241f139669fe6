"""The agent's own endpoint: what it answers, and that nobody can keep it from answering."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families

from forewarn.agent.answers import Look, Reply, answer
from forewarn.agent.cases import Case, Result, Run, opened
from forewarn.agent.endpoint import CONNECTIONS_MAX, HEAD_SIZE_MAX, ReportServer, parse_address
from forewarn.agent.health import Health
from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.inquiries import says_yes
from forewarn.agent.reports import Report
from forewarn.agent.rules import Verdict
from forewarn.client.documents import SCHEDULED, Event
from forewarn.errors import Malformed, Unavailable
from forewarn.testing.agents import AgentProcess
from forewarn.testing.processes import request
from forewarn.testing.scheduled_events import ScheduledEvents

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
HELD: Final = Verdict(approves=False, why="the rule approves never")
CASE: Final = opened(Event("A-1", "Reboot", SCHEDULED, ("web-0",)), "boot", NOON)
RUN: Final = Run(Hook("10-x", ("x",)), attempt=1, began=NOON)


def prepared(*results: Result | None) -> Case:
    runs = tuple(replace(RUN, result=result) for result in results)
    return replace(CASE, phases={Phase.PREPARE: runs})


def looked(*cases: Case, is_settled: bool = True, is_at_work: bool = True) -> Look:
    in_hand = tuple((case, HELD) for case in cases)
    return Look(Report(NOON, "web-0", cases=in_hand, is_settled=is_settled), is_at_work=is_at_work)


def ask(target: str, look: Look, *, is_healthy: bool = True) -> Reply:
    return answer(target, look, lambda: is_healthy)


# -- what is answered --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "ready", "ready_for", "drained"),
    [
        (None, 200, 503, 200),
        (prepared(None), 503, 503, 200),
        (prepared(Result.READY), 503, 200, 503),
        (prepared(Result.READY, Result.NOTHING_TO_DO), 503, 200, 503),
        (prepared(Result.NOTHING_TO_DO), 503, 200, 200),
        (prepared(Result.FAILED), 503, 503, 200),
        (prepared(), 503, 200, 200),
        (replace(prepared(Result.READY), is_over=True), 503, 503, 503),
    ],
    ids=["none", "going", "ready", "both", "nothing to do", "failed", "without", "over"],
)
def test_what_is_in_hand_decides(
    case: Case | None, ready: int, ready_for: int, drained: int
) -> None:
    look = looked(*([] if case is None else [case]))

    assert ask("/readyz", look).status == ready
    assert ask("/readyz?event=A-1", look).status == ready_for
    assert ask("/readyz?event=a-1", look).status == ready_for
    assert ask("/drainz", look).status == drained
    assert ask("/healthz", look).status == 200


def test_nobody_is_ready_for_what_he_has_not_heard_of() -> None:
    assert ask("/readyz?event=B-2", looked(prepared(Result.READY))).status == 503
    assert ask("/readyz?event=", looked(prepared(Result.READY))).status == 400


def test_what_the_last_agent_wrote_down_makes_nobody_ready() -> None:
    """After a reboot, nothing is as the hooks had left it."""
    look = looked(prepared(Result.READY), is_settled=False)

    assert ask("/readyz?event=A-1", look).status == 503
    assert ask("/readyz", look).status == 503
    assert ask("/drainz", look).status == 503


def test_who_is_not_healthy_is_not_ready_and_it_says_why() -> None:
    reply = ask("/readyz", looked(), is_healthy=False)

    assert (reply.status, reply.body) == (503, "the command `healthy` says no\n")
    assert "A-1 (Reboot) is Scheduled" in ask("/readyz", looked(CASE)).body


def test_an_agent_that_stands_still_is_not_well() -> None:
    reply = ask("/healthz", looked(is_at_work=False))

    assert (reply.status, reply.body) == (503, "not at work since 2026-03-01T12:00:00Z\n")


def test_what_is_in_hand_is_told_to_programs() -> None:
    told = json.loads(ask("/events", looked(prepared(Result.FAILED))).body)

    (event,) = told.pop("events")
    assert told == {
        "name": "web-0",
        "at": "2026-03-01T12:00:00+00:00",
        "incarnation": None,
        "trouble": None,
        "is_pending": True,
        "is_drained": False,
    }
    assert event["event"]["EventId"] == "A-1"
    assert (event["readiness"], event["why"]) == ("failed", "the rule approves never")
    assert event["phases"]["prepare"] == [
        {"hook": "10-x", "attempt": 1, "began": NOON.isoformat(), "result": "failed", "code": None}
    ]


@pytest.mark.parametrize("target", ["/", "/readyz/", "/nothing", "", "*", "http://[/readyz"])
def test_elsewhere_there_is_nothing(target: str) -> None:
    assert ask(target, looked()).status in (400, 404)


# -- on sockets ----------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[ReportServer]:
    def reply(target: str) -> Reply:
        if target == "/broken":
            raise ZeroDivisionError
        return Reply(200, f"{target}\n")

    with ReportServer("127.0.0.1:0", reply, patience=0.5) as server:
        yield server


def connected(server: ReportServer) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), 20)


def said(server: ReportServer, data: bytes) -> bytes:
    """All that comes back."""
    with connected(server) as sock:
        sock.sendall(data)
        return b"".join(iter(lambda: sock.recv(65536), b""))


def test_a_get_is_answered_and_the_connection_closed(server: ReportServer) -> None:
    head, _, body = said(server, b"GET /x?y HTTP/1.1\r\nHost: x\r\n\r\n").partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nContent-Length: 5\r\n" in head
    assert b"\r\nConnection: close" in head
    assert body == b"/x?y\n"


def test_a_head_has_no_body(server: ReportServer) -> None:
    told = said(server, b"HEAD /x HTTP/1.0\r\n\r\n")

    assert told.startswith(b"HTTP/1.1 200 OK\r\n")
    assert told.endswith(b"\r\n\r\n")
    assert b"Content-Length: 3\r\n" in told


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"POST /readyz HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 405),
        (b"DELETE /readyz HTTP/1.1\r\n\r\n", 405),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /a /b HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET /" + b"x" * HEAD_SIZE_MAX + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 3 * HEAD_SIZE_MAX, 431),
    ],
    ids=["POST", "DELETE", "nonsense", "words", "version", "long", "endless"],
)
def test_what_is_no_get_is_refused(server: ReportServer, data: bytes, status: int) -> None:
    assert said(server, data).startswith(b"HTTP/1.1 %d " % status)


def test_a_bug_is_an_answer_and_no_end(
    server: ReportServer, caplog: pytest.LogCaptureFixture
) -> None:
    assert said(server, b"GET /broken HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 500 ")
    assert said(server, b"GET /x HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    assert "GET /broken could not be answered" in caplog.text


def test_who_says_nothing_keeps_nobody_waiting_for_long(server: ReportServer) -> None:
    """More of them than are let in together: they are shown out, and all others get their turn."""
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(server)) for _ in range(2 * CONNECTIONS_MAX)]
        silent[0].sendall(b"GET /x HTTP")

        answered = said(server, b"GET /x HTTP/1.1\r\n\r\n")

        assert answered.startswith(b"HTTP/1.1 200 ")
        assert silent[0].recv(1) == b""


def test_many_may_ask_at_once(server: ReportServer) -> None:
    answers: list[bytes] = []
    threads = [
        threading.Thread(
            target=lambda: answers.append(said(server, b"GET /x HTTP/1.1\r\n\r\n")), daemon=True
        )
        for _ in range(4 * CONNECTIONS_MAX)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [one[:12] for one in answers] == [b"HTTP/1.1 200"] * len(threads)


def test_once_it_is_left_nobody_is_there(server: ReportServer) -> None:
    with ReportServer("127.0.0.1:0", lambda _: Reply(200, "")) as other:
        url = other.url

    with pytest.raises(ConnectionRefusedError):
        request(url, "GET", "/")
    assert url != server.url


def test_a_taken_address_is_said_so_with_what_to_do(server: ReportServer) -> None:
    taken = server.url.removeprefix("http://")

    with pytest.raises(Unavailable, match=r"in use: is another agent at work\? Else have `listen`"):
        ReportServer(taken, lambda _: Reply(200, ""))
    with pytest.raises(Unavailable, match="have `listen` name an address of this VM"):
        ReportServer("192.0.2.1:0", lambda _: Reply(200, ""))


def test_without_a_host_it_listens_everywhere() -> None:
    with ReportServer(":0", lambda _: Reply(200, "here\n")) as server:
        port = server.url.rpartition(":")[2]

        assert request(f"http://127.0.0.1:{port}", "GET", "/").body == b"here\n"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8171", "127.0.0.1", 8171),
        (":0", "", 0),
        ("[::1]:80", "::1", 80),
        ("web-0.example:65535", "web-0.example", 65535),
    ],
)
def test_addresses_are_read(text: str, host: str, port: int) -> None:
    assert parse_address(text) == (host, port)


@pytest.mark.parametrize(
    "text", ["", "8171", "127.0.0.1", "x:65536", "x:-1", "x:1a", "x:²", "::1:80", "http://x:80"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match="HOST:PORT"):
        parse_address(text)


# -- the command `healthy` -----------------------------------------------------------------------


def test_a_command_says_yes_by_its_status_and_in_its_time(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    assert says_yes(("/bin/true",), {})
    assert not says_yes(("/bin/false",), {})
    assert not says_yes(("/no/such/command",), {})
    hanging = ("/bin/sh", "-c", f"sleep 600 & echo $! > {pid}; wait")
    assert not says_yes(hanging, {"PATH": os.defpath}, timedelta(seconds=0.5))
    # What it had started goes with it.
    wait_until(lambda: is_gone(pid.read_text().strip()))


def is_gone(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().split()[2]
    except (FileNotFoundError, ProcessLookupError):
        return True
    # It is over, and nobody has asked how it ended.
    return state in "ZX"


def wait_until(condition: Callable[[], bool]) -> None:
    nobody = threading.Event()
    for _ in range(2000):
        if condition():
            return
        nobody.wait(0.01)
    raise TimeoutError


def test_the_answer_is_kept_for_a_moment_for_whoever_asks(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    health = Health(("/bin/sh", "-c", f"echo . >> {asked}; exit 1"), {})

    answers = {health.is_well() for _ in range(20)}

    assert answers == {False}
    assert len(asked.read_text().split()) < 20
    assert Health(None, {}).is_well()


# -- what it costs -------------------------------------------------------------------------------


def test_an_idle_agent_carries_nothing_that_it_does_not_need() -> None:
    """TLS, OpenSSL's hashes, asyncio and Python's own server would each make it larger by a fifth."""
    program = (
        "import sys; import forewarn.agent.main; print(*({'ssl', '_hashlib', 'asyncio', 'http.server', "
        "'http.client', 'urllib.request', 'apprise'} & set(sys.modules)))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "\n"


# -- a real agent --------------------------------------------------------------------------------


def test_an_agent_tells_of_an_event_from_its_announcement_to_its_undoing(
    scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    agent = AgentProcess(tmp_path / "agent", scheduled_events.url)
    gates = {phase: tmp_path / phase for phase in ("prepare", "undo")}
    for phase, gate in gates.items():
        os.mkfifo(gate)
        agent.hook(phase, "10-wait", f"read line < {gate}")

    def wait_for(target: str, status: int) -> None:
        scheduled_events.wait_until(lambda: agent.get(target).status == status)

    with agent:
        assert agent.get("/healthz").status == 200
        agent.wait_for_log("this VM is web-0")
        assert agent.get("/readyz").status == 200
        event = scheduled_events.reboot("web-0")
        wait_for("/readyz", 503)
        assert agent.get("/drainz").status == 200
        assert agent.get(f"/readyz?event={event.id}").status == 503
        gates["prepare"].write_text("go\n")
        wait_for("/drainz", 503)
        wait_for(f"/readyz?event={event.id}", 200)
        scheduled_events.wait_until(lambda: event.status == "Started")
        scheduled_events.advance_to_next()
        scheduled_events.wait_until(
            lambda: agent.get("/events").json["events"][0]["phases"].get("undo")
        )
        assert agent.get("/readyz").status == 503
        gates["undo"].write_text("go\n")
        wait_for("/readyz", 200)
        told = {
            one.name: one
            for one in text_string_to_metric_families(agent.get("/metrics").body.decode())
        }

    assert event.approved_by == "web-0"
    runs = told["forewarn_agent_hook_runs"].samples
    assert {(one.labels["phase"], one.labels["result"]) for one in runs} == {
        ("prepare", "ready"),
        ("undo", "ready"),
    }
    assert told["azure_scheduledevent_request"].samples[-1].value > 0


def test_an_agent_whose_address_is_taken_says_so_and_ends(
    server: ReportServer, scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    taken = server.url.removeprefix("http://")
    agent = AgentProcess(tmp_path, scheduled_events.url, listen=taken)

    agent.start()

    assert agent.wait() == 6
    assert any("cannot listen at" in line and "`listen`" in line for line in agent.log)


def test_a_restarted_agent_is_not_ready_before_it_knows_what_became_of_its_event(
    scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    """Keeps the owner's peace: what was drained is used again when it was undone, and not sooner."""
    agent = AgentProcess(tmp_path, scheduled_events.url, 'rules = [{ approve = "never" }]\n')
    agent.hook("prepare", "10-drain", "exit 0")
    with agent:
        agent.wait_for_log("this VM is")
        event = scheduled_events.reboot("web-0")
        scheduled_events.wait_until(lambda: agent.get("/drainz").status == 503)
    # Nobody is there who could say who this VM is.
    nobody = AgentProcess(tmp_path, "http://127.0.0.1:1")

    with nobody:
        assert nobody.get("/readyz").status == 503
        assert nobody.get("/drainz").status == 503
        assert nobody.get(f"/readyz?event={event.id}").status == 503
        (told,) = nobody.get("/events").json["events"]

    assert told["why"] == "nobody has seen yet what has become of it"


def test_health_is_asked_of_the_owners_command(
    scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    flag = tmp_path / "well"
    flag.touch()
    agent = AgentProcess(tmp_path / "agent", scheduled_events.url, f'healthy = "test -e {flag}"\n')

    with agent:
        assert agent.get("/readyz").status == 200
        flag.unlink()
        scheduled_events.wait_until(lambda: agent.get("/readyz").status == 503)

        assert agent.get("/healthz").status == 200
