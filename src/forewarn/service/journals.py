"""Readings of the journal: what happened, page by page, and the record of one event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

from forewarn.core.events import Event, EventType
from forewarn.core.journal import Actor, Entry, Role, What
from forewarn.core.names import ScopeId
from forewarn.errors import UnknownEvent
from forewarn.ports.clock import Clock
from forewarn.ports.store import Cursor, Store
from forewarn.service.books import Books
from forewarn.wire import records

PAGE: Final = 500
# What one search reads at most, before it says where to go on.
SEARCHED_PAGES_MAX: Final = 20


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
    """Which lines somebody wants; None wants all. Names ignore case."""

    event: str | None = None
    scope: ScopeId | None = None
    # A resource group.
    group: str | None = None
    # A machine called `web-0`, `rg1/web-0` or `rg1/web/web-0`.
    machine: str | None = None
    type: EventType | None = None
    what: What | None = None
    # Who did it, by name and by role.
    actor: str | None = None
    role: Role | None = None
    since: datetime | None = None
    # The first instant that is not wanted any more.
    until: datetime | None = None
    # Only lines that tell of an event.
    of_events: bool = False
    # Whether a scope is any business of whoever asks.
    concerns: Callable[[ScopeId], bool] | None = None

    def admits(self, entry: Entry) -> bool:
        return (
            self._admits_scope(entry.scope)
            and self._admits_act(entry)
            and self._admits_instant(entry.at)
            and self._admits_event(entry)
        )

    def _admits_scope(self, scope: ScopeId) -> bool:
        if self.scope is not None and scope != self.scope:
            return False
        if self.group is not None and not scope.startswith(f"{self.group.lower()}/"):
            return False
        return self.concerns is None or self.concerns(scope)

    def _admits_act(self, entry: Entry) -> bool:
        actor = entry.actor
        return (
            self.what in (None, entry.what)
            and self.role in (None, actor.role)
            and (self.actor is None or self.actor.lower() == actor.name.lower())
        )

    def _admits_instant(self, at: datetime) -> bool:
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)

    def _admits_event(self, entry: Entry) -> bool:
        event = entry.event
        if event is None:
            asked = (self.event, self.machine, self.type)
            return asked == (None, None, None) and not self.of_events
        if self.event is not None and event.id != self.event.strip("{}").upper():
            return False
        if self.type not in (None, event.type):
            return False
        return self.machine is None or _concerns(self.machine, entry.scope, event)


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

    def search(self, after: Cursor, limit: int, wanted: Filter) -> Page:
        """The first wanted lines after a cursor: `limit` of them, or those of one commit if more.

        A page may be short, or empty, though there is more to read: nobody searches for long.

        Raises: Malformed, Pruned, Unavailable.
        """
        found: list[Line] = []
        for _ in range(SEARCHED_PAGES_MAX):
            page = self.page(after, PAGE, wanted)
            for cursor, lines in groupby(page.lines, key=lambda line: line.cursor):
                together = tuple(lines)
                if found and len(found) + len(together) > limit:
                    return Page(tuple(found), after, is_last=False)
                found += together
                after = cursor
                if len(found) >= limit:
                    is_last = page.is_last and after == page.cursor
                    return Page(tuple(found), after, is_last=is_last)
            after = page.cursor
            if page.is_last:
                return Page(tuple(found), after, is_last=True)
        return Page(tuple(found), after, is_last=False)

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


def _concerns(machine: str, scope: ScopeId, event: Event) -> bool:
    """Whether an event is on the machine that is called so. It may be gone for long."""
    *path, short = machine.lower().split("/")
    prefix = "/".join(path)
    if path and scope != prefix and not scope.startswith(f"{prefix}/"):
        return False
    return short in (name.lower() for name in event.machines)
