"""Readings of the journal: what happened, page by page, and the record of one event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from forewarn.core.events import Event
from forewarn.core.journal import Actor, Entry, What
from forewarn.core.names import ScopeId
from forewarn.errors import UnknownEvent
from forewarn.ports.clock import Clock
from forewarn.ports.store import Cursor, Store
from forewarn.service.books import Books
from forewarn.wire import records

PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Line:
    """A journal entry, and the cursor of the commit that wrote it."""

    cursor: Cursor
    entry: Entry


@dataclass(frozen=True, slots=True)
class Page:
    """Some lines, and the cursor from which to read on."""

    lines: tuple[Line, ...]
    cursor: Cursor
    is_last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which lines somebody wants; None wants all."""

    event: str | None = None
    scope: ScopeId | None = None
    # Whether a scope is any business of whoever asks.
    concerns: Callable[[ScopeId], bool] | None = None

    def admits(self, entry: Entry) -> bool:
        if self.scope is not None and entry.scope != self.scope:
            return False
        if self.concerns is not None and not self.concerns(entry.scope):
            return False
        if self.event is None:
            return True
        return entry.event is not None and entry.event.id == self.event.strip("{}").upper()


@dataclass(frozen=True, slots=True)
class Journals:
    """Reads and prunes the journal."""

    clock: Clock
    store: Store
    books: Books

    def page(
        self, after: Cursor, limit: int, wanted: Filter, wait: timedelta = timedelta()
    ) -> Page:
        """The wanted lines among the next `limit` commits after a cursor.

        Raises: Pruned, Unavailable.
        """
        changes = self.store.changes(after, limit, wait)
        lines = tuple(
            Line(change.cursor, entry)
            for change in changes
            for entry in map(records.load_entry, change.journal)
            if wanted.admits(entry)
        )
        cursor = changes[-1].cursor if changes else after
        return Page(lines, cursor, is_last=len(changes) < limit)

    def event(self, event_id: str) -> tuple[ScopeId, Event]:
        """An event as the journal last knew it, however long ago. Raises: UnknownEvent, Unavailable."""
        found: Entry | None = None
        wanted = Filter(event=event_id)
        page = self.page(Cursor(""), PAGE, wanted)
        while True:
            if page.lines:
                found = page.lines[-1].entry
            if page.is_last:
                break
            page = self.page(page.cursor, PAGE, wanted)
        if found is None or found.event is None:
            raise UnknownEvent(event_id)
        return found.scope, found.event

    def prune(self, before: datetime, actor: Actor) -> int:
        """Forget the entries before an instant, and note how many they were. Export them first.

        Raises: Unavailable.
        """
        cut, pruned = self._cut(before)
        if not pruned:
            return 0
        self.store.prune(cut)
        self.books.journalize(
            Entry(
                at=self.clock.now(),
                scope=ScopeId(""),
                what=What.PRUNED,
                actor=actor,
                note=f"{pruned} entries before {before:%FT%TZ}",
            )
        )
        return pruned

    def _cut(self, before: datetime) -> tuple[Cursor, int]:
        """The first commit whose journal reaches to the instant, and the entries of those before.

        The newest commit is kept in any case.
        """
        cursor, older = Cursor(""), 0
        newest = self.store.head()
        while True:
            page = self.page(cursor, PAGE, Filter())
            for line in page.lines:
                if line.entry.at >= before or line.cursor == newest:
                    return line.cursor, older
                older += 1
            if page.is_last:
                return page.cursor, older
            cursor = page.cursor
