"""Whoever looks at a service from outside: at what is committed, what is read and what is ordered.

A witness only remembers. What must be true of it is said in `forewarn.testing.promises`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from forewarn.core.documents import Document
from forewarn.core.events import Event, EventStatus
from forewarn.core.journal import Entry
from forewarn.core.ledgers import Ledger
from forewarn.core.names import EventId, Incarnation, MachineName, Revision, ScopeId
from forewarn.core.orders import Order
from forewarn.core.scopes import Enabling
from forewarn.fabrics.simulated import SimulatedFabric
from forewarn.ports.clock import Clock
from forewarn.ports.store import CommitId, Lease, Store, Write
from forewarn.service.board import Board
from forewarn.testing.faults import StoreDoor
from forewarn.wire import records
from forewarn.wire.versions import Version

_Impact = tuple[EventId, MachineName]


@dataclass(frozen=True, slots=True)
class Commit:
    """A ledger that took the place of another, and what the journal says of it."""

    before: Ledger | None
    after: Ledger
    entries: tuple[Entry, ...]
    now: datetime


@dataclass(frozen=True, slots=True)
class Start:
    """An event that was seen to start, and what was known of it then."""

    event: Event
    # The ledger that made it Started.
    ledger: Ledger
    at: timedelta
    # Whether a guest or an operator had asked to approve it.
    was_attempted: bool
    # When guests could first read of it, and every NotBefore they ever read.
    readable: timedelta | None
    shown: frozenset[str]
    # By how much the hands were ahead when a service was started during the notice: it can
    # only have gone by them.
    misled_by: timedelta


@dataclass(frozen=True, slots=True)
class Reading:
    """What was up on one service's board for one scope, and what was up there before."""

    service: str
    scope: ScopeId
    revision: Revision
    document: Document
    # As guests read it.
    body: Mapping[str, Any]
    before: Incarnation
    # The newest incarnation that whoever waits there was woken for.
    woken_for: Incarnation


class Witness:
    """All that is known of a story from outside. `pass_over` forgets what was looked into."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.committed: dict[ScopeId, Ledger] = {}
        self.documents: dict[tuple[ScopeId, Revision], Document] = {}
        # What is new since somebody last looked into it.
        self.commits: list[Commit] = []
        self.starts: list[Start] = []
        self.readings: list[Reading] = []
        self.orders: list[tuple[Order, Event]] = []
        self.ended_lately: set[EventId] = set()
        self.given: Counter[_Impact] = Counter()
        # What guests could read, when first, and what was gone again, by service.
        self.readable: dict[EventId, timedelta] = {}
        self.shown: dict[EventId, set[str]] = {}
        self.boards: dict[str, dict[ScopeId, Reading]] = {}
        self.gone: set[tuple[str, EventId]] = set()
        self.returned: set[EventId] = set()
        # What was asked for, and what was answered with yes.
        self.announced: list[EventId] = []
        self.promised: set[EventId] = set()
        self.attempted: set[EventId] = set()
        self.acknowledged: set[EventId] = set()
        # When a scope was heard, and when somebody tried to be.
        self.heard: dict[ScopeId, timedelta] = {}
        self.asked: dict[ScopeId, timedelta] = {}
        self.listening_since = timedelta()
        # Of these, the hands of the clock cannot tell what came first.
        self.jumped: set[EventId] = set()
        self.misled_by: dict[EventId, timedelta] = {}
        self._offsets: dict[EventId, datetime] = {}
        # When the hands were set back, and when each scope's mark was made.
        self._set_back: list[timedelta] = []
        self._marks: dict[ScopeId, timedelta] = {}
        self._learned: dict[tuple[str, ScopeId], tuple[datetime | None, timedelta]] = {}
        # Whether everything that is due has been done, as far as it can be.
        self.is_settled = False

    def pass_over(self) -> None:
        """Forget what is new: it was looked into."""
        for new in (self.commits, self.starts, self.readings, self.orders, self.ended_lately):
            new.clear()

    # -- what is committed ---------------------------------------------------------------

    def note_commit(self, ledger: Ledger, entries: Sequence[Entry]) -> None:
        """A ledger was committed: by whom and why does not matter."""
        scope = ledger.scope.id
        before = self.committed.get(scope)
        if before is not None and before.revision >= ledger.revision:
            # The same commit again, whose answer was lost.
            return
        self.committed[scope] = ledger
        self.documents[scope, ledger.revision] = ledger.document
        own = tuple(entry for entry in entries if entry.scope == scope)
        self.commits.append(Commit(before, ledger, own, self.clock.now()))
        if before is None or before.heard_at != ledger.heard_at:
            self._marks[scope] = self.clock.elapsed()
        if before is not None and before.scope.enabling is not ledger.scope.enabling:
            self.heard.pop(scope, None)
        for event in ledger.events:
            self._note_event(before.find(event.id) if before else None, event, ledger)

    def _note_event(self, old: Event | None, event: Event, ledger: Ledger) -> None:
        if old is None:
            self.announced.append(event.id)
        if event.readable_at is not None and (old is None or old.readable_at is None):
            self._offsets[event.id] = self._offset()
        if not event.is_open and (old is None or old.is_open):
            self.ended_lately.add(event.id)
        was_started = old is not None and old.status is not EventStatus.SCHEDULED
        if event.started_at is None or was_started:
            return
        self.starts.append(
            Start(
                event=event,
                ledger=ledger,
                at=self.clock.elapsed(),
                was_attempted=event.id in self.attempted,
                readable=self.readable.get(event.id),
                shown=frozenset(self.shown.get(event.id, ())),
                misled_by=self.misled_by.get(event.id, timedelta()),
            )
        )

    def find(self, event_id: str) -> tuple[Ledger, Event] | None:
        """An event as it was last committed, if it was, with its ledger."""
        for ledger in self.committed.values():
            event = ledger.find(event_id)
            if event is not None:
                return ledger, event
        return None

    # -- what is ordered -----------------------------------------------------------------

    def note_order(self, order: Order) -> None:
        """The fabric really began an order."""
        self.given[order.event, order.machine] += 1
        self.orders.append((order, self.committed[order.scope].event(order.event)))

    def note_lapse(self, impact: _Impact) -> None:
        """The fabric forgot an order: nobody can blame whoever gives it again."""
        del self.given[impact]

    # -- what is read --------------------------------------------------------------------

    def open_board(self, service: str) -> None:
        """A service was started; what its board shows is read from now on."""
        self.boards.setdefault(service, {})
        self._learned = {key: at for key, at in self._learned.items() if key[0] != service}
        for ledger in self.committed.values():
            for event in ledger.events:
                if event.id in self._offsets:
                    ahead = self._offset() - self._offsets[event.id]
                    known = self.misled_by.get(event.id, timedelta())
                    self.misled_by[event.id] = max(known, ahead)

    def look(
        self, service: str, board: Board, scope: ScopeId, woken_for: Incarnation | None = None
    ) -> None:
        """Read a scope's document as the guests of a service do.

        `woken_for` says for which document whoever waited was woken; None where nobody could.
        """
        posting = board.posting(scope)
        assert posting is not None, "it was committed, so it is up"
        mark = posting.ledger.heard_at
        if self._learned.setdefault((service, scope), (mark, self.clock.elapsed()))[0] != mark:
            self._learned[service, scope] = (mark, self.clock.elapsed())
        body = json.loads(posting.body(Version.V2020_07_01))
        old = self.boards[service].get(scope)
        shown = {EventId(event["EventId"]) for event in body["Events"]}
        for event in body["Events"]:
            event_id = EventId(event["EventId"])
            self.readable.setdefault(event_id, self.clock.elapsed())
            self.shown.setdefault(event_id, set()).add(event["NotBefore"])
            if (service, event_id) in self.gone:
                self.returned.add(event_id)
        if old is not None:
            before = {EventId(event["EventId"]) for event in old.body["Events"]}
            self.gone |= {(service, event_id) for event_id in before - shown}
        incarnation = posting.document.incarnation
        reading = Reading(
            service=service,
            scope=scope,
            revision=posting.revision,
            document=posting.document,
            body=body,
            before=Incarnation(0) if old is None else old.document.incarnation,
            woken_for=incarnation if woken_for is None else woken_for,
        )
        self.boards[service][scope] = reading
        self.readings.append(reading)

    # -- what is asked -------------------------------------------------------------------

    def note_hearing(self, scope: ScopeId, service: str) -> None:
        """A guest asked a service, and its asking counts.

        Unless the hands were set back between the last mark and the moment at which that service
        learned of it: an old mark looks fresh then, and the first hour's hearing stays there.
        """
        mark = self._marks.get(scope, timedelta())
        learned = self._learned[service, scope][1]
        is_misled = any(mark <= set_back <= learned for set_back in self._set_back)
        if self.committed[scope].scope.enabling is Enabling.ON_REQUEST and not is_misled:
            self.heard[scope] = self.clock.elapsed()

    def note_approval(self, event_id: EventId) -> None:
        """An approval was answered with yes."""
        found = self.find(event_id)
        if found is not None and (
            found[1].status is EventStatus.SCHEDULED or found[1].approval is not None
        ):
            self.acknowledged.add(event_id)

    def note_jump(self, by: timedelta) -> None:
        """The hands of the clock are about to be set."""
        if by < timedelta():
            self._set_back.append(self.clock.elapsed())
        self.jumped |= {event.id for ledger in self.committed.values() for event in ledger.events}

    def _offset(self) -> datetime:
        return self.clock.now() - self.clock.elapsed()


class WitnessedStore(StoreDoor):
    """A store with a witness of everything that is committed to it."""

    def __init__(self, store: Store, witness: Witness) -> None:
        super().__init__(store)
        self._witness = witness

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        versions = super().commit(commit_id, writes, journal, lease)
        entries = [records.load_entry(entry) for entry in journal]
        for write in writes:
            assert write.value is not None, "a ledger is never deleted"
            ledger = records.load_ledger(write.value, versions[write.key])
            self._witness.note_commit(ledger, entries)
        return versions


class WitnessedFabric(SimulatedFabric):
    """A simulated fabric, with a witness of every order that is really begun, and of lapses."""

    def __init__(self, clock: Clock, witness: Witness) -> None:
        super().__init__(clock)
        self._witness = witness

    def begin(self, order: Order) -> None:
        begun = len(self._impacts)
        super().begin(order)
        if len(self._impacts) > begun:
            self._witness.note_order(order)

    def _forget(self, key: _Impact) -> None:
        super()._forget(key)
        self._witness.note_lapse(key)
