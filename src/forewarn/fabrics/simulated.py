"""SimulatedFabric: impacts that take their time and touch nothing.

For tests, the emulator and a first try. Machines obey unless they were told to behave otherwise.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, NamedTuple

from forewarn.core.events import EventType
from forewarn.core.names import EventId, MachineName
from forewarn.core.orders import Order, Progress, Report
from forewarn.core.rosters import Declaration
from forewarn.errors import Refused, Unavailable, Unknown
from forewarn.ports.clock import Clock

# A fabric that forgot an order would carry it out again if it were begun again. Nobody asks for
# one this far back, and a service that runs for years does not grow.
REMEMBERED_MAX: Final = 100_000

_RUNNING: Final = Report(Progress.RUNNING)
_DONE: Final = Report(Progress.DONE)
_UNKNOWN: Final = Report(Progress.UNKNOWN)


class Behaviour(Enum):
    """What a machine does with its orders."""

    OBEYS = "obeys"
    # The order takes its time, and fails.
    FAILS = "fails"
    # The order is never over, until it is finished or failed by hand.
    HANGS = "hangs"
    # The order is not begun.
    REFUSES = "refuses"
    # The next order observed turns out to be unknown; after that, the machine obeys.
    FORGETS = "forgets"
    # Nothing can be begun or observed.
    UNREACHABLE = "unreachable"


class Impact(NamedTuple):
    """An order that was really begun, and when."""

    order: Order
    began_at: datetime


_Key = tuple[EventId, MachineName]


class SimulatedFabric:
    """A fabric without machines. An order runs for as long as it says, by the given clock.

    Unless `takes` says how long: then every order runs for that. What is said of one machine with
    `take` wins over both.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        takes: timedelta | None = None,
        remembered_max: int = REMEMBERED_MAX,
    ) -> None:
        self._clock = clock
        self._takes = takes
        self._remembered_max = remembered_max
        # Guards all that follows.
        self._lock = threading.Lock()
        self._behaviours: dict[MachineName, Behaviour] = {}
        self._taking: dict[tuple[MachineName, EventType], timedelta] = {}
        # When each order that was not seen to end will be over, as the clock's elapsed time.
        self._running: dict[_Key, timedelta] = {}
        self._over: OrderedDict[_Key, Report] = OrderedDict()
        self._impacts: deque[Impact] = deque(maxlen=remembered_max)

    @property
    def impacts(self) -> list[Impact]:
        """Every order begun, oldest first; one that was begun again while known appears once."""
        with self._lock:
            return list(self._impacts)

    def begin(self, order: Order) -> None:
        key = (order.event, order.machine)
        with self._lock:
            behaviour = self._reach(order.machine)
            if key in self._running or key in self._over:
                return
            if behaviour is Behaviour.REFUSES:
                raise Refused(f"{order.machine} refuses to {order.impact.value.lower()}")
            self._impacts.append(Impact(order, self._clock.now()))
            usual = order.duration if self._takes is None else self._takes
            takes = self._taking.get((order.machine, order.impact), usual)
            self._running[key] = self._clock.elapsed() + takes
            if len(self._running) > self._remembered_max:
                # Nobody asked how they ended: events that were overtaken, for one.
                self._settle(list(self._running))

    def observe(self, order: Order) -> Report:
        key = (order.event, order.machine)
        with self._lock:
            if self._reach(order.machine) is Behaviour.FORGETS:
                self._forget(key)
            self._settle([key])
            return _RUNNING if key in self._running else self._over.get(key, _UNKNOWN)

    def census(self) -> Sequence[Declaration] | None:
        # The fleet is what others declare.
        return None

    def behave(self, machine: MachineName, behaviour: Behaviour) -> None:
        """Tell a machine what to do with its orders from now on. What is over stays as it is."""
        with self._lock:
            self._settle([key for key in self._running if key[1] == machine])
            self._behaviours[machine] = behaviour

    def take(self, machine: MachineName, impact: EventType, takes: timedelta) -> None:
        """Tell a machine how long this impact on it takes, for orders that are begun from now on."""
        with self._lock:
            self._taking[machine, impact] = takes

    def finish(self, event: EventId, machine: MachineName) -> None:
        """End a running order now, whatever the machine's behaviour.

        Raises: Unknown if no such order was begun.
        """
        self._end((event, machine), _DONE)

    def fail(self, event: EventId, machine: MachineName, detail: str = "failed by hand") -> None:
        """Let a running order fail now, whatever the machine's behaviour.

        Raises: Unknown if no such order was begun.
        """
        self._end((event, machine), Report(Progress.FAILED, detail))

    def _reach(self, machine: MachineName) -> Behaviour:
        behaviour = self._behaviours.get(machine, Behaviour.OBEYS)
        if behaviour is Behaviour.UNREACHABLE:
            raise Unavailable(f"{machine} cannot be reached")
        return behaviour

    def _forget(self, key: _Key) -> None:
        if key in self._running or key in self._over:
            self._running.pop(key, None)
            self._over.pop(key, None)
            del self._behaviours[key[1]]

    def _end(self, key: _Key, report: Report) -> None:
        with self._lock:
            if key not in self._running and key not in self._over:
                raise Unknown(f"no order of event {key[0]} for {key[1]} was begun")
            self._settle([key])
            if key in self._running:
                self._conclude(key, report)

    def _settle(self, keys: list[_Key]) -> None:
        """Conclude those orders whose time is over, as their machines behave."""
        elapsed = self._clock.elapsed()
        for key in keys:
            behaviour = self._behaviours.get(key[1], Behaviour.OBEYS)
            over = self._running.get(key, timedelta.max) <= elapsed
            if over and behaviour is not Behaviour.HANGS:
                failed = Report(Progress.FAILED, f"{key[1]} was told to fail")
                self._conclude(key, failed if behaviour is Behaviour.FAILS else _DONE)

    def _conclude(self, key: _Key, report: Report) -> None:
        del self._running[key]
        self._over[key] = report
        if len(self._over) > self._remembered_max:
            self._over.popitem(last=False)
