"""Who may be connected, how many at a time, and for how long.

Deadlines are looked at in one sweep a second: a timer for each of tens of thousands of
connections would cost more than the connections.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Protocol

from forewarn.web.allowances import CONNECTING, Allowance
from forewarn.web.counters import Counters
from forewarn.web.limits import Limits

# Whoever has too many connections is told so on a few more, and then no longer.
_TOLD_FACTOR: Final = 2
# A short visit costs its caller what it would cost as a connection with one request.
VISITING: Final = CONNECTING + 1


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
    # Where it came to, and from.
    listener: str
    address: str
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
        # In the order in which they came.
        self._visitors: dict[Visitor, None] = {}
        # By listener and address. All strangers share one.
        self._machines: dict[str, dict[str, Allowance]] = {}
        self._strangers = Allowance(limits, "")
        # Those that nobody is connected with; what they took is remembered for a while.
        self._left: dict[Allowance, dict[str, Allowance]] = {}
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

    def at(self, listener: str) -> dict[str, Allowance]:
        """What is left to those who came to this listener, by address; to be looked at only."""
        return self._machines.setdefault(listener, {})

    def admit_machine(self, visitor: Visitor) -> Admission:
        """Let in a machine."""
        allowance = self._allowance(visitor.listener, visitor.address)
        return self._admit(visitor, allowance, self._limits.connections_per_caller_max)

    def admit_stranger(self, visitor: Visitor) -> Admission:
        """Let in somebody who is no machine of the fleet: strangers share one small quota."""
        return self._admit(visitor, self._strangers, self._limits.connections_of_strangers_max)

    def _admit(self, visitor: Visitor, allowance: Allowance, quota: int) -> Admission:
        self._visitors[visitor] = None
        allowance.guests += 1
        allowance.left -= CONNECTING
        visitor.allowance = allowance
        self._counters.connections = len(self._visitors)
        count = allowance.guests
        if len(self._visitors) > self._connections_max or count > quota * _TOLD_FACTOR:
            self._counters.throttled += 1
            return Admission.SHUT_OUT
        if count > quota:
            self._counters.throttled += 1
            return Admission.TOO_MANY
        return Admission.WELCOME

    def has_room(self, allowance: Allowance | None) -> bool:
        """Whether a machine with this allowance may pay a short visit now; None: it was never here."""
        if allowance is not None and (
            (allowance.left < VISITING and not allowance.renew(VISITING))
            or allowance.guests >= self._limits.connections_per_caller_max
        ):
            return False
        return len(self._visitors) < self._connections_max

    def count_first_visit(self, listener: str, address: str) -> None:
        """Charge a machine that was never here for a visit that is over already."""
        allowance = self._allowance(listener, address)
        allowance.left -= VISITING
        self._left[allowance] = self._machines[listener]

    def _allowance(self, listener: str, address: str) -> Allowance:
        allowances = self.at(listener)
        allowance = allowances.get(address)
        if allowance is None:
            allowance = allowances[address] = Allowance(self._limits, address)
        return allowance

    def leave(self, visitor: Visitor) -> None:
        """Forget a connection that is over."""
        if visitor not in self._visitors:
            return
        del self._visitors[visitor]
        self._counters.connections = len(self._visitors)
        allowance = visitor.allowance
        allowance.guests -= 1
        if not allowance.guests and allowance is not self._strangers:
            self._left[allowance] = self._machines[visitor.listener]

    def sweep(self, now: float) -> None:
        """End what has lasted too long."""
        self.set_time(now)
        for allowance, others in tuple(self._left.items()):
            if allowance.guests:
                del self._left[allowance]
            elif allowance.is_untouched(now):
                del self._left[allowance]
                del others[allowance.address]
        for visitor in self.visitors:
            if visitor.deadline <= now:
                visitor.expire()
