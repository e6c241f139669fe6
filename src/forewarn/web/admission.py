"""Connections to the control plane: how many there may be, and how long one may say nothing.

Guests and operators share one process, and so its descriptors and its memory: whoever can reach the
control plane, and shows no token yet, must not be able to take them all.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

from forewarn.service.suspicion import network
from forewarn.web.limits import control_connections_max

CONNECTIONS_OF_ONE_MAX: Final = 512
# For the head of a request, from the first byte to the last; for a handshake before that.
HEAD_SECONDS_MAX: Final = 15.0
HANDSHAKE_SECONDS_MAX: Final = 15.0
# When there are no descriptors left, somebody has to go first.
_AGAIN_SECONDS: Final = 0.1


class Connection(H11Protocol):
    """A connection that is ended if its caller asks for nothing, or takes too long to say what."""

    patience = HEAD_SECONDS_MAX
    _since = 0.0
    _due: asyncio.TimerHandle | None = None
    # Called once the connection has gone.
    gone: Callable[[], None]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._due = self.loop.call_later(self.patience, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room for another."""
        super().connection_lost(exc)
        if self._due is not None:
            self._due.cancel()
        self.gone()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._since = self.loop.time()
        super().on_response_complete()

    def _look(self) -> None:
        is_busy = self.cycle is not None and not self.cycle.response_complete
        left = self.patience if is_busy else self._since + self.patience - self.loop.time()
        if left <= 0:
            self.transport.abort()
        else:
            self._due = self.loop.call_later(left, self._look)


class Admission:
    """Takes connections in, up to a number for each network and for all. Used by the loop only."""

    def __init__(
        self,
        make: Callable[[], Connection],
        tls: ssl.SSLContext | None,
        *,
        most: int | None = None,
        most_of_one: int = CONNECTIONS_OF_ONE_MAX,
    ) -> None:
        self._make = make
        self._tls = tls
        self._most = control_connections_max() if most is None else most
        self._most_of_one = most_of_one
        self._here: Counter[str] = Counter()
        self._greeting: set[asyncio.Task[None]] = set()

    async def admit(self, bound: socket.socket) -> None:
        """Take in whoever comes to a socket, until this is canceled."""
        bound.settimeout(0)
        loop = asyncio.get_running_loop()
        while True:
            try:
                caller, address = await loop.sock_accept(bound)
            except OSError:
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            place = network(address[0])
            if self._here[place] >= self._most_of_one or self._here.total() >= self._most:
                caller.close()
                continue
            self._here[place] += 1
            greeting = loop.create_task(self._greet(caller, place))
            self._greeting.add(greeting)
            greeting.add_done_callback(self._greeting.discard)

    async def _greet(self, caller: socket.socket, place: str) -> None:
        """Shake hands. From then on the connection says itself when it has gone."""
        connection = self._make()
        connection.gone = lambda: self._leave(place)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                caller,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else HANDSHAKE_SECONDS_MAX,
            )
        except OSError:
            # No TLS, no common one, or nothing at all: the loop has closed it.
            if connection.transport is None:
                self._leave(place)

    def _leave(self, place: str) -> None:
        self._here[place] -= 1
        if not self._here[place]:
            del self._here[place]

    def close(self) -> None:
        """Greet nobody any more."""
        for greeting in tuple(self._greeting):
            greeting.cancel()
