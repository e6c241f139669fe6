"""The guests' endpoint of a world on real sockets, and guests that speak to it byte by byte."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Final, Self, TypeVar

from forewarn.testing.worlds import World
from forewarn.web.counters import Counters
from forewarn.web.faults import Faults
from forewarn.web.limits import Limits
from forewarn.web.listeners import Bound, Listener, bind
from forewarn.web.metadata import STRICT, Manners
from forewarn.web.server import MetadataServer

PATIENCE: Final = timedelta(seconds=10)
RECEIVE_BYTES: Final = 8192
ANYWHERE: Final = (Listener("127.0.0.1", 0),)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Response:
    """What a guest was answered; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Guest:
    """A socket in a guest's hands."""

    def __init__(self, place: Bound, address: str) -> None:
        self._received = b""
        self._socket = socket.socket(place.socket.family, socket.SOCK_STREAM)
        # A guest that does not read is felt soon.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        self._socket.settimeout(PATIENCE.total_seconds())
        try:
            self._socket.bind((address, 0))
            self._socket.connect((place.host, place.port))
        except OSError:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def finish_sending(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def ask(self, data: bytes) -> Response:
        """Send a request, and read the response to it."""
        self.send(data)
        return self.receive()

    def receive(self) -> Response:
        """The next response."""
        while b"\r\n\r\n" not in self._received:
            self._receive_more()
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.split(": ", 1) for line in lines)
        headers = {name.lower(): value for name, value in pairs}
        length = int(headers.get("content-length", "0"))
        while len(self._received) < length:
            self._receive_more()
        body, self._received = self._received[:length], self._received[length:]
        return Response(int(first.split()[1]), headers, body)

    def is_silent_for(self, while_: timedelta) -> bool:
        """Whether nothing arrives for this long."""
        self._socket.settimeout(while_.total_seconds())
        try:
            self._received += self._socket.recv(1)
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(PATIENCE.total_seconds())
        return False

    def is_hung_up(self) -> bool:
        """Whether the server closes the connection, without another word."""
        try:
            return not self._received and self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _receive_more(self) -> None:
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionAbortedError(f"the server hung up after {self._received!r}")
        self._received += data


class Endpoint:
    """The endpoint of a world, in a thread of its own, for as long as the `with` lasts."""

    def __init__(
        self,
        world: World,
        *,
        listeners: Sequence[Listener] = ANYWHERE,
        limits: Limits | None = None,
        manners: Manners = STRICT,
        faults: Faults | None = None,
        new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
    ) -> None:
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="endpoint")
        # Taken at once, so that a listener can be pinned to a machine before anybody comes.
        self.places = bind(listeners)
        self.counters = Counters()
        # Deadlines are looked at often, so that a test need not wait for them.
        self._limits = limits or Limits(sweep=timedelta(milliseconds=20))
        self.server = MetadataServer(
            world.desk,
            world.parts.identities,
            world.parts.board,
            limits=self._limits,
            counters=self.counters,
            clock=world.clock,
            subscription_id="00000000-0000-0000-0000-000000000000",
            log=logging.getLogger("forewarn.testing.endpoints"),
            manners=manners,
            faults=faults,
        )

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.run_coroutine_threadsafe(self.server.serve(self.places), self._loop)
        starting.result(PATIENCE.total_seconds())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.stop(timedelta(seconds=1))
        finally:
            self._end()

    def stop(self, grace: timedelta = PATIENCE) -> None:
        """Stop serving, and wait for it."""
        stopping = asyncio.run_coroutine_threadsafe(self.server.stop(grace), self._loop)
        stopping.result((grace + PATIENCE).total_seconds())

    def guest(self, address: str, *, listener: int = 0) -> Guest:
        """A new connection from this address, which must be one of loopback."""
        return Guest(self.places[listener], address)

    def do(self, step: Callable[[], T]) -> T:
        """Have a step taken in the endpoint's thread; what it returned."""

        async def take() -> T:
            return step()

        taking = asyncio.run_coroutine_threadsafe(take(), self._loop)
        return taking.result(PATIENCE.total_seconds())

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
