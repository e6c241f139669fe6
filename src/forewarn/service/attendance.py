"""Who was heard when, on a clock that does not jump.

Kept in memory only: after a start, every scope has its full time of silence again. What other
endpoints over the same store hear is known from the marks in the ledgers, an hour coarse.
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
        # The marks that say nothing new: found at the start, or made here.
        self._marks: dict[ScopeId, tuple[datetime | None, ...]] = {}

    def adopt(self, ledger: Ledger) -> None:
        """Take a ledger in at start-up: whatever was heard before is no news."""
        self._marks[ledger.scope.id] = (ledger.heard_at,)

    def hear(self, scope: ScopeId) -> None:
        """A machine of the scope asked just now."""
        self._heard[scope] = self._clock.elapsed()

    def mark(self, ledger: Ledger, at: datetime) -> None:
        """A machine of the scope asked just now, and the ledger is about to say so."""
        # Should that commit fail, the old mark is no news either.
        self._marks[ledger.scope.id] = (ledger.heard_at, at)
        self.hear(ledger.scope.id)

    def silent_for(self, ledger: Ledger) -> timedelta:
        """How long the scope has been silent while somebody listened."""
        scope, elapsed = ledger.scope.id, self._clock.elapsed()
        if ledger.heard_at not in self._marks.get(scope, (None,)):
            # Heard by another endpoint, which goes on hearing for an hour without a word.
            self._marks[scope] = (ledger.heard_at,)
            self._heard[scope] = elapsed + HEARD_EVERY
        return max(elapsed - self._heard.get(scope, self._since), timedelta())
