"""One scope's roster, events and incarnation: what is stored, whole, and committed at once.

Every rule of a scope is decided on one such value. A decision is the ledger as it shall be, and
the journal entries that say why; committing both together is the service's work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from forewarn.core.documents import FIRST_INCARNATION, INCARNATION_MAX, Document, notices
from forewarn.core.events import Audience, Event, EventSource
from forewarn.core.journal import Actor, Entry, What
from forewarn.core.names import EventId, Incarnation, Revision
from forewarn.core.scopes import Enabling, Scope
from forewarn.core.values import replace
from forewarn.errors import UnknownEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """One scope's roster, policies, events and incarnation."""

    scope: Scope
    events: tuple[Event, ...] = ()
    incarnation: Incarnation = FIRST_INCARNATION
    # When a machine's request enabled the scope; None while it is disabled.
    enabled_at: datetime | None = None
    # The coarse mark of when a machine of the scope was last heard.
    heard_at: datetime | None = None
    # Where it stands in the store; 0 for a ledger never committed.
    revision: Revision = Revision(0)

    @property
    def document(self) -> Document:
        """What the scope's machines may read."""
        return Document(self.incarnation, notices(self.events))

    @property
    def is_enabled(self) -> bool:
        """Whether the scope's machines are told of events."""
        return self.scope.enabling is Enabling.ALWAYS or self.enabled_at is not None

    @property
    def open_events(self) -> tuple[Event, ...]:
        """The events that are not over."""
        return tuple(event for event in self.events if event.is_open)

    def find(self, event_id: str) -> Event | None:
        """The event of that id; ids are compared as Azure's clients write them."""
        wanted = event_id.strip("{}").upper()
        return next((event for event in self.events if event.id == wanted), None)

    def event(self, event_id: str) -> Event:
        """The event of that id. Raises: UnknownEvent."""
        event = self.find(event_id)
        if event is None:
            raise UnknownEvent(event_id)
        return event

    @property
    def user_operations(self) -> int:
        """How many operations asked for by users are not over."""
        return sum(event.source is EventSource.USER for event in self.open_events)


@dataclass(frozen=True, slots=True)
class Decision:
    """A ledger as it shall be, and the journal entries that say why."""

    ledger: Ledger
    entries: tuple[Entry, ...] = ()


def record(ledger: Ledger, event: Event) -> Ledger:
    """The ledger with this event in the place of the one of the same id, or at the end."""
    if any(known.id == event.id for known in ledger.events):
        replaced = tuple(event if known.id == event.id else known for known in ledger.events)
        return replace(ledger, events=replaced)
    return replace(ledger, events=(*ledger.events, event))


def note(
    ledger: Ledger,
    what: What,
    actor: Actor,
    at: datetime,
    event: Event | None = None,
    text: str = "",
) -> Decision:
    """Record the event, if there is one, and write one line about it."""
    recorded = ledger if event is None else record(ledger, event)
    entry = Entry(at=at, scope=ledger.scope.id, what=what, actor=actor, event=event, note=text)
    return Decision(recorded, (entry,))


def then(decision: Decision, following: Decision) -> Decision:
    """Two decisions as one, the second having been taken on the first one's ledger."""
    if not following.entries and following.ledger is decision.ledger:
        return decision
    return Decision(following.ledger, decision.entries + following.entries)


def seal(before: Ledger, decision: Decision) -> Decision:
    """Raise the incarnation exactly if guests will see something else than before.

    One commit is one change of the document, whatever it holds.
    """
    ledger = decision.ledger
    assert ledger.incarnation >= before.incarnation, "an incarnation never goes back"
    if notices(before.events) != notices(ledger.events):
        incarnation = Incarnation(max(ledger.incarnation, before.incarnation + 1))
        assert incarnation <= INCARNATION_MAX, "clients read the number into 32 bits"
        ledger = replace(ledger, incarnation=incarnation)
    entries = tuple(replace(e, incarnation=ledger.incarnation) for e in decision.entries)
    return Decision(ledger, entries)


def visible(events: Iterable[Event]) -> tuple[Event, ...]:
    """The open events that guests are told of."""
    return tuple(e for e in events if e.is_open and e.audience is Audience.GUESTS)


def forgettable(ledger: Ledger, before: datetime) -> tuple[EventId, ...]:
    """The events that ended at an instant or before."""
    return tuple(e.id for e in ledger.events if e.ended_at is not None and e.ended_at <= before)
