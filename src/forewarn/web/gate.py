"""Who may be connected, how many at a time, and for how long.

Deadlines are looked at in one sweep a second: a timer for each of tens of thousands of
connections would cost more than the connections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from enum import Enum
from typing import Final, Protocol

from forewarn.web.allowances import CONNECTING, Allowance
from forewarn.web.counters import Counters
from forewarn.web.limits import Limits

_STRANGERS: Final = "strangers"
# Whoever has too many connections is told so on a few more, and then no longer.
_TOLD_FACTOR: Final = 2


class Admission(Enum):
    """Whether a new connection is served."""

    WELCOME = "welcome"
    # One too many: it is told, and closed.
    TOO_MANY = "too many"
    # Far too many: it is dropped without a word.
    SHUT_OUT = "shut out"


class Visitor(Protocol):
    """A connection, as the gate sees it."""

    # On the event loop's clock.
    deadline: float
    # Shared with all others from the same place.
    allowance: Allowance

    def expire(self) -> None:
        """The deadline has passed."""
        ...


class Gate:
    """Knows all connections, and the deadlines of what begins now."""

    def __init__(self, limits: Limits, counters: Counters, *, connections_max: int) -> None:
        self._limits = limits
        self._counters = counters
        self._connections_max = connections_max
        self._visitors: dict[Visitor, Hashable] = {}
        self._counts: Counter[Hashable] = Counter()
        self._allowances: dict[Hashable, Allowance] = {}
        # Places that nobody is connected from; what they took is remembered for a while.
        self._left: set[Hashable] = set()
        self.set_time(0.0)

    def set_time(self, now: float) -> None:
        """Set the deadlines of what begins from now on, until the next sweep."""
        self.idle_by = now + self._limits.idle.total_seconds()
        self.head_by = now + self._limits.head.total_seconds()
        self.body_by = now + self._limits.body.total_seconds()
        self.write_by = now + self._limits.write.total_seconds()
        self.linger_by = now + self._limits.linger.total_seconds()

    @property
    def visitors(self) -> tuple[Visitor, ...]:
        return tuple(self._visitors)

    def admit_machine(self, visitor: Visitor, place: Hashable) -> Admission:
        """Let in a machine that speaks from this place."""
        return self._admit(visitor, place, self._limits.connections_per_caller_max)

    def admit_stranger(self, visitor: Visitor) -> Admission:
        """Let in somebody who is no machine of the fleet: strangers share one small quota."""
        return self._admit(visitor, _STRANGERS, self._limits.connections_of_strangers_max)

    def _admit(self, visitor: Visitor, place: Hashable, quota: int) -> Admission:
        self._visitors[visitor] = place
        self._counts[place] += 1
        allowance = self._allowances.get(place)
        if allowance is None:
            allowance = self._allowances[place] = Allowance(self._limits)
        allowance.left -= CONNECTING
        visitor.allowance = allowance
        self._counters.connections = len(self._visitors)
        count = self._counts[place]
        if len(self._visitors) > self._connections_max or count > quota * _TOLD_FACTOR:
            self._counters.throttled += 1
            return Admission.SHUT_OUT
        if count > quota:
            self._counters.throttled += 1
            return Admission.TOO_MANY
        return Admission.WELCOME

    def leave(self, visitor: Visitor) -> None:
        """Forget a connection that is over."""
        place = self._visitors.pop(visitor, None)
        self._counters.connections = len(self._visitors)
        if place is None:
            return
        self._counts[place] -= 1
        if not self._counts[place]:
            del self._counts[place]
            self._left.add(place)

    def sweep(self, now: float) -> None:
        """End what has lasted too long."""
        self.set_time(now)
        for place in tuple(self._left):
            if place in self._counts:
                self._left.discard(place)
            elif self._allowances[place].is_untouched(now):
                self._left.discard(place)
                del self._allowances[place]
        for visitor in self.visitors:
            if visitor.deadline <= now:
                visitor.expire()
