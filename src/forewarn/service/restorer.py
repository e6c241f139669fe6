"""What is done to a store that comes from a backup, before anybody is served from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.core import restoring
from forewarn.core.journal import Actor, Entry, What
from forewarn.core.names import ScopeId
from forewarn.core.periods import Periods
from forewarn.core.restoring import Overdue
from forewarn.ports.clock import Clock
from forewarn.ports.ids import Ids
from forewarn.ports.store import Cursor, Store
from forewarn.service.books import Books
from forewarn.service.journals import Filter, Journals


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did."""

    scopes: int
    leap: int
    taken_at: datetime


@dataclass(frozen=True, slots=True)
class Restorer:
    """Makes a store that comes from a backup fit to be served again."""

    clock: Clock
    ids: Ids
    store: Store
    books: Books
    rules: Periods

    def restore(self, overdue: Overdue, actor: Actor) -> Restored:
        """Leap over all incarnations that guests may have seen; see to overdue events.

        Raises: Refused if a number would not fit, Unavailable.
        """
        now = self.clock.now()
        taken_at = self._taken_at(now)
        leap = restoring.jump(now - taken_at)
        scopes = [ledger.scope.id for ledger in self.books.all()]
        for scope in scopes:
            self.books.amend(
                scope,
                lambda found: restoring.restore(
                    found,
                    leap=leap,
                    overdue=overdue,
                    new_id=self.ids.event_id,
                    now=now,
                    rules=self.rules,
                    actor=actor,
                ),
            )
        self.books.journalize(
            Entry(
                at=now,
                scope=ScopeId(""),
                what=What.RESTORED,
                actor=actor,
                note=f"backup of {taken_at:%FT%TZ}; {len(scopes)} incarnations raised by {leap}",
            )
        )
        return Restored(len(scopes), leap, taken_at)

    def _taken_at(self, now: datetime) -> datetime:
        """When the backup was taken: a backup's last journal entry says so.

        An older last entry, as in a copy made by other means, only makes the leap greater.
        """
        journals = Journals(self.clock, self.store, self.books)
        last = now - timedelta(days=1)
        page = journals.page(Cursor(""), 500, Filter())
        while True:
            if page.lines:
                last = page.lines[-1].entry.at
            if page.is_last:
                return last
            page = journals.page(page.cursor, 500, Filter())
