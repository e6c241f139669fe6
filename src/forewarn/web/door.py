"""A door: one address that guests connect to, and the short visit that most of them pay.

Many clients make a new connection for each poll. When the whole request has arrived with the
connection, its bytes are known, and it wants nothing kept, it is answered and closed right here:
making a transport for it would cost more than the answer. All others go on to a Connection.

The kernel is asked to hold a connection back until it says something, so that there is something to
read when we hear of it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Protocol

from forewarn.web.gate import Gate
from forewarn.web.limits import Limits
from forewarn.web.listeners import Bound
from forewarn.web.messages import Ending
from forewarn.web.metadata import Decision

BACKLOG: Final = 1024
# Then the guests that are connected have their turn.
BATCH: Final = 64
# After such an error, accepting at once again would only fail again.
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE: Final = timedelta(seconds=0.5)
_CLOSE: Final = Ending.CLOSE
# More than any request whose bytes are remembered.
_READ_BYTES_MAX: Final = 16 * 1024


class Host(Protocol):
    """What a door needs from its server."""

    limits: Limits
    gate: Gate
    recall: Callable[[bytes], Decision | None]
    answer: Callable[[Decision, str, str], bytes | None]

    def connection(self, listener: str, said: bytes) -> asyncio.Protocol:
        """A connection for a guest that stays, and has said this much."""
        ...

    def note_exhaustion(self, listener: str, error: OSError) -> None:
        """Take note that nobody can be let in for the moment."""
        ...


class Door:
    """Lets guests in at one address."""

    def __init__(self, host: Host, place: Bound, loop: asyncio.AbstractEventLoop) -> None:
        self._host = host
        # Looked up once: these are asked for every guest.
        self._recall = host.recall
        self._answer = host.answer
        self._gate = host.gate
        self._name = place.name
        self._place = place
        self._loop = loop
        self._resuming: asyncio.TimerHandle | None = None
        # Guests that stay, and whose connection is not made yet.
        self._arriving: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Let guests in from now on."""
        held = int(self._host.limits.held_back.total_seconds())
        self._place.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, held)
        self._place.socket.listen(BACKLOG)
        self._listen()

    async def close(self) -> None:
        """Let nobody in any more; whoever was let in is known then."""
        if self._resuming is not None:
            self._resuming.cancel()
        if self._place.socket.fileno() >= 0:
            self._loop.remove_reader(self._place.socket.fileno())
            self._place.socket.close()
        await asyncio.gather(*self._arriving)

    def _listen(self) -> None:
        self._resuming = None
        self._loop.add_reader(self._place.socket.fileno(), self._let_in)

    def _let_in(self) -> None:
        # A socket object for each guest would be a third of the cost of a short visit.
        # So this is what `accept` itself stands on.
        accept = self._place.socket._accept  # type: ignore[attr-defined] # noqa: SLF001
        try:
            for _ in range(BATCH):
                descriptor, peer = accept()
                self._welcome(descriptor, peer[0])
        except (BlockingIOError, ConnectionAbortedError, InterruptedError):
            return
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            self._host.note_exhaustion(self._name, error)
            self._loop.remove_reader(self._place.socket.fileno())
            self._resuming = self._loop.call_later(_PAUSE.total_seconds(), self._listen)

    def _welcome(self, descriptor: int, address: str) -> None:
        try:
            os.set_blocking(descriptor, False)
            said = os.read(descriptor, _READ_BYTES_MAX)
            if not said or self._is_answered(descriptor, address, said):
                os.close(descriptor)
                return
        except BlockingIOError:
            # It has nothing to say yet.
            said = b""
        except OSError:
            # It is gone already.
            os.close(descriptor)
            return
        arriving = self._loop.create_task(self._connect(descriptor, said))
        # The loop itself does not hold on to its tasks.
        self._arriving.add(arriving)
        arriving.add_done_callback(self._arriving.discard)

    async def _connect(self, descriptor: int, said: bytes) -> None:
        guest = socket.socket(self._place.socket.family, socket.SOCK_STREAM, fileno=descriptor)
        connection = self._host.connection(self._name, said)
        try:
            await self._loop.connect_accepted_socket(lambda: connection, guest)
        except OSError:
            # It is gone already.
            guest.close()

    def _is_answered(self, descriptor: int, address: str, said: bytes) -> bool:
        """Answer a guest that wants a poll and nothing else; False if there is more to it."""
        decision = self._recall(said)
        if decision is None or decision.ending is not _CLOSE:
            return False
        # Who has too many connections, or took too much, waits and is told like all others.
        place = (self._name, address)
        if not self._gate.has_room(place):
            return False
        response = self._answer(decision, self._name, address)
        if response is None:
            return False
        self._gate.count_visit(place)
        # The buffer is empty, and the hatch hands out nothing that it would not take whole.
        os.write(descriptor, response)
        return True
