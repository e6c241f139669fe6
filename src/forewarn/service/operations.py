"""Long-running operations, durable: committed with their events, and ended by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from forewarn.core import operations, starting
from forewarn.core.events import Event
from forewarn.core.journal import Actor
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import EventId, OperationId, ScopeId
from forewarn.core.operations import Ending, Operation, OperationStatus
from forewarn.core.wishes import Wish
from forewarn.errors import Conflict, Unavailable, Unknown
from forewarn.ports.clock import Clock
from forewarn.ports.ids import Ids
from forewarn.ports.store import Cursor, Record, Store, Write
from forewarn.service.books import Books
from forewarn.service.desk import Desk
from forewarn.service.journals import Filter, Journals
from forewarn.wire import operations as wire

PAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """Something asked of a resource: what, of which one, in which group, by whom."""

    verb: str
    resource: str
    group: str
    actor: Actor


@dataclass(frozen=True, slots=True)
class Operations:
    """Begins operations and tells how far they are."""

    clock: Clock
    ids: Ids
    store: Store
    books: Books
    desk: Desk
    journals: Journals

    def announce(self, errand: Errand, wish: Wish, also: tuple[EventId, ...] = ()) -> Operation:
        """Announce what an errand takes, and follow other events with it; all are of one scope.

        The operation and its events are committed together, or not at all.

        Raises: Malformed, Unknown, Refused, Unavailable.
        """
        begun: list[Operation] = []

        def beside(events: Sequence[Event]) -> Sequence[Write]:
            begun[:] = [self._new(errand, scope, (*also, *(event.id for event in events)))]
            return _first(begun[0])

        scope, _ = self.desk.directory.machine(wish.machines[0])
        self.desk.announce(wish, (), errand.actor, beside)
        return begun[0]

    def approve(
        self, errand: Errand, scope: ScopeId, pending: Callable[[Ledger], Sequence[EventId]]
    ) -> Operation:
        """Approve what is pending on an owner's behalf, and follow it to its end.

        Raises: Unknown, Refused, Unavailable.
        """
        begun: list[Operation] = []

        def decide(ledger: Ledger) -> Decision:
            event_ids = tuple(pending(ledger))
            begun[:] = [self._new(errand, scope, event_ids)]
            return starting.approve(ledger, event_ids, errand.actor, self.clock.now())

        self.books.amend_together(
            (scope,), lambda found: (decide(found[scope]),), lambda: _first(begun[0])
        )
        return begun[0]

    def follow(self, errand: Errand, scope: ScopeId, event_ids: tuple[EventId, ...]) -> Operation:
        """Follow events that are there already; without any, it is over. Raises: Unavailable."""
        operation = self._new(errand, scope, event_ids)
        self._commit(_first(operation))
        return operation

    def find(self, operation_id: str) -> Operation:
        """An operation as it is now. Raises: Unknown, Unavailable."""
        key = wire.key(OperationId(operation_id.lower()))
        record = self.store.get([key])[key]
        if record.value is None:
            raise Unknown(f"no operation {operation_id} is known here")
        return self._settled(record, wire.load(record.value))

    def prune(self, before: datetime) -> int:
        """Forget the operations that ended before an instant; returns how many.

        Comes before the journal is pruned: it may be the last to know how an operation ended.

        Raises: Conflict, Unavailable.
        """
        pruned = 0
        for page in self._pages():
            writes: list[Write] = []
            for record in page:
                assert record.value is not None, "a scan finds only what has a value"
                operation = self._followed(wire.load(record.value))
                if operation.ending is not None and operation.ending.at < before:
                    writes.append(Write(record.key, record.version, None))
            if writes:
                self._commit(writes)
            pruned += len(writes)
        return pruned

    def _pages(self) -> Iterator[Sequence[Record]]:
        after = ""
        while True:
            page = self.store.scan(wire.OPERATION_PREFIX, after, PAGE)
            yield page
            if len(page) < PAGE:
                return
            after = page[-1].key

    def _new(self, errand: Errand, scope: ScopeId, event_ids: tuple[EventId, ...]) -> Operation:
        now = self.clock.now()
        operation = Operation(
            id=OperationId(self.ids.event_id().lower()),
            verb=errand.verb,
            resource=errand.resource,
            group=errand.group,
            scope=scope,
            event_ids=event_ids,
            principal=errand.actor.name,
            started_at=now,
        )
        if event_ids:
            return operation
        return replace(operation, ending=Ending(OperationStatus.SUCCEEDED, now))

    def _settled(self, record: Record, operation: Operation) -> Operation:
        """The operation as it is now; once it has ended, that is kept."""
        followed = self._followed(operation)
        if followed != operation:
            # Kept so that it need not be found out again: who comes later finds the same.
            with suppress(Conflict, Unavailable):
                self._commit([Write(record.key, record.version, wire.dump(followed))])
        return followed

    def _followed(self, operation: Operation) -> Operation:
        if operation.ending is not None:
            return operation
        ledger = self.books.load(operation.scope)
        found = {event_id: ledger.find(event_id) for event_id in operation.event_ids}
        forgotten = frozenset(event_id for event_id, event in found.items() if event is None)
        if forgotten:
            found.update(self._journaled(operation.scope, forgotten))
        events = [found[event_id] for event_id in operation.event_ids]
        return operations.follow(operation, events, self.clock.now())

    def _journaled(self, scope: ScopeId, wanted: frozenset[EventId]) -> dict[EventId, Event]:
        """What the journal last knew of events that their ledger has forgotten."""
        found: dict[EventId, Event] = {}
        cursor = Cursor("")
        while True:
            page = self.journals.page(cursor, PAGE, Filter(scope=scope))
            for line in page.lines:
                event = line.entry.event
                if event is not None and event.id in wanted:
                    found[event.id] = event
            if page.is_last:
                return {known: event for known, event in found.items() if not event.is_open}
            cursor = page.cursor

    def _commit(self, writes: Sequence[Write]) -> None:
        self.store.commit(self.ids.commit_id(), tuple(writes), ())


def _first(operation: Operation) -> Sequence[Write]:
    return (Write(wire.key(operation.id), 0, wire.dump(operation)),)
