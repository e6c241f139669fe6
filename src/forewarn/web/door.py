"""A door: one address that guests connect to, and the short visit that most of them pay.

Many clients make a new connection for each poll. When the whole request has arrived with the
connection, its bytes are known, and it wants nothing kept, it is answered and closed right here:
making a connection of it would cost more than the answer. All others go on to a Connection.

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

from forewarn.web.gate import VISITING, Gate
from forewarn.web.hall import READ_BYTES_MAX
from forewarn.web.hatch import Answer
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


class Seat(Protocol):
    """A connection, as a door sees it."""

    def begin(self, said: bytes) -> None:
        """Be admitted or not, having said this much already."""
        ...


class Host(Protocol):
    """What a door needs from its server."""

    limits: Limits
    gate: Gate
    recall: Callable[[bytes], Decision | None]

    def seat(self, descriptor: int, listener: str, address: str, answer: Answer) -> Seat:
        """A connection for a guest that stays."""
        ...

    def note_exhaustion(self, listener: str, error: OSError) -> None:
        """Take note that nobody can be let in for the moment."""
        ...


class Door:
    """Lets guests in at one address."""

    def __init__(
        self, host: Host, place: Bound, loop: asyncio.AbstractEventLoop, answer: Answer
    ) -> None:
        self._host = host
        # Looked up once: these are asked for every guest.
        self._recall = host.recall
        self._answer = answer
        self._gate = host.gate
        self._allowances = host.gate.at(place.name)
        self._name = place.name
        self._place = place
        self._loop = loop
        self._resuming: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Let guests in from now on."""
        held = int(self._host.limits.held_back.total_seconds())
        self._place.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, held)
        self._place.socket.listen(BACKLOG)
        self._listen()

    def close(self) -> None:
        """Let nobody in any more."""
        if self._resuming is not None:
            self._resuming.cancel()
        if self._place.socket.fileno() >= 0:
            self._loop.remove_reader(self._place.socket.fileno())
            self._place.socket.close()

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
            said = os.read(descriptor, READ_BYTES_MAX)
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
        self._host.seat(descriptor, self._name, address, self._answer).begin(said)

    def _is_answered(self, descriptor: int, address: str, said: bytes) -> bool:
        """Answer a guest that wants a poll and nothing else; False if there is more to it."""
        recall = self._recall
        decision = recall(said)
        if decision is None or decision.ending is not _CLOSE:
            return False
        # Who has too many connections, or took too much, waits and is told like all others.
        allowance = self._allowances.get(address)
        if not self._gate.has_room(allowance):
            return False
        answer = self._answer
        response = answer(decision, address)
        if response is None:
            return False
        if allowance is None:
            self._gate.count_first_visit(self._name, address)
        else:
            allowance.left -= VISITING
        # The buffer is empty, and the hatch hands out nothing that it would not take whole.
        os.write(descriptor, response)
        return True
