"""Who was heard when, on a clock that does not jump.

Kept in memory only: after a start, every scope has its full time of silence again. What other
endpoints over the same store hear is known from the marks in the ledgers, an hour coarse: within an
hour of any mark, whoever made it, each of them goes on hearing without a word. So silence begins an
hour after the last mark at the earliest, and a scope is disabled within 24 to 25 hours.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from forewarn.core.ledgers import Ledger
from forewarn.core.names import ScopeId
from forewarn.core.periods import HEARD_EVERY
from forewarn.ports.clock import Clock


class Attendance:
    """Remembers for each scope when one of its machines last asked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.elapsed()
        self._heard: dict[ScopeId, timedelta] = {}
        # The last mark of each scope, and when it was first seen here.
        self._marks: dict[ScopeId, tuple[datetime, timedelta]] = {}

    def see(self, ledger: Ledger) -> None:
        """Take note of a ledger's mark. Safe to call from any thread."""
        scope, mark = ledger.scope.id, ledger.heard_at
        if mark is not None and (scope not in self._marks or self._marks[scope][0] != mark):
            self._marks[scope] = (mark, self._clock.elapsed())

    def hear(self, scope: ScopeId) -> None:
        """A machine of the scope asked just now."""
        self._heard[scope] = self._clock.elapsed()

    def mark_age(self, ledger: Ledger) -> timedelta:
        """How old the ledger's mark may well be; one that was never seen here may be of any age."""
        mark, seen_at = self._marks.get(ledger.scope.id, (None, timedelta()))
        return HEARD_EVERY if mark != ledger.heard_at else self._clock.elapsed() - seen_at

    def silent_for(self, ledger: Ledger) -> timedelta:
        """How long the scope has certainly been silent while somebody listened."""
        self.see(ledger)
        scope = ledger.scope.id
        since = self._heard.get(scope, self._since)
        if scope in self._marks:
            since = max(since, self._marks[scope][1] + HEARD_EVERY)
        return max(self._clock.elapsed() - since, timedelta())
