"""Who was heard when, on a clock that does not jump.

Kept in memory only: after a start, every scope has its full time of silence again. What other
endpoints over the same store hear is known from the marks in the ledgers, an hour coarse: within an
hour of any mark, whoever made it, each of them goes on hearing without a word. So where there are
several, silence begins an hour after the last mark at the earliest.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from forewarn.core.ledgers import Ledger
from forewarn.core.names import ScopeId
from forewarn.core.periods import HEARD_EVERY
from forewarn.ports.clock import Clock


class Endpoints(Enum):
    """How many endpoints hear the guests whose ledgers are in one store."""

    ONE = "one"
    SEVERAL = "several"


class Attendance:
    """Remembers for each scope when one of its machines last asked."""

    def __init__(self, clock: Clock, endpoints: Endpoints = Endpoints.ONE) -> None:
        self._clock = clock
        self._endpoints = endpoints
        self._since = clock.elapsed()
        # When a machine of the scope last asked. Whoever looks at the clock now and then, and not for
        # every poll, writes here as well.
        self.heard: Final[dict[ScopeId, timedelta]] = {}
        # The last mark of each scope, when it was first seen here, and when it was made, as far as
        # the hands of the clock told then.
        self._marks: dict[ScopeId, tuple[datetime, timedelta, timedelta]] = {}
        # The marks that say nothing of anybody else: found at the start, or made here.
        self._own: dict[ScopeId, tuple[datetime | None, ...]] = {}

    def adopt(self, ledger: Ledger) -> None:
        """Take a ledger in at start-up: whatever was heard before is no news."""
        self._own[ledger.scope.id] = (ledger.heard_at,)
        self.see(ledger)

    def see(self, ledger: Ledger) -> None:
        """Take note of a committed ledger's mark. Safe to call from any thread."""
        scope, mark = ledger.scope.id, ledger.heard_at
        if mark is not None and (scope not in self._marks or self._marks[scope][0] != mark):
            seen_at = self._clock.elapsed()
            age = max(self._clock.now() - mark, timedelta())
            self._marks[scope] = (mark, seen_at, seen_at - age)

    def hear(self, scope: ScopeId) -> None:
        """A machine of the scope asked just now."""
        self.heard[scope] = self._clock.elapsed()

    def mark(self, ledger: Ledger, at: datetime) -> None:
        """A machine of the scope asked just now, and the ledger is about to say so."""
        # Should that commit fail, the old mark is no news either.
        self._own[ledger.scope.id] = (ledger.heard_at, at)
        self.hear(ledger.scope.id)

    def mark_age(self, ledger: Ledger) -> timedelta:
        """How old the ledger's mark may well be; one that was never seen here may be of any age."""
        mark, _, made_at = self._marks.get(ledger.scope.id, (None, timedelta(), timedelta()))
        return HEARD_EVERY if mark != ledger.heard_at else self._clock.elapsed() - made_at

    def silent_for(self, ledger: Ledger) -> timedelta:
        """How long the scope has been silent while somebody listened."""
        self.see(ledger)
        scope = ledger.scope.id
        since = self.heard.get(scope, self._since)
        if scope in self._marks and self._tells_of_others(ledger):
            since = max(since, self._marks[scope][1] + HEARD_EVERY)
        return max(self._clock.elapsed() - since, timedelta())

    def _tells_of_others(self, ledger: Ledger) -> bool:
        """Whether another endpoint may be hearing without a word because of this mark."""
        if self._endpoints is Endpoints.SEVERAL:
            return True
        return ledger.heard_at not in self._own.get(ledger.scope.id, (None,))
