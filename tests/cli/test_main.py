"""The command line against a stand-in for the control API: arguments in, text and status out."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from forewarn.cli.connection import Connection
from forewarn.cli.main import build, main
from forewarn.errors import ForewarnError, Malformed, Refused, Unavailable
from forewarn.statuses import STATUS_OF
from forewarn.testing.authorities import local_tls

TOKEN = "right"
OPERATOR = {"client_id": "first", "client_secret": "s3cret"}
SOON = "4F2A0000-0000-4000-8000-000000000001"
STARTED = "4F2B0000-0000-4000-8000-000000000002"
ENDED = "9C010000-0000-4000-8000-000000000003"
NEW = "AAAA0000-0000-4000-8000-000000000004"
EVENT_MEMBERS = {
    *("event_id", "type", "status", "resources", "not_before", "scope", "resource_group", "source"),
    *("cause", "description", "duration_seconds", "update_domain", "announced", "announced_at"),
    *("announced_by", "readable_at", "approved", "hold", "started_at", "ended_at", "outcomes"),
    *("notice_promised_seconds", "notice_given_seconds", "not_before_earlier"),
}
COMMANDS = (
    *("announce", "approve", "backup", "cancel", "completion", "events", "fleet", "fleet apply"),
    *("journal", "journal export", "journal prune", "postpone", "principal add", "principal list"),
    *("principal revoke", "principal rotate", "resolve", "show", "restart", "redeploy", "freeze"),
    *("evict", "terminate", "stop", "start", "deallocate", "reimage", "wait", "env", "az-setup"),
    *("login", "logout", "whoami", "scenario run", "scenario list", "scenario show"),
    *("host list", "host drain", "host undrain", "host prepare", "host unprepare"),
)


def event(event_id: str, status: str = "Scheduled", **members: object) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "event_id": event_id,
        "type": "Freeze",
        "status": status,
        "resources": ["web-0", "web-1"],
        "not_before": (datetime.now(UTC) + timedelta(minutes=15)).isoformat(),
        "scope": "web",
        "resource_group": "rg1",
        "source": "Platform",
        "cause": "maintenance",
        "description": "new firmware",
        "duration_seconds": 9,
        "update_domain": 0,
        "announced": True,
        "announced_at": datetime.now(UTC).isoformat(),
        "announced_by": "operator",
        "readable_at": "2026-11-15T09:00:01Z",
        "approved": None,
        "hold": None,
        "started_at": None,
        "ended_at": None,
        "notice_promised_seconds": 900,
        "notice_given_seconds": None,
        "not_before_earlier": [],
        "outcomes": [],
    }
    return {**usual, **members}


ENDED_EVENT = event(
    ENDED,
    "Completed",
    announced_at="2026-11-15T09:00:00Z",
    not_before="2026-11-15T10:15:02Z",
    not_before_earlier=["2026-11-15T09:15:02Z"],
    approved={
        "by": "web-1",
        "role": "guest",
        "address": "10.77.0.12",
        "at": "2026-11-15T09:30:00Z",
    },
    started_at="2026-11-15T09:30:01Z",
    ended_at="2026-11-15T09:30:10Z",
    notice_given_seconds=1800,
    outcomes=[
        {"resource": "web-0", "result": "done", "at": "2026-11-15T09:30:09Z", "detail": ""},
        {
            "resource": "web-1",
            "result": "failed",
            "at": "2026-11-15T09:30:10Z",
            "detail": "no disk",
        },
    ],
)
FLEET = {
    "scopes": [
        {
            "scope": "web",
            "resource_group": "rg1",
            "kind": "availability-set",
            "enabled": True,
            "update_domains": 3,
            "machines": [
                {
                    "name": "web-0",
                    "addresses": ["10.77.0.11", "fd00::11"],
                    "host": "host-a",
                    "update_domain": 0,
                    "presence": "running",
                    "origin": "file",
                    "vm_id": "1",
                }
            ],
        },
        {
            "scope": "db",
            "resource_group": "rg1",
            "kind": "standalone",
            "enabled": False,
            "update_domains": 1,
            "machines": [],
        },
    ]
}


DASHBOARD: dict[str, object] = {
    "id": "d-1",
    "name": "dashboard",
    "role": "reader",
    "groups": ["shop"],
    "created_at": "2026-10-01T12:00:00Z",
    "revoked_at": None,
    "old_secret_until": None,
}
GONE: dict[str, object] = {
    **DASHBOARD,
    "id": "g-1",
    "name": "gone",
    "revoked_at": "2026-10-02T12:00:00Z",
}
TURNING: dict[str, object] = {**DASHBOARD, "groups": [], "old_secret_until": "2026-10-03T12:00:00Z"}
TOLD_ONCE: dict[str, object] = {"client_secret": "n3w", "tenant_id": "t-1"}
PRINCIPALS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("GET", "/principals", {"principals": [DASHBOARD, GONE, TURNING]}),
    ("POST", "/principals", {"principal": DASHBOARD, **TOLD_ONCE}),
    ("POST", "/principals/dashboard/rotate", {"principal": TURNING, **TOLD_ONCE}),
    ("POST", "/principals/gone/revoke", GONE),
)

HOST_A: dict[str, object] = {
    "host": "host-a",
    "scopes": [{"scope": "web", "resource_group": "rg1", "machines": ["web-0", "web-1"]}],
    "events": [event(SOON)],
    "is_busy": True,
    "is_drained": True,
    "memory_free_mib": 2048,
    "trouble": "host host-a cannot be reached",
}
HOST_B: dict[str, object] = {
    **HOST_A,
    "host": "host-b",
    "scopes": [{"scope": "db", "resource_group": "rg1", "machines": [f"db-{n}" for n in range(8)]}],
    "events": [],
    "is_busy": False,
    "is_drained": False,
    "memory_free_mib": None,
    "trouble": None,
}
HOSTS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("GET", "/hosts", {"hosts": [HOST_A, HOST_B]}),
    ("POST", "/hosts/host-a/drain", {"events": [event(NEW)], "unannounced": []}),
    ("POST", "/hosts/host-b/drain", {"events": [], "unannounced": []}),
    ("POST", "/hosts/host-b/undrain", HOST_B),
)


class StandIn:
    """What the control API would answer, from canned data; it remembers what it was asked."""

    def __init__(self) -> None:
        self.events = [event(SOON), event(STARTED, "Started", hold=None), ENDED_EVENT]
        self.entries: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str, Any]] = []
        self.refusals: dict[str, tuple[int, object]] = {}
        self.news = threading.Condition()
        self.delay = 0.0
        self.token = TOKEN
        self.logins = 0
        for number, what in enumerate(["announced", "readable", "approved", "started"]):
            self.write(what, f"2026-10-0{number + 1}T12:00:00Z")

    def write(self, what: str, at: str, *, scope: str = "web", note: str = "") -> None:
        with self.news:
            entry = {
                "cursor": str(len(self.entries) + 1),
                "at": at,
                "scope": scope,
                "resource_group": "rg1" if scope else "",
                "what": what,
                "by": {"role": "operator", "name": "ann", "address": "127.0.0.1"},
                "event": event(SOON) if scope else None,
                "note": note,
                "incarnation": 1,
            }
            self.entries.append(entry)
            self.news.notify_all()

    def answer(self, method: str, target: str, body: dict[str, Any]) -> tuple[int, object]:
        self.asked.append((method, target, body))
        time.sleep(self.delay)
        path = urlsplit(target).path.removeprefix("/fabric/v1")
        if path in self.refusals:
            return self.refusals[path]
        if path.startswith("/events/"):
            return self.one(path.split("/")[2])
        query = dict(parse_qsl(urlsplit(target).query))
        canned: dict[tuple[str, str], Callable[[], object]] = {
            ("GET", "/fleet"): lambda: FLEET,
            ("POST", "/fleet"): lambda: {"changes": ["rg1/web: added web-3"]},
            ("POST", "/fleet/reload"): lambda: {"changes": []},
            ("GET", "/events"): lambda: {"events": self.listed(query["status"])},
            ("POST", "/events"): lambda: {"events": [event(NEW)], "unannounced": []},
            ("GET", "/journal"): lambda: self.page(query),
            ("POST", "/journal/prune"): lambda: {"pruned": 2},
            ("POST", "/backup"): lambda: body,
        }
        canned.update(
            {(verb, asked): partial(dict, told) for verb, asked, told in (*PRINCIPALS, *HOSTS)}
        )
        return 200, canned[method, path]()

    def log_in(self, form: dict[str, str]) -> tuple[int, object]:
        self.logins += 1
        if "login" in self.refusals:
            return self.refusals["login"]
        if form["client_secret"] != OPERATOR["client_secret"]:
            return 401, {"error": "invalid_client", "error_description": "no"}
        return 200, {"access_token": self.token, "token_type": "Bearer"}

    def listed(self, status: str) -> list[dict[str, Any]]:
        return [known for known in self.events if status == "all" or not known["ended_at"]]

    def one(self, event_id: str) -> tuple[int, object]:
        for known in self.events:
            if known["event_id"] == event_id:
                return 200, known
        return 404, {"error": {"code": "Unknown", "message": f"no event {event_id}"}}

    def page(self, query: dict[str, str]) -> dict[str, Any]:
        """At most two entries, so that a few make several pages."""
        after = int(query.get("after", "0"))
        with self.news:
            if "wait" in query:
                self.news.wait_for(lambda: len(self.entries) > after, timeout=1)
            entries = self.entries[after : after + 2]
        is_last = after + len(entries) == len(self.entries)
        return {"entries": entries, "cursor": str(after + len(entries)), "is_last": is_last}


class Speaker(BaseHTTPRequestHandler):
    stand_in: StandIn

    def do_GET(self) -> None:
        self.reply({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/adfs/oauth2/v2.0/token"):
            self.send(*self.stand_in.log_in(dict(parse_qsl(body.decode()))))
        else:
            self.reply(json.loads(body))

    def reply(self, body: dict[str, Any]) -> None:
        if self.headers["Authorization"] == f"Bearer {TOKEN}":
            answer = self.stand_in.answer(self.command, self.path, body)
        else:
            answer = 401, {"error": {"code": "AuthenticationFailed", "message": "no"}}
        self.send(*answer)

    def send(self, status: int, content: object) -> None:
        payload = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""


@pytest.fixture
def api() -> StandIn:
    return StandIn()


@pytest.fixture
def data(api: StandIn, tmp_path: Path) -> Iterator[Path]:
    """The data directory of a service that runs."""
    speaker = type("Speaker", (Speaker,), {"stand_in": api})
    server = ThreadingHTTPServer(("127.0.0.1", 0), speaker)
    server.block_on_close = True
    server.socket = local_tls().server.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    url = f"https://127.0.0.1:{server.server_port}"
    endpoint = {"control": url, "metadata": ["http://127.0.0.1:8169"], "pid": os.getpid()}
    (tmp_path / "endpoint.json").write_text(json.dumps({**endpoint, "ca": "ca.pem"}))
    (tmp_path / "ca.pem").write_bytes(local_tls().authority)
    (tmp_path / "operator.json").write_text(json.dumps(OPERATOR))
    yield tmp_path
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str]) -> Output:
    return Output(capsys)


class Output:
    """Runs a command in this process; then has its status and what it wrote."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.text = self.error = ""

    def of(self, *words: str) -> int:
        status = main(words)
        self.text, self.error = self.capsys.readouterr()
        return status

    @property
    def json(self) -> dict[str, Any]:
        content = json.loads(self.text)
        assert isinstance(content, dict)
        return content


def process(*words: str, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOREWARN_")}
    return subprocess.Popen(
        [sys.executable, "-m", "forewarn", *words],
        cwd=cwd,
        env={**kept, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# What is shown.


def test_events_are_listed_as_columns_with_the_time_that_is_left(data: Path, out: Output) -> None:
    """keeps S23: administrators can look up what is coming."""
    assert out.of("events", "--data", str(data)) == 0

    heading, soon, started = out.text.splitlines()
    assert heading.split()[:4] == ["EVENT", "TYPE", "STATUS", "VMS"]
    assert soon.startswith(f"{SOON}  Freeze  Scheduled  web-0, web-1")
    assert re.search(r"Z \(in 14m 5\ds\)  rg1/web$", soon)
    assert started.startswith(STARTED)


def test_ended_events_are_listed_on_request(data: Path, out: Output) -> None:
    assert out.of("events", "--all", "--data", str(data)) == 0

    assert f"{ENDED}  Freeze  Completed" in out.text


def test_events_as_json_have_all_their_members(data: Path, out: Output) -> None:
    assert out.of("events", "--json", "--data", str(data)) == 0

    assert [listed["event_id"] for listed in out.json["events"]] == [SOON, STARTED]
    assert all(set(listed) == EVENT_MEMBERS for listed in out.json["events"])
    assert set(out.json) == {"events"}


def test_no_events_are_said_in_words(data: Path, api: StandIn, out: Output) -> None:
    api.events = []

    assert out.of("events", "--data", str(data)) == 0
    assert out.text.startswith("no open events")


def test_the_record_of_an_event_says_who_approved_from_where_and_how_much_notice_was_given(
    data: Path, out: Output
) -> None:
    """keeps N6: announced, readable, approved, started, ended."""
    assert out.of("show", "9c01", "--data", str(data)) == 0

    lines = {line[:19].strip(): line[21:] for line in out.text.splitlines()}
    assert lines["Announced"] == "2026-11-15 09:00:00Z by operator"
    assert lines["Readable"] == "2026-11-15 09:00:01Z"
    assert lines["Approved"] == "2026-11-15 09:30:00Z by guest web-1 from 10.77.0.12"
    assert lines["Started"] == "2026-11-15 09:30:01Z"
    assert lines["Ended"] == "2026-11-15 09:30:10Z"
    assert lines["Notice promised"] == "15m"
    assert lines["Notice given"] == "30m"
    assert lines["Not before"] == "2026-11-15 10:15:02Z"
    assert lines["Not before, earlier"] == "2026-11-15 09:15:02Z"
    assert "web-1 failed at 2026-11-15 09:30:10Z: no disk" in out.text


def test_the_record_as_json_is_the_event(data: Path, out: Output) -> None:
    assert out.of("show", SOON.lower(), "--json", "--data", str(data)) == 0

    assert set(out.json) == EVENT_MEMBERS


def test_the_fleet_is_shown_by_scope(data: Path, out: Output) -> None:
    assert out.of("fleet", "--data", str(data)) == 0

    lines = out.text.splitlines()
    assert lines[0] == "rg1/web (availability-set, enabled)"
    assert lines[2].split() == ["web-0", "10.77.0.11,", "fd00::11", "host-a", "0", "running"]
    assert lines[4] == "rg1/db (standalone, not enabled)"


def test_the_fleet_as_json_is_as_the_service_tells_it(data: Path, out: Output) -> None:
    assert out.of("fleet", "--json", "--data", str(data)) == 0

    assert out.json == FLEET


def test_what_others_wrote_cannot_command_the_terminal(
    data: Path, api: StandIn, out: Output
) -> None:
    api.events = [event(SOON, description="\x1b[2Jgone\nnew line")]

    assert out.of("show", SOON, "--data", str(data)) == 0
    assert "\x1b" not in out.text
    assert "[2Jgone\N{REPLACEMENT CHARACTER}new line" in out.text


# What is asked for.


def test_an_announcement_says_what_was_typed(data: Path, api: StandIn, out: Output) -> None:
    words = [
        *("announce", "FREEZE", "web-0", "web-1", "--host", "host-a", "--host", "host-b"),
        *("--notice", "20m", "--source", "user", "--cause", "predicted-failure"),
        *("--description", "new disk", "--duration", "9s", "--unannounced", "--data", str(data)),
    ]

    assert out.of(*words) == 0
    assert NEW in out.text
    assert api.asked[-1][2] == {
        "type": "Freeze",
        "machines": ["web-0", "web-1"],
        "hosts": ["host-a", "host-b"],
        "source": "user",
        "cause": "predicted-failure",
        "notice_seconds": 1200,
        "duration_seconds": 9,
        "description": "new disk",
        "unannounced": True,
    }


def test_an_announcement_as_json_has_two_members(data: Path, out: Output) -> None:
    assert out.of("announce", "reboot", "web-0", "--json", "--data", str(data)) == 0

    assert set(out.json) == {"events", "unannounced"}
    assert set(out.json["events"][0]) == EVENT_MEMBERS
    assert out.json["unannounced"] == []


@pytest.mark.parametrize(
    ("words", "path", "body"),
    [
        (["approve", SOON], f"/events/{SOON}/approve", {}),
        (["cancel", "4f2a"], f"/events/{SOON}/cancel", {}),
        (["postpone", "4F2A", "--by", "1h30m"], f"/events/{SOON}/postpone", {"by_seconds": 5400}),
        (
            ["postpone", "4F2A", "--to", "2026-11-16T10:00:00+01:00"],
            f"/events/{SOON}/postpone",
            {"to": "2026-11-16T09:00:00Z"},
        ),
        (["resolve", "4F2B", "--failed"], f"/events/{STARTED}/resolve", {"result": "failed"}),
        (["resolve", "4F2B", "--completed"], f"/events/{STARTED}/resolve", {"result": "completed"}),
        (["fleet", "apply"], "/fleet/reload", {}),
        (["backup", "/tmp/b.db"], "/backup", {"path": "/tmp/b.db"}),
    ],
)
def test_a_step_is_asked_for_once(
    words: list[str], path: str, body: object, data: Path, api: StandIn, out: Output
) -> None:
    assert out.of(*words, "--data", str(data)) == 0

    asked = [request for request in api.asked if request[0] == "POST"]
    assert asked == [("POST", f"/fabric/v1{path}", body)]
    assert len(out.text.splitlines()) == 1


def test_several_events_are_approved_in_one_go(data: Path, api: StandIn, out: Output) -> None:
    assert out.of("approve", "4F2A", "4F2B", "4f2a", "--json", "--data", str(data)) == 0

    posted = [target for method, target, _ in api.asked if method == "POST"]
    assert posted == [f"/fabric/v1/events/{event_id}/approve" for event_id in (SOON, STARTED)]
    assert [listed["event_id"] for listed in out.json["events"]] == [SOON, STARTED]


def test_a_fleet_file_is_sent_and_its_changes_are_told(
    data: Path, api: StandIn, out: Output
) -> None:
    file = data / "fleet.toml"
    file.write_text('[[scope]]\nname = "web"\n')

    assert out.of("fleet", "apply", str(file), "--data", str(data)) == 0
    assert api.asked[-1][2] == {"toml": file.read_text(), "name": str(file)}
    assert out.text == "rg1/web: added web-3\n"


def test_a_fleet_file_with_faults_is_a_line_for_each_and_a_summary(
    data: Path, api: StandIn, out: Output
) -> None:
    file = data / "fleet.toml"
    file.write_text("")
    told = f"{file}:1: wrong: mend it\n{file}:2: wrong, too: mend it"
    api.refusals["/fleet"] = 400, {"error": {"code": "Malformed", "message": told}}

    assert out.of("fleet", "apply", str(file), "--data", str(data)) == 2
    assert out.error == f"{told}\nforewarn: 2 errors, nothing was changed\n"


def test_what_an_approval_came_to_is_told(data: Path, api: StandIn, out: Output) -> None:
    approval = {"by": "web-0", "role": "guest", "address": "", "at": "2026-11-15T09:30:00Z"}
    api.events.append(event(NEW, approved=approval))

    assert out.of("approve", SOON, STARTED, NEW, "--data", str(data)) == 0
    assert out.text.splitlines() == [
        f"approved {SOON} (Freeze of web-0, web-1)",
        f"{STARTED} (Freeze of web-0, web-1) is Started already: no approval was needed",
        f"{NEW} (Freeze of web-0, web-1) was already approved by web-0",
    ]


def test_an_event_that_is_over_is_not_approved(data: Path, api: StandIn, out: Output) -> None:
    assert out.of("approve", SOON, ENDED, "--data", str(data)) == 3
    assert out.error.endswith("is Completed: nothing to approve\n")
    assert not [method for method, _, _ in api.asked if method == "POST"]


def test_the_record_of_a_canceled_event_says_why(data: Path, api: StandIn, out: Output) -> None:
    api.events = [event(SOON, "Canceled", ended_at="2026-11-15T09:30:10Z")]
    api.write("canceled", "2026-11-15T09:30:10Z", note="web-0 is gone")

    assert out.of("show", SOON, "--data", str(data)) == 0
    assert re.search(r"\nCanceled +by operator ann from 127.0.0.1: web-0 is gone\n", out.text)


def test_remarks_tell_what_is_unusual(data: Path, api: StandIn, out: Output) -> None:
    now = datetime.now(UTC)
    failed = {"resource": "web-1", "result": "failed", "at": now.isoformat(), "detail": ""}
    api.events = [
        event(SOON, hold="Freeze X is started on web-0"),
        event(NEW, not_before=(now + timedelta(hours=1)).isoformat()),
        event(STARTED, "Started", announced=False, started_at=now.isoformat()),
        event(ENDED, "Completed", ended_at=now.isoformat(), outcomes=[failed]),
    ]

    assert out.of("events", "--all", "--data", str(data)) == 0
    _, held, spaced, unannounced, ended = out.text.splitlines()
    assert held.endswith("  held: Freeze X is started on web-0")
    assert spaced.endswith("  after other update domains and their recovery")
    assert re.search(r"web-1 {2,}rg1/web  unannounced; started \S+ \S+Z \(.*\)$", unannounced)
    assert "  failed on web-1; ended" in ended


# The journal.


def test_the_journal_is_read_page_by_page(data: Path, api: StandIn, out: Output) -> None:
    """keeps S23: the service keeps a log of events."""
    assert out.of("journal", "--scope", "rg1/web", "--data", str(data)) == 0

    lines = out.text.splitlines()
    assert [line.split()[2] for line in lines] == ["announced", "readable", "approved", "started"]
    assert lines[0].endswith("by operator ann from 127.0.0.1")
    assert all("scope=rg1%2Fweb" in target for _, target, _ in api.asked)


def test_the_journal_goes_on_from_a_cursor(data: Path, out: Output) -> None:
    assert out.of("journal", "--since", "3", "--json", "--data", str(data)) == 0

    assert [entry["what"] for entry in out.json["entries"]] == ["started"]
    assert out.json["cursor"] == "4"


def test_the_journal_is_followed_until_somebody_interrupts(data: Path, api: StandIn) -> None:
    running = process("journal", "--follow", "--json", "--data", str(data), cwd=data)
    assert running.stdout is not None
    first = [json.loads(running.stdout.readline())["what"] for _ in range(4)]

    api.write("completed", "2026-10-09T12:00:00Z")
    later = json.loads(running.stdout.readline())["what"]
    running.send_signal(signal.SIGINT)
    _, error = running.communicate(timeout=10)

    assert [*first, later] == ["announced", "readable", "approved", "started", "completed"]
    assert (running.returncode, error) == (130, "")


def test_a_reader_who_has_seen_enough_is_no_error(data: Path, api: StandIn) -> None:
    running = process("journal", "--follow", "--data", str(data), cwd=data)
    assert running.stdout is not None
    assert running.stderr is not None
    for _ in range(4):
        running.stdout.readline()

    running.stdout.close()
    api.write("completed", "2026-10-09T12:00:00Z")

    assert running.wait(timeout=10) == 141
    assert running.stderr.read() == ""
    running.stderr.close()


def test_an_export_holds_the_whole_journal_and_replaces_nothing(
    data: Path, api: StandIn, out: Output
) -> None:
    file = data / "journal.jsonl"

    assert out.of("journal", "export", str(file), "--data", str(data)) == 0
    assert [json.loads(line) for line in file.read_text().splitlines()] == api.entries
    assert out.text == f"wrote 4 entries to {file}\n"

    assert out.of("journal", "export", str(file), "--data", str(data)) == 3
    assert "exists already" in out.error
    assert [path.name for path in data.glob("*journal*")] == ["journal.jsonl"]


def test_what_is_pruned_was_exported_before(data: Path, api: StandIn, out: Output) -> None:
    file = data / "old.jsonl"
    words = ("journal", "prune", "--before", "2026-10-03", "--export", str(file))

    assert out.of(*words, "--data", str(data)) == 0
    assert [json.loads(line) for line in file.read_text().splitlines()] == api.entries[:2]
    assert api.asked[-1][2] == {"before": "2026-10-03T00:00:00Z"}


def test_pruning_never_reaches_beyond_what_was_exported(
    data: Path, api: StandIn, out: Output
) -> None:
    """What is written between the export and the pruning has no copy yet."""
    words = ("journal", "prune", "--before", "2099-01-01", "--export", str(data / "all.jsonl"))

    assert out.of(*words, "--data", str(data)) == 0
    assert api.asked[-1][2] == {"before": api.entries[-1]["at"]}


def test_nothing_is_pruned_when_the_export_cannot_be_written(
    data: Path, api: StandIn, out: Output
) -> None:
    words = ("journal", "prune", "--before", "2026-10-03", "--export", str(data / "no" / "file"))

    assert out.of(*words, "--data", str(data)) == 2
    assert out.error.startswith(f"forewarn: there is no directory {data / 'no'}: make it")
    assert not [method for method, _, _ in api.asked if method == "POST"]


def test_pruning_without_a_copy_takes_the_word_for_it(
    data: Path, api: StandIn, out: Output
) -> None:
    words = ("journal", "prune", "--before", "2026-10-03", "--data", str(data))

    assert out.of(*words) == 2
    assert api.asked == []
    assert out.of(*words, "--no-export") == 0
    assert out.text == "pruned 2 entries\n"


def test_the_journal_is_read_from_a_day_or_a_time_on(data: Path, out: Output) -> None:
    assert out.of("journal", "--since", "2026-10-03", "--json", "--data", str(data)) == 0
    assert [entry["what"] for entry in out.json["entries"]] == ["approved", "started"]

    assert out.of("journal", "--since", "2026-10-04T12:00:00Z", "--data", str(data)) == 0
    assert len(out.text.splitlines()) == 1


def test_upkeep_has_answers_for_programs_too(data: Path, out: Output) -> None:
    file, old = data / "journal.jsonl", data / "old.jsonl"
    place = ("--json", "--data", str(data))

    assert out.of("journal", "export", str(file), *place) == 0
    assert out.json == {"entries": 4, "path": str(file)}
    assert out.of("journal", "prune", "--before", "2026-10-03", "--export", str(old), *place) == 0
    assert out.json == {"exported": 2, "pruned": 2}
    assert out.of("journal", "prune", "--before", "2026-10-03", "--no-export", *place) == 0
    assert out.json == {"exported": 0, "pruned": 2}
    assert out.of("backup", "/tmp/b.db", *place) == 0
    assert out.json == {"path": "/tmp/b.db"}
    assert out.of("fleet", "apply", *place) == 0
    assert out.json == {"changes": []}


# Ids.


def test_a_prefix_that_several_events_have_is_refused(
    data: Path, api: StandIn, out: Output
) -> None:
    api.events.append(event("4F2A0000-0000-4000-8000-000000000009"))

    assert out.of("cancel", "4f2a", "--data", str(data)) == 2
    assert out.error.startswith("forewarn: several events begin with 4f2a: 4F2A0000-")
    assert not [method for method, _, _ in api.asked if method == "POST"]


def test_a_prefix_is_four_characters_or_more(data: Path, out: Output) -> None:
    assert out.of("cancel", "4F2", "--data", str(data)) == 2
    assert "at least 4 characters" in out.error


def test_of_several_ids_one_that_is_unknown_stops_all(
    data: Path, api: StandIn, out: Output
) -> None:
    assert out.of("approve", "4F2A", "BEEF", "--data", str(data)) == 4
    assert "no event BEEF" in out.error
    assert out.error.endswith("nothing was approved\n")
    assert not [method for method, _, _ in api.asked if method == "POST"]


# Errors.


@pytest.mark.parametrize(
    ("family", "http", "status"),
    [
        ("Malformed", 400, 2),
        ("Refused", 409, 3),
        ("Unknown", 404, 4),
        ("Conflict", 503, 5),
        ("Unavailable", 503, 6),
    ],
)
def test_an_error_of_the_service_is_one_line_and_a_status_by_its_family(
    family: str, http: int, status: int, data: Path, api: StandIn, out: Output
) -> None:
    api.refusals["/events"] = http, {"error": {"code": family, "message": "think again"}}

    assert out.of("announce", "freeze", "web-0", "--data", str(data)) == status
    assert out.error == "forewarn: think again\n"
    assert out.text == ""


def test_every_family_has_a_status() -> None:
    for family in (*ForewarnError.__subclasses__(), *Refused.__subclasses__()):
        assert any(issubclass(family, known) for known in STATUS_OF)


@pytest.mark.parametrize(
    "words",
    [
        ["bogus"],
        ["announce"],
        ["announce", "bogus", "web-0"],
        ["announce", "freeze"],
        ["announce", "freeze", "web-0", "--notice", "soon"],
        ["events", "--frobnicate"],
        ["events", "surplus"],
        ["postpone", "4F2A"],
        ["postpone", "4F2A", "--by", "1h", "--to", "2026-11-16T09:00:00Z"],
        ["postpone", "4F2A", "--to", "2026-11-16T09:00:00"],
        ["resolve", "4F2A"],
        ["resolve", "4F2A", "--completed", "--failed"],
        ["fleet", "apply", "/nowhere/fleet.toml"],
        ["journal", "prune", "--before", "yesterday", "--no-export"],
        ["completion", "tcsh"],
        ["--data"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_understood_is_one_line_and_status_two(
    words: list[str], data: Path, api: StandIn, out: Output
) -> None:
    place = [] if words == ["--data"] or words[0] == "completion" else ["--data", str(data)]

    assert out.of(*words, *place) == 2
    assert re.fullmatch(r"forewarn: .+\n", out.error)
    assert out.text == ""
    assert not [method for method, _, _ in api.asked if method == "POST"]


def test_an_output_that_takes_nothing_is_one_line(data: Path) -> None:
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(
            [sys.executable, "-m", "forewarn", "events", "--data", str(data)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert told.returncode == 6
    assert re.fullmatch(r"forewarn: the output could not be written \(No space.*\n", told.stderr)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["evnts"], 'there is no command "evnts" (did you mean "events"?)'),
        (["events", "AFCE"], "unexpected: AFCE"),
        (["announce", "freeze", "web-0", "--notice", "-5m"], "'-5m' is not a duration"),
    ],
)
def test_a_slip_of_the_pen_is_told_as_one(words: list[str], fault: str, out: Output) -> None:
    assert out.of(*words) == 2
    assert out.error.startswith(f"forewarn: {fault}")


def test_where_no_service_runs_it_is_said_how_to_start_one(tmp_path: Path, out: Output) -> None:
    assert out.of("events", "--data", str(tmp_path)) == 6
    assert f"start it with `forewarn serve --data {tmp_path}`" in out.error


def test_a_service_that_has_stopped_is_unavailable(tmp_path: Path, out: Output) -> None:
    (tmp_path / "endpoint.json").write_text('{"control": "https://127.0.0.1:1"}')
    (tmp_path / "operator.json").write_text(json.dumps(OPERATOR))

    assert out.of("events", "--data", str(tmp_path)) == 6
    assert "no service answers at https://127.0.0.1:1 (Connection refused): " in out.error
    assert "forewarn serve" in out.error


def test_a_wrong_secret_is_refused_with_the_way_to_the_right_one(data: Path, out: Output) -> None:
    (data / "operator.json").write_text(json.dumps({**OPERATOR, "client_secret": "wr0ng"}))

    assert out.of("events", "--data", str(data)) == 3
    assert "does not know first by this secret" in out.error
    assert "--credentials" in out.error
    assert "wr0ng" not in out.error


def test_a_token_that_is_over_is_replaced_and_another_refusal_is_told(
    data: Path, api: StandIn
) -> None:
    client = Connection(data=data).client()
    client.transport.session.token = "over"

    assert client.events("open")
    assert (client.transport.session.token, api.logins) == (TOKEN, 1)
    api.token = "useless"
    client.transport.session.token = "over"
    with pytest.raises(Refused, match="no"):
        client.events("open")
    assert api.logins == 2


@pytest.mark.parametrize(
    ("answer", "family"),
    [
        ((429, {"error": "slow_down", "error_description": "wait"}), Unavailable),
        ((400, {"error": "invalid_request", "error_description": "what?"}), Malformed),
        ((200, {}), Unavailable),
        ((502, b"<html>"), Unavailable),
    ],
)
def test_what_a_login_is_told_becomes_a_family(
    answer: tuple[int, object], family: type[ForewarnError], data: Path, api: StandIn
) -> None:
    api.refusals["login"] = answer

    with pytest.raises(family):
        Connection(data=data).client().events("open")


def test_a_certificate_of_somebody_else_is_not_trusted(data: Path, out: Output) -> None:
    (data / "endpoint.json").write_text(
        json.dumps({"control": json.loads((data / "endpoint.json").read_text())["control"]})
    )

    assert out.of("events", "--data", str(data)) == 3
    assert "is not to be trusted" in out.error
    assert "--ca FILE" in out.error


@pytest.mark.parametrize(
    "answer", [(200, b"<html>"), (500, b"oops"), (404, {"error": "x"}), (418, {"error": {}})]
)
def test_somebody_elses_server_is_recognized(
    answer: tuple[int, object], data: Path, api: StandIn, out: Output
) -> None:
    api.refusals["/events"] = answer

    assert out.of("events", "--data", str(data)) == 6
    assert "is no service that this command line understands" in out.error


# Who may call.


def test_hosts_are_listed_with_what_is_against_placing_there(data: Path, out: Output) -> None:
    assert out.of("host", "list", "--data", str(data)) == 0

    _, host_a, host_b = out.text.splitlines()
    state = "host host-a cannot be reached, drained, an impact is under way"
    assert re.split(r"  +", host_a) == ["host-a", state, "web-0, web-1", "1", "2048 MiB"]
    assert re.split(r"  +", host_b.strip())[:2] == ["host-b", "open"]
    assert "db-5 and 2 more" in host_b
    assert out.of("host", "list", "--json", "--data", str(data)) == 0
    assert out.json == {"hosts": [HOST_A, HOST_B]}


def test_a_host_is_drained_and_undrained(data: Path, api: StandIn, out: Output) -> None:
    words = ("host", "drain", "host-a", "--move", "--notice", "1h", "--data", str(data))

    assert out.of(*words) == 0

    (wish,) = (asked[2] for asked in api.asked if asked[1].endswith("/drain"))
    assert wish["move"] is True
    assert wish["notice_seconds"] == 3600
    assert "host-a is drained" in out.text
    assert NEW in out.text
    assert out.of(*words, "--json") == 0
    assert [one["event_id"] for one in out.json["events"]] == [NEW]
    assert out.of("host", "drain", "host-b", "--move", "--data", str(data)) == 0
    assert "no VM there needs to be told" in out.text
    assert out.of("host", "undrain", "host-b", "--data", str(data)) == 0
    assert out.text == "VMs may be placed on host-b again\n"
    assert out.of("host", "undrain", "host-b", "--json", "--data", str(data)) == 0
    assert out.json == HOST_B


def test_what_is_said_to_vms_that_stay_is_refused(data: Path, out: Output) -> None:
    assert out.of("host", "drain", "host-a", "--notice", "1h", "--data", str(data)) == 2
    assert "add --move" in out.error


def test_no_hosts_are_said_in_words(data: Path, api: StandIn, out: Output) -> None:
    api.refusals["/hosts"] = (200, {"hosts": []})

    assert out.of("host", "list", "--data", str(data)) == 0
    assert out.text.startswith("no hosts are known")


def test_a_principal_is_added_and_its_secret_shown_once(
    data: Path, api: StandIn, out: Output
) -> None:
    words = ("principal", "add", "dashboard", "--role", "reader", "--group", "shop")

    assert out.of(*words, "--client-id", "d-1", "--data", str(data)) == 0
    assert api.asked[-1][2] == {
        "name": "dashboard",
        "role": "reader",
        "groups": ["shop"],
        "id": "d-1",
    }
    for word in ("d-1", "n3w", "t-1", "shop", "the secret is not shown again"):
        assert word in out.text
    assert out.of(*words, "--json", "--data", str(data)) == 0
    assert "id" not in api.asked[-1][2]
    made = json.loads(out.text)
    assert (made["client_id"], made["client_secret"], made["tenant_id"]) == ("d-1", "n3w", "t-1")


def test_principals_are_listed_without_those_that_are_gone(data: Path, out: Output) -> None:
    assert out.of("principal", "list", "--data", str(data)) == 0
    assert "active" in out.text
    assert "old secret until 2026-10-03" in out.text
    assert "gone" not in out.text
    assert out.of("principal", "list", "--all", "--data", str(data)) == 0
    assert "revoked 2026-10-02" in out.text
    assert out.of("principal", "list", "--json", "--data", str(data)) == 0
    assert len(json.loads(out.text)["principals"]) == 2


def test_a_secret_is_rotated_and_a_principal_revoked(data: Path, api: StandIn, out: Output) -> None:
    assert out.of("principal", "rotate", "dashboard", "--keep-old", "1h", "--data", str(data)) == 0
    assert api.asked[-1][2] == {"keep_old_seconds": 3600.0}
    assert "2026-10-03" in out.text
    assert out.of("principal", "revoke", "gone", "--data", str(data)) == 0
    assert out.text == "gone (g-1) is revoked\n"
    assert out.of("principal", "revoke", "gone", "--json", "--data", str(data)) == 0
    assert json.loads(out.text) == GONE


# Which service.


@pytest.mark.parametrize("form", ["{0} {1} events", "{0}={1} events", "events {0} {1}"])
def test_the_options_of_the_connection_stand_before_or_after_the_command(
    form: str, data: Path, out: Output
) -> None:
    assert out.of(*form.format("--data", data).split()) == 0
    assert SOON in out.text


def test_they_may_even_stand_between_two_words_of_a_command(data: Path, out: Output) -> None:
    file = data / "journal.jsonl"

    assert out.of("journal", "--data", str(data), "export", str(file)) == 0
    assert file.exists()


def test_a_service_elsewhere_is_found_by_address_and_files(data: Path, out: Output) -> None:
    url = json.loads((data / "endpoint.json").read_text())["control"]

    trusted = ("--ca", str(data / "ca.pem"), "--credentials", str(data / "operator.json"))
    assert out.of("events", "--endpoint", f"{url}/", *trusted) == 0
    assert SOON in out.text


def test_the_environment_says_which_service_where_the_words_do_not(
    data: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    url = json.loads((data / "endpoint.json").read_text())["control"]
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / ".forewarn").symlink_to(data)

    by_data = process("events", cwd=data, FOREWARN_DATA=str(data))
    by_endpoint = process(
        "events",
        cwd=data,
        FOREWARN_ENDPOINT=url,
        FOREWARN_CA=str(data / "ca.pem"),
        FOREWARN_CLIENT_ID=OPERATOR["client_id"],
        FOREWARN_CLIENT_SECRET=OPERATOR["client_secret"],
    )
    by_place = process("events", cwd=elsewhere)

    for running in (by_data, by_endpoint, by_place):
        text, error = running.communicate(timeout=20)
        assert (running.returncode, error) == (0, "")
        assert SOON in text


# Help, completion, terminals.


def test_bare_forewarn_shows_all_commands_and_every_exit_status(out: Output) -> None:
    assert out.of() == 0

    for name in ("serve", "demo", "check-config", "restore", *COMMANDS):
        assert re.search(rf"│ {name.split()[0]} +[A-Z]", out.text), name
    assert [number for number in range(7) if f"\n  {number}  " in out.text] == [*range(7)]


@pytest.mark.parametrize("name", [*COMMANDS, "--install-completion"])
def test_every_help_has_a_summary_and_an_example_that_can_be_pasted(name: str, out: Output) -> None:
    assert out.of(*name.split(), "--help") == 0

    usage, blank, summary, *rest = out.text.splitlines()
    assert usage.startswith(f"Usage: forewarn {name}")
    assert blank == ""
    assert re.fullmatch(r"[A-Z].*\.", summary)
    assert "For example:" in rest
    assert any(line.startswith(f"    forewarn {name}") for line in rest) or name == "completion"
    # Nothing was folded: an example that is broken in two cannot be pasted.
    assert all(len(line) <= 80 and not line.endswith(" ") for line in rest)


def test_the_version_is_told(out: Output) -> None:
    assert out.of("--version") == 0
    assert re.fullmatch(r"\d+\.\d+\S*\n", out.text)


def test_commands_that_ask_a_service_do_not_load_one(data: Path) -> None:
    code = (
        "import sys; from forewarn.cli.main import main; main(sys.argv[1:]); "
        "print([name for name in sys.modules if name.startswith(('forewarn.web', 'forewarn.wiring', "
        "'uvicorn', 'starlette', 'rich'))])"
    )
    words = [sys.executable, "-c", code, "events", "--json", "--data", str(data)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    text = subprocess.run(words, env=environment, check=True, capture_output=True).stdout

    assert text.endswith(b"[]\n")


def test_what_is_needed_stands_in_the_usage(out: Output) -> None:
    for name, usage in [
        ("announce", "announce TYPE VM... [OPTIONS]"),
        ("approve", "approve EVENT... [OPTIONS]"),
        ("fleet", "fleet [COMMAND] [OPTIONS]"),
    ]:
        assert out.of(name, "--help") == 0
        assert out.text.startswith(f"Usage: forewarn {usage}\n")


def test_the_help_of_serve_is_not_broken_in_the_middle(out: Output) -> None:
    assert out.of("serve", "--help") == 0
    assert re.search(r"may be given\s+│\n", out.text) is None
    assert "Print the addresses as one line of JSON" in out.text


def test_a_fleet_file_is_checked_and_counted(tmp_path: Path, out: Output) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text('[[scope]]\nname = "db"\n[[scope.machine]]\nname = "db"\n')

    assert out.of("check-config", str(file)) == 0
    assert out.text == f"{file}: 1 scope, 1 VM, no errors\n"
    assert out.of("check-config", str(file), "--json") == 0
    assert out.json == {"scopes": 1, "machines": 1}


def test_the_faults_of_a_fleet_file_begin_with_their_places(tmp_path: Path, out: Output) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text("color = 1\nshape = 2\n")

    assert out.of("check-config", str(file)) == 2
    first, second, last = out.error.splitlines()
    assert first.startswith(f"{file}:1: ")
    assert second.startswith(f"{file}:2: ")
    assert last == "forewarn: 2 errors, nothing was changed"


def test_a_fleet_file_without_scopes_is_worth_a_warning(tmp_path: Path, out: Output) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text("")

    assert out.of("check-config", str(file)) == 0
    assert "declares no scope" in out.error


def test_a_slow_service_is_waited_for_in_words_on_a_terminal(data: Path, api: StandIn) -> None:
    api.delay = 3.5

    assert on_terminal("events", "--json", data=data, stream="stderr") == (
        "waiting for the service...\r\n"
    )


def on_terminal(
    *words: str, data: Path, columns: int = 200, stream: str = "stdout", **environment: str
) -> str:
    """What a command writes to a terminal."""
    leader, follower = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "forewarn", *words, "--data", str(data)],
        env={
            **{name: value for name, value in os.environ.items() if name != "NO_COLOR"},
            "PYTHONPATH": os.pathsep.join(sys.path),
            "COLUMNS": str(columns),
            "TERM": "xterm",
            **environment,
        },
        stdout=follower if stream == "stdout" else subprocess.DEVNULL,
        stderr=follower if stream == "stderr" else None,
    )
    os.close(follower)
    text = b""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and select.select([leader], [], [], 20)[0]:
        try:
            text += os.read(leader, 65536)
        except OSError:
            # Linux says so when the last writer has closed its side.
            break
    os.close(leader)
    assert running.wait(timeout=10) == 0
    return text.decode()


def test_on_a_terminal_events_are_a_colored_table(data: Path) -> None:
    text = on_terminal("events", data=data)

    assert "╭" in text
    assert "\x1b[33mScheduled" in text
    assert SOON in text


def test_on_a_narrow_terminal_nothing_is_broken_in_two(data: Path) -> None:
    told = on_terminal("events", data=data, columns=80, NO_COLOR="1")
    text = re.sub(r"\x1b\[\d*m", "", told)

    heading, soon, _ = text.splitlines()
    assert max(map(len, text.splitlines())) <= 80
    assert heading.split() == ["Event", "Type", "Status", "VMs", "Not", "before", "Scope"]
    assert re.fullmatch(
        r"4F2A0000  Freeze  Scheduled  web-0 \+1  \d\d:\d\d:\d\dZ \(in 15m\)  rg1/web\s*",
        soon,
    )


def test_no_color_means_no_color(data: Path) -> None:
    text = on_terminal("events", data=data, NO_COLOR="1")

    assert "╭" in text
    assert not re.search(r"\x1b\[3\d", text)


@pytest.mark.parametrize("words", [["show", SOON], ["fleet"]], ids=" ".join)
def test_on_a_terminal_records_and_fleets_are_tables_too(words: list[str], data: Path) -> None:
    text = on_terminal(*words, data=data)

    assert "web-0" in text
    assert "\x1b[1m" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_choices(shell: str, out: Output) -> None:
    assert out.of("completion", shell) == 0
    for word in ("announce", "postpone", "journal", "serve", "terminate", "credentials"):
        assert word in out.text


def test_completion_is_installed_where_the_shell_looks(tmp_path: Path) -> None:
    running = process("--install-completion", "--shell", "bash", cwd=tmp_path, HOME=str(tmp_path))

    text, error = running.communicate(timeout=20)

    assert (running.returncode, error) == (0, "")
    script = tmp_path / ".local/share/bash-completion/completions/forewarn"
    assert "announce" in script.read_text()
    assert f"wrote {script}\n" in text
    assert f"added a line to {tmp_path / '.bashrc'}" in text


def test_the_table_of_commands_is_made_anew_each_time() -> None:
    """No command line inherits anything from the one before."""
    assert build() is not build()
