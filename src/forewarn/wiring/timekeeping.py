"""The emulator's time: when it moves, whatever it brings is done before anybody hears of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from forewarn.clocks import PacedClock
from forewarn.ports.store import Cursor, Store
from forewarn.service.desk import Desk
from forewarn.wiring.working import Workers

# A machine that hangs is looked at each second, forever; nobody wants to wait for that.
LOOKS_MAX: Final = 10_000
PAGE: Final = 1000


class _Due(NamedTuple):
    """When something will be due, as far as anything is known to."""

    # By the rules.
    wake: datetime | None
    # A guest's request that was delayed until then.
    late: datetime | None

    @property
    def first(self) -> datetime | None:
        return min((instant for instant in self if instant is not None), default=None)


class Timekeeper:
    """Moves a clock from one wake to the next, so that nothing is done late or skipped."""

    def __init__(
        self,
        clock: PacedClock,
        workers: Workers,
        desk: Desk,
        store: Store,
        tell_guests: Callable[[], datetime | None],
    ) -> None:
        """`tell_guests` has the guests' endpoint look at the clock, and says when it should again."""
        self._clock = clock
        self._workers = workers
        self._desk = desk
        self._store = store
        self._tell_guests = tell_guests
        # One advance at a time: two would take each other's steps.
        self._advancing = threading.Lock()

    @property
    def speed(self) -> float:
        return self._clock.speed

    def now(self) -> datetime:
        return self._clock.now()

    def settle(self) -> None:
        with self._advancing:
            self._workers.settle()

    def due(self) -> datetime | None:
        """Do what is due now; when more will be, as far as anything is known to."""
        with self._advancing:
            return self._begin().first

    def advance(self, until: datetime) -> bool:
        with self._advancing:
            # What was due before is not what the advance brings.
            due = self._begin()
            begun = self._store.head()
            while (instant := due.first) is not None and instant <= until:
                due = self._step_to(instant, due)
            self._clock.advance_to(until)
            self._workers.settle()
            self._tell_guests()
            return self._has_news(begun)

    def advance_to_next(self) -> bool:
        with self._advancing:
            due = self._begin()
            begun = self._store.head()
            for _ in range(LOOKS_MAX):
                instant = due.first
                # What ended is forgotten some day; that is nothing to wait for.
                if instant is None or not any(p.event.is_open for p in self._desk.events()):
                    break
                due = self._step_to(instant, due)
                if self._has_news(begun):
                    break
            self._tell_guests()
            return self._has_news(begun)

    def _begin(self) -> _Due:
        """Do what is due now; when more will be."""
        late = self._tell_guests()
        return _Due(self._workers.settle(), late)

    def _step_to(self, instant: datetime, due: _Due) -> _Due:
        """Let it be that instant, and do what is due then; when more will be."""
        self._clock.advance_to(instant)
        # Guests are not asked at each step: that would take longer than the step.
        is_awaited = due.late is not None and due.late <= instant
        return self._begin() if is_awaited else _Due(self._workers.settle(), due.late)

    def _has_news(self, since: Cursor) -> bool:
        """Whether the journal tells of anything: what only tidies up is not written there."""
        while changes := self._store.changes(since, PAGE):
            if any(change.journal for change in changes):
                return True
            since = changes[-1].cursor
        return False
