"""Faults: what an emulator does wrong on purpose, to whom, how often and until when.

This is the list of those in force. Who carries them out asks it each time: `web.strikes` at the guests'
endpoint, `wiring.mishaps` where webhooks are told. Without a fault nothing goes wrong on purpose.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from forewarn.clocks import SystemClock
from forewarn.errors import Malformed, Refused, Unknown
from forewarn.ports.clock import Clock

# Each is looked at for every request.
FAULTS_MAX: Final = 1000


class FaultKind(Enum):
    """What goes wrong."""

    THROTTLED = "429"
    GONE = "410"
    BROKEN = "500"
    AWAY = "503"
    # 200, and no body.
    EMPTY = "empty"
    SLOW = "slow"
    # The first answer to each machine.
    SLOW_FIRST = "slow-first"
    RESET = "reset"
    TRUNCATED = "truncated"
    # As after a day in which nobody asked: documents are counted from 1 again.
    INCARNATION_RESTART = "incarnation-restart"
    WEBHOOK_DUPLICATE = "webhook-duplicate"
    WEBHOOK_REORDERED = "webhook-reordered"


# How long something takes, unless told otherwise. Two minutes are what Azure documents as its longest.
DELAYS: Final = {
    FaultKind.SLOW: timedelta(seconds=10),
    FaultKind.SLOW_FIRST: timedelta(minutes=2),
    # How long a delivery is held back if no other one follows.
    FaultKind.WEBHOOK_REORDERED: timedelta(seconds=10),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault. With neither `times` nor `until` it stays until it is removed."""

    id: str
    kind: FaultKind
    # `web-0`, or `rg1/web/web-0`, in whichever case; None: all of them.
    machine: str | None = None
    # How often it will still strike.
    times: int | None = None
    until: datetime | None = None
    delay: timedelta = timedelta()

    def concerns(self, scope: str, machines: Sequence[str]) -> bool:
        """Whether one of these machines of a scope is meant."""
        if self.machine is None:
            return True
        meant = self.machine.lower()
        return any(meant in (name.lower(), f"{scope}/{name}".lower()) for name in machines)


class Happening(Enum):
    """What there is to tell of a fault."""

    BEGAN = "began"
    STRUCK = "struck"
    ENDED = "ended"


# Told what happened, of which fault, and whom it struck (""); in whichever thread that was.
Watcher = Callable[[Happening, Fault, str], None]


class Faults:
    """The faults in force, oldest first. Safe to call from any thread."""

    def __init__(self, clock: Clock, *, speed: float = 1.0) -> None:
        """By a clock that goes at this speed; 0: it stands still until it is advanced."""
        self._clock = clock
        # Delays are over when as much has passed on this.
        self.patience: Final[Clock] = SystemClock() if speed else clock
        # Whether a delay is over when the clock was advanced by it; else it takes as long as it says.
        self.is_manual: Final = not speed
        self._lock = threading.Lock()
        self._faults: dict[str, Fault] = {}
        self._added = 0
        # Whom faults that strike each machine once have struck.
        self._met: set[tuple[str, str, tuple[str, ...]]] = set()
        self._watchers: list[Watcher] = []

    def watch(self, watcher: Watcher) -> None:
        """Have this told of all that happens."""
        self._watchers.append(watcher)

    @property
    def in_force(self) -> tuple[Fault, ...]:
        self.look_at_the_clock()
        with self._lock:
            return tuple(self._faults.values())

    def add(
        self,
        kind: FaultKind | str,
        *,
        machine: str | None = None,
        times: int | None = None,
        lasts: timedelta | None = None,
        delay: timedelta | None = None,
    ) -> Fault:
        """Put a fault in force. Whether there is such a machine is the caller's concern.

        Raises: Malformed, Refused.
        """
        kind = _kind(kind)
        _check(kind, times, lasts, delay)
        self.look_at_the_clock()
        with self._lock:
            if len(self._faults) >= FAULTS_MAX:
                raise Refused(f"{FAULTS_MAX} faults are in force: clear some first")
            self._added += 1
            fault = Fault(
                id=str(self._added),
                kind=kind,
                machine=machine,
                times=times,
                until=None if lasts is None else self._clock.now() + lasts,
                delay=DELAYS.get(kind, timedelta()) if delay is None else delay,
            )
            self._faults[fault.id] = fault
        self._tell(Happening.BEGAN, fault)
        return fault

    def remove(self, fault_id: str) -> None:
        """End a fault. Raises: Unknown."""
        self.look_at_the_clock()
        with self._lock:
            fault = self._faults.pop(fault_id, None)
        if fault is None:
            raise Unknown(f"no fault {fault_id} is in force; `forewarn fault list` lists them")
        self._end(fault)

    def clear(self) -> None:
        """End all of them."""
        with self._lock:
            ended, self._faults = self._faults, {}
        for fault in ended.values():
            self._end(fault)

    def strike(
        self, kinds: Collection[FaultKind], scope: str, machines: Sequence[str]
    ) -> Fault | None:
        """Have the oldest fault of these kinds strike that concerns one of these machines, if any."""
        if not self._faults:
            return None
        self.look_at_the_clock()
        with self._lock:
            fault = self._struck(kinds, scope, tuple(machines))
        if fault is not None:
            self._tell(Happening.STRUCK, fault, ", ".join(machines))
            if fault.times == 0:
                self._end(fault)
        return fault

    def look_at_the_clock(self) -> None:
        """End those whose time is over."""
        if not self._faults:
            return
        now = self._clock.now()
        with self._lock:
            over = [f for f in self._faults.values() if f.until is not None and f.until <= now]
            for fault in over:
                del self._faults[fault.id]
        for fault in over:
            self._end(fault)

    def _struck(
        self, kinds: Collection[FaultKind], scope: str, machines: tuple[str, ...]
    ) -> Fault | None:
        for fault in self._faults.values():
            if fault.kind not in kinds or not fault.concerns(scope, machines):
                continue
            if fault.kind is FaultKind.SLOW_FIRST:
                if (fault.id, scope, machines) in self._met:
                    continue
                self._met.add((fault.id, scope, machines))
            if fault.times is not None:
                fault = self._faults[fault.id] = replace(fault, times=fault.times - 1)  # noqa: PLW2901
                if not fault.times:
                    del self._faults[fault.id]
            return fault
        return None

    def _end(self, fault: Fault) -> None:
        with self._lock:
            self._met = {met for met in self._met if met[0] != fault.id}
        self._tell(Happening.ENDED, fault)

    def _tell(self, happening: Happening, fault: Fault, whom: str = "") -> None:
        for watcher in self._watchers:
            watcher(happening, fault, whom)


def _kind(kind: FaultKind | str) -> FaultKind:
    try:
        return FaultKind(kind)
    except ValueError:
        known = ", ".join(one.value for one in FaultKind)
        raise Malformed(f"there is no fault {kind!r}: give one of {known}") from None


def _check(
    kind: FaultKind, times: int | None, lasts: timedelta | None, delay: timedelta | None
) -> None:
    if times is not None and times < 1:
        raise Malformed(f"a fault cannot strike {times} times: give 1 or more")
    if times is not None and kind is FaultKind.INCARNATION_RESTART:
        raise Malformed(f"{kind.value} happens at once, and once: leave times out")
    if lasts is not None and lasts <= timedelta():
        raise Malformed("a fault lasts for some time: give more than 0 seconds")
    if delay is not None and kind not in DELAYS:
        known = ", ".join(one.value for one in DELAYS)
        raise Malformed(f"{kind.value} delays nothing: leave the delay out; {known} take one")
    if delay is not None and delay < timedelta():
        raise Malformed("a delay is not negative")
