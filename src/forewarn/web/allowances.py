"""What one caller may take of the event loop, so that nobody has to wait for another's greed.

Theory: all guests share one thread. Whoever has much to ask, on however many connections, stands
in a line of his own: in each turn of the loop a few requests of each caller are answered, and in
each second so many. Whoever wants more is slowed down and gets no error: a flood is cheapest where
it is not read at all. The unit is one request whose bytes we know, about 15 µs; what costs more
is charged more, and who is charged more than is left pays before the next turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

from forewarn.web.limits import Limits

# What a thing costs beside the one that every packet costs; measured against a known request.
CONNECTING: Final = 2
PARSING: Final = 4
BODY: Final = 3
# The finest timer of the loop.
_PAUSE_SECONDS: Final = 0.001


class Queuer(Protocol):
    """A connection, as its caller's line sees it."""

    def go_on(self) -> None:
        """It is your turn."""
        ...


class Allowance:
    """The line of one caller, and what is left to it."""

    __slots__ = ("_due", "_limits", "_line", "_since", "_spare", "address", "guests", "left")

    def __init__(self, limits: Limits, address: str) -> None:
        self._limits = limits
        self.address = address
        # Connections that share it.
        self.guests = 0
        # For this turn; below zero is a debt. Connections take from it without asking.
        self.left = limits.requests_per_turn_max
        self._spare = float(limits.requests_burst_max)
        self._since = 0.0
        self._line: deque[Queuer] = deque()
        self._due: asyncio.Handle | None = None

    def charge_bytes(self, count: int) -> None:
        """Take off what so many bytes cost."""
        self.left -= (
            count * self._limits.requests_per_second_max // self._limits.bytes_per_second_max
        )

    def line_up(self, queuer: Queuer) -> None:
        """Let a connection go on in one of the next turns."""
        self._line.append(queuer)
        if self._due is None:
            self._due = asyncio.get_running_loop().call_soon(self._turn)

    def renew(self, wanted: int = 0) -> bool:
        """Fill up for a turn of its own, without a line; whether that leaves as much as is wanted.

        Whoever asks now and then need not wait for a turn: standing in line costs us more than the
        answer. Whoever asked a moment ago does wait, and so does everybody behind him.
        """
        now = asyncio.get_running_loop().time()
        if self._due is not None or now - self._since < _PAUSE_SECONDS:
            return False
        self._earn(now)
        self._draw()
        return self.left >= wanted

    def is_untouched(self, now: float) -> bool:
        """Whether forgetting it would give its caller nothing."""
        self._earn(now)
        return self._due is None and self._spare >= self._limits.requests_burst_max

    def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = None
        self._earn(loop.time())
        self._draw()
        for _ in range(len(self._line)):
            if self.left <= 0:
                break
            self.left -= 1
            self._line.popleft().go_on()
        # Who goes on may line up again, and has seen to the next turn then.
        if self._line and self._due is None:
            self._due = (
                loop.call_soon(self._turn)
                if self._spare >= 1
                else loop.call_later(_PAUSE_SECONDS, self._turn)
            )

    def _earn(self, now: float) -> None:
        earned = (now - self._since) * self._limits.requests_per_second_max
        self._spare = min(self._spare + earned, float(self._limits.requests_burst_max))
        self._since = now

    def _draw(self) -> None:
        """Fill up what is left for this turn, from what is left for this second."""
        # Nobody is made to pay for longer than a second or so.
        self.left = max(self.left, -self._limits.requests_burst_max)
        missing = self._limits.requests_per_turn_max - self.left
        drawn = min(missing, self._limits.requests_per_turn_max, int(self._spare))
        self.left += drawn
        self._spare -= drawn
