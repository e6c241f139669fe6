"""The operators' API over real sockets: a server on loopback, a client of the standard library."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from http.client import HTTPSConnection
from typing import Any

import pytest

from forewarn.testing.authorities import Tokened, local_tls
from forewarn.testing.worlds import WEB, World
from forewarn.web import control
from forewarn.web.app import CALLS_MAX, THREADS, ControlServer, build_app
from forewarn.web.calls import BODY_BYTES_MAX
from forewarn.web.control import ControlParts
from forewarn.web.counters import Counters
from forewarn.web.routes import Table

TOKEN = "s3cret"
SECONDS_MAX = 10


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON is anything
        return json.loads(self.body)


@dataclass
class Service:
    """A service that is being served."""

    world: World
    port: int
    server: ControlServer
    thread: threading.Thread

    def ask(self, method: str, target: str, body: object = None, **headers: str) -> Reply:
        given = {"Authorization": f"Bearer {TOKEN}"}
        given.update((name.replace("_", "-"), value) for name, value in headers.items())
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        with closing(self.connection()) as connection:
            connection.request(method, target, sent, given)
            response = connection.getresponse()
            fields = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, fields, response.read())

    def connection(self) -> HTTPSConnection:
        return HTTPSConnection(
            "127.0.0.1", self.port, timeout=SECONDS_MAX, context=local_tls().client
        )

    def caller(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS_MAX)
        return local_tls().client.wrap_socket(plain, server_hostname="127.0.0.1")

    def stop(self) -> None:
        self.server.stop()
        self.thread.join(SECONDS_MAX)
        assert not self.thread.is_alive(), "the server came to its end"


def crash() -> str | None:
    raise ZeroDivisionError("a bug")


@contextmanager
def served(parts: ControlParts, world: World) -> Iterator[Service]:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    port = bound.getsockname()[1]
    # Listening before the thread runs: a client that comes early waits its turn.
    bound.listen()
    app = build_app(Table(control.routes(parts)), Tokened(TOKEN))
    server = ControlServer(app, bound, local_tls().server)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    service = Service(world, port, server, thread)
    try:
        yield service
    finally:
        service.stop()


@pytest.fixture
def service() -> Iterator[Service]:
    world = World(WEB)
    parts = ControlParts(
        clock=world.clock,
        books=world.parts.books,
        desk=world.parts.desk,
        journals=world.parts.journals,
        operations=world.parts.operations,
        drains=world.parts.drains,
        apply_fleet=lambda text, name, _actor: (f"{name}: {len(text)}",),
        reload_fleet=lambda _actor: (),
        backup=lambda _path: None,
        ready=crash,
        counters=Counters(),
        setbacks=lambda: 0,
    )
    with served(parts, world) as service:
        yield service


def test_the_story_of_an_event_as_operators_tell_it(service: Service) -> None:
    """Keeps S16, S23, N6 and N10: announced, approved from outside, started, completed, on record."""
    body = {"type": "Reboot", "machines": ["web-0"], "duration_seconds": 60}
    announced = service.ask("POST", "/fabric/v1/events", body)
    assert announced.status == 201
    (event,) = announced.json["events"]
    path = f"/fabric/v1/events/{event['event_id']}"
    service.world.settle()

    assert service.ask("POST", f"{path}/approve").json["approved"]["address"] == "127.0.0.1"
    service.world.settle()
    assert service.ask("GET", path).json["status"] == "Started"
    service.world.advance(timedelta(minutes=2))

    record = service.ask("GET", path).json
    assert record["status"] == "Completed"
    assert record["notice_promised_seconds"] == 900
    assert [outcome["result"] for outcome in record["outcomes"]] == ["done"]
    told = service.ask("GET", f"/fabric/v1/journal?event={event['event_id']}").json["entries"]
    assert [entry["what"] for entry in told] == [
        "announced",
        "readable",
        "approved",
        "started",
        "completed",
    ]


def test_answers_are_json_that_nobody_keeps(service: Service) -> None:
    reply = service.ask("GET", "/fabric/v1/fleet")

    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["cache-control"] == "no-store"
    assert "server" not in reply.headers


def test_a_caller_is_told_who_it_is(service: Service) -> None:
    told = service.ask("GET", "/fabric/v1/whoami").json

    assert set(told) == {"id", "name", "role", "groups"}
    assert (told["role"], told["groups"]) == ("operator", [])


def test_without_the_token_an_operator_is_a_stranger(service: Service) -> None:
    reply = service.ask("GET", "/fabric/v1/fleet", Authorization="Bearer wrong")

    assert reply.status == 401
    assert reply.headers["www-authenticate"].startswith("Bearer ")
    assert reply.json["error"]["code"] == "AuthenticationFailed"


def test_probes_need_no_token(service: Service) -> None:
    assert service.ask("GET", "/healthz", Authorization="").json == {"status": "ok"}
    assert service.ask("HEAD", "/healthz", Authorization="").body == b""
    assert b"forewarn_machines 4.0" in service.ask("GET", "/metrics", Authorization="").body


def test_what_is_not_there_is_told_in_json_too(service: Service) -> None:
    assert service.ask("GET", "/nothing").json["error"]["code"] == "Unknown"
    reply = service.ask("DELETE", "/fabric/v1/events")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, POST")


def test_the_largest_body_is_read_and_a_larger_one_is_not(service: Service) -> None:
    frame = len(json.dumps({"toml": ""}))
    fits = {"toml": "#" * (BODY_BYTES_MAX - frame)}

    assert service.ask("POST", "/fabric/v1/fleet", fits).status == 200
    assert service.ask("POST", "/fabric/v1/fleet", b"#" * (BODY_BYTES_MAX + 1)).status == 413
    assert service.ask("GET", "/healthz").status == 200


def test_a_client_that_leaves_in_the_middle_disturbs_nobody(service: Service) -> None:
    with service.caller() as leaving:
        leaving.sendall(
            b"POST /fabric/v1/fleet HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
            b"Authorization: Bearer s3cret\r\n\r\n{"
        )

    assert service.ask("GET", "/fabric/v1/fleet").status == 200


def test_the_journal_names_the_address_of_the_connection(service: Service) -> None:
    """Who calls is never taken from a header."""
    body = {"type": "Freeze", "machines": ["web-0"]}

    service.ask("POST", "/fabric/v1/events", body, X_Forwarded_For="10.9.9.9")

    assert service.world.journal()[-1].actor.address == "127.0.0.1"


def test_a_bug_is_told_and_logged_and_the_next_call_is_answered(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        reply = service.ask("GET", "/readyz")
        following = service.ask("GET", "/healthz")
        # The log is written after the answer is sent: wait for the end of both.
        service.stop()

    assert (reply.status, reply.json["error"]["code"]) == (500, "Broken")
    assert b"a bug" not in reply.body
    assert "ZeroDivisionError: a bug" in caplog.text
    assert following.status == 200


def test_nobody_fills_the_log_with_what_is_not_http(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    upgrade = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
    with caplog.at_level(logging.WARNING):
        for sent in (b"nonsense\r\n\r\n", upgrade):
            with service.caller() as caller:
                caller.sendall(sent)
                assert caller.recv(100).startswith(b"HTTP/1.1 ")
        service.stop()

    assert caplog.text == ""


def test_a_reader_who_waits_is_told_when_something_happens(service: Service) -> None:
    """Keeps N10: a stream of all changes."""
    end = service.ask("GET", "/fabric/v1/journal").json["cursor"]
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(service.ask, "GET", f"/fabric/v1/journal?after={end}&wait=30")
        time.sleep(0.1)
        assert not waiting.done()

        service.ask("POST", "/fabric/v1/events", {"type": "Freeze", "machines": ["web-0"]})

        told = waiting.result(SECONDS_MAX).json["entries"]
    assert [entry["what"] for entry in told] == ["announced"]


def test_a_reader_who_waited_in_vain_gets_an_empty_page(service: Service) -> None:
    end = service.ask("GET", "/fabric/v1/journal").json["cursor"]
    asked_at = time.monotonic()

    page = service.ask("GET", f"/fabric/v1/journal?after={end}&wait=1").json

    assert time.monotonic() - asked_at >= 1
    assert page == {"entries": [], "cursor": end, "is_last": True}


def test_readers_who_wait_keep_nobody_waiting_and_end_when_the_service_does(
    service: Service,
) -> None:
    end = service.ask("GET", "/fabric/v1/journal").json["cursor"]
    readers = 2 * THREADS
    with ThreadPoolExecutor(readers) as threads:
        waiting = [
            threads.submit(service.ask, "GET", f"/fabric/v1/journal?after={end}&wait=30")
            for _ in range(readers)
        ]
        time.sleep(0.5)

        asked_at = time.monotonic()
        assert service.ask("GET", "/fabric/v1/events").status == 200
        service.stop()
        pages = [reader.result(SECONDS_MAX).json for reader in waiting]

    assert time.monotonic() - asked_at < SECONDS_MAX / 2
    assert all(page["entries"] == [] for page in pages)


def test_calls_beyond_the_limit_are_told_to_come_again(service: Service) -> None:
    end = service.ask("GET", "/fabric/v1/journal").json["cursor"]
    waiting = (
        f"GET /fabric/v1/journal?after={end}&wait=30 HTTP/1.1\r\n"
        f"Host: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    ).encode()
    with ExitStack() as stack:
        for _ in range(CALLS_MAX):
            stack.enter_context(service.caller()).sendall(waiting)
        until = time.monotonic() + SECONDS_MAX
        reply = service.ask("GET", "/fabric/v1/events")
        while reply.status == 200 and time.monotonic() < until:
            reply = service.ask("GET", "/fabric/v1/events")

        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert service.ask("GET", "/healthz").status == 200

    # Readers who left make room.
    while reply.status == 503 and time.monotonic() < until:
        reply = service.ask("GET", "/fabric/v1/events")
    assert reply.status == 200
