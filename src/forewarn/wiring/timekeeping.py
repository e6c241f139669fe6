"""The emulator's time: when it moves, whatever it brings is done before anybody hears of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Final

from forewarn.clocks import PacedClock
from forewarn.ports.store import Cursor, Store
from forewarn.service.desk import Desk
from forewarn.wiring.working import Workers

# A machine that hangs is looked at each second, forever; nobody wants to wait for that.
LOOKS_MAX: Final = 10_000
PAGE: Final = 1000


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

    def advance(self, until: datetime) -> bool:
        with self._advancing:
            # What was due before is not what the advance brings.
            wake = self._workers.settle()
            begun = self._store.head()
            late = self._tell_guests()
            while (next_ := _earliest(wake, late)) is not None and next_ <= until:
                wake = self._step_to(next_)
                if late is not None and late <= next_:
                    # A request whose answer was delayed until now; it may bring something.
                    late = self._tell_guests()
                    wake = self._workers.settle()
            self._step_to(until)
            self._tell_guests()
            return self._has_news(begun)

    def advance_to_next(self) -> bool:
        with self._advancing:
            wake = self._workers.settle()
            begun = self._store.head()
            for _ in range(LOOKS_MAX):
                # What ended is forgotten some day; that is nothing to wait for.
                if wake is None or not any(placed.event.is_open for placed in self._desk.events()):
                    break
                wake = self._step_to(wake)
                if self._has_news(begun):
                    break
            self._tell_guests()
            return self._has_news(begun)

    def _step_to(self, instant: datetime) -> datetime | None:
        """Let it be that instant, and do what is due then; when more will be due."""
        self._clock.advance_to(instant)
        return self._workers.settle()

    def _has_news(self, since: Cursor) -> bool:
        """Whether the journal tells of anything: what only tidies up is not written there."""
        while changes := self._store.changes(since, PAGE):
            if any(change.journal for change in changes):
                return True
            since = changes[-1].cursor
        return False


def _earliest(*instants: datetime | None) -> datetime | None:
    return min((instant for instant in instants if instant is not None), default=None)
