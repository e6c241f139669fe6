"""Who may hold a connection to the control plane, and for how long; over real sockets and TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest
import uvicorn
import uvloop
from starlette.responses import PlainTextResponse
from uvicorn.lifespan.off import LifespanOff
from uvicorn.server import ServerState

from forewarn.testing.authorities import local_tls
from forewarn.testing.control_planes import ControlPlane
from forewarn.testing.worlds import World
from forewarn.web.admission import Admission, Connection
from forewarn.web.app import CALLS_MAX

SECONDS_MAX: Final = 10
REQUEST: Final = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
Run = Callable[[Coroutine[Any, Any, None]], None]


class Hasty(Connection):
    """Waits for a tenth of a second only."""

    patience = 0.1


@dataclass
class Door:
    """Where connections come in: three at most, two of them from one place."""

    port: int
    secure: bool

    def knock(self) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS_MAX)
        if not self.secure:
            return plain
        return local_tls().client.wrap_socket(plain, server_hostname="127.0.0.1")

    def is_open(self) -> bool:
        """Whether somebody who comes now is answered."""
        try:
            with self.knock() as caller:
                caller.sendall(REQUEST)
                return caller.recv(100).startswith(b"HTTP/1.1 200 ")
        except (ConnectionError, ssl.SSLError):
            return False

    def opens(self) -> bool:
        """Whether somebody who comes again and again is answered at last."""
        return any(self.is_open() or threading.Event().wait(0.02) for _ in range(200))


@contextmanager
def door(kind: type[Connection], run: Run, *, secure: bool) -> Iterator[Door]:
    config = uvicorn.Config(PlainTextResponse("here"), http="h11", ws="none", log_config=None)
    config.load()
    state = ServerState()
    tls = local_tls().server if secure else None

    def make() -> Connection:
        return kind(config=config, server_state=state, app_state=LifespanOff(config).state)

    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen()
    stopping: list[Callable[[], object]] = []
    ready = threading.Event()

    async def serve() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        stopping.append(lambda: loop.call_soon_threadsafe(stop.set))
        admission = Admission(make, tls, most=3, most_of_one=2)
        admitting = asyncio.create_task(admission.admit(bound))
        ready.set()
        await stop.wait()
        admitting.cancel()
        await asyncio.gather(admitting, return_exceptions=True)
        admission.close()
        for connection in tuple(state.connections):
            connection.transport.abort()
        await asyncio.sleep(0.05)

    thread = threading.Thread(target=lambda: run(serve()))
    thread.start()
    ready.wait(SECONDS_MAX)
    try:
        yield Door(bound.getsockname()[1], secure)
    finally:
        stopping[0]()
        thread.join(SECONDS_MAX)
        bound.close()


LOOPS: Final = pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
TLS: Final = pytest.mark.parametrize("secure", [False, True])


@LOOPS
@TLS
def test_one_place_has_so_many_connections_and_no_more(run: Run, *, secure: bool) -> None:
    with door(Connection, run, secure=secure) as place:
        with place.knock() as first, place.knock():
            assert not place.is_open()
            first.sendall(REQUEST)
            assert first.recv(100).startswith(b"HTTP/1.1 200 ")
        assert place.opens()


@LOOPS
def test_whoever_does_not_shake_hands_counts_too_until_he_goes(run: Run) -> None:
    with door(Connection, run, secure=True) as place:
        silent = [socket.create_connection(("127.0.0.1", place.port)) for _ in range(2)]
        assert not place.is_open()
        for caller in silent:
            caller.close()
        assert place.opens()


@LOOPS
@TLS
@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost:", REQUEST + b"GET"])
def test_whoever_does_not_say_what_he_wants_is_hung_up_on(
    run: Run, said: bytes, *, secure: bool
) -> None:
    with door(Hasty, run, secure=secure) as place, place.knock() as caller:
        caller.sendall(said)
        answer = b"begun"
        try:
            while answer:
                answer = caller.recv(1000)
        except (ConnectionError, ssl.SSLError):
            return


def test_strangers_who_say_nothing_keep_nobody_out() -> None:
    head = b"POST /adfs/oauth2/token HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
    with ControlPlane(World()) as plane, ExitStack() as stack:
        for _ in range(CALLS_MAX):
            caller = socket.create_connection(("127.0.0.1", plane.port), timeout=SECONDS_MAX)
            stack.enter_context(caller).sendall(head)

        reply = plane.ask("POST", "/adfs/oauth2/token", b"", token="")
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert plane.ask("GET", "/fabric/v1/events").status == 200
        # They are not waited for as long as somebody who is known.
        until = time.monotonic() + SECONDS_MAX
        while reply.status == 503 and time.monotonic() < until:
            reply = plane.ask("POST", "/adfs/oauth2/token", b"", token="")
        assert reply.status == 400
