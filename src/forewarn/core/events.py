"""A maintenance event, and every way it may change.

Rule 1: whether a step is legal is decided in this file and nowhere else.
Rule 2: this file reads no clock. `now` is always an argument.

Guests ever see two statuses, Scheduled and Started. The other two are endings: an ended
event leaves the document, and its absence is what tells a guest that it may recover.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

from forewarn.core.names import EventId, MachineName
from forewarn.core.values import replace
from forewarn.errors import IllegalTransition, NoticeNotServed


class EventType(Enum):
    """The impact to expect. Values are Azure's words."""

    FREEZE = "Freeze"
    REBOOT = "Reboot"
    REDEPLOY = "Redeploy"
    PREEMPT = "Preempt"
    TERMINATE = "Terminate"
    # What owners do to their own machines. No guest ever reads these words.
    POWER_OFF = "PowerOff"
    START = "Start"
    DEALLOCATE = "Deallocate"
    REIMAGE = "Reimage"


# The types that guests know. Of the others, a Reimage may be announced, and is shown as a Reboot.
ANNOUNCED_TYPES: Final = (
    EventType.FREEZE,
    EventType.REBOOT,
    EventType.REDEPLOY,
    EventType.PREEMPT,
    EventType.TERMINATE,
)


class EventSource(Enum):
    """Whose wish it was. Values are Azure's words."""

    PLATFORM = "Platform"
    USER = "User"


class EventStatus(Enum):
    """Where an event is in its life. Only the first two are ever shown to a guest."""

    SCHEDULED = "Scheduled"
    STARTED = "Started"
    COMPLETED = "Completed"
    CANCELED = "Canceled"


class Cause(Enum):
    """Why it happens, as far as the rules differ."""

    MAINTENANCE = "maintenance"
    # The host will fail some day: announced days ahead.
    PREDICTED_FAILURE = "predicted-failure"
    # The host has failed: Started at once, without any notice.
    HARDWARE_FAILURE = "hardware-failure"


class Audience(Enum):
    """Who gets to see the event."""

    GUESTS = "guests"
    # An unannounced operation: a durable record with orders and journal, no notice.
    OPERATORS = "operators"


class Step(Enum):
    """Something that happens to an event."""

    ANNOUNCE = "announce"
    STRIKE = "strike"
    APPROVE = "approve"
    POSTPONE = "postpone"
    START = "start"
    COMPLETE = "complete"
    CANCEL = "cancel"


# The whole state machine. None is an event that does not exist yet; a pair that is absent
# is a step that is refused.
TRANSITIONS: Final[Mapping[tuple[EventStatus | None, Step], EventStatus]] = {
    (None, Step.ANNOUNCE): EventStatus.SCHEDULED,
    # Hardware fails without asking.
    (None, Step.STRIKE): EventStatus.STARTED,
    (EventStatus.SCHEDULED, Step.APPROVE): EventStatus.SCHEDULED,
    (EventStatus.SCHEDULED, Step.POSTPONE): EventStatus.SCHEDULED,
    (EventStatus.SCHEDULED, Step.START): EventStatus.STARTED,
    (EventStatus.SCHEDULED, Step.CANCEL): EventStatus.CANCELED,
    # Guests retry, and several may approve; a late approval is accepted and changes nothing.
    (EventStatus.STARTED, Step.APPROVE): EventStatus.STARTED,
    (EventStatus.STARTED, Step.COMPLETE): EventStatus.COMPLETED,
    (EventStatus.COMPLETED, Step.APPROVE): EventStatus.COMPLETED,
    (EventStatus.CANCELED, Step.APPROVE): EventStatus.CANCELED,
}


_OPEN: Final = (EventStatus.SCHEDULED, EventStatus.STARTED)


class Result(Enum):
    """What became of an order."""

    DONE = "done"
    FAILED = "failed"
    OVERTAKEN = "overtaken"
    # An alarm, not an ending: the fabric may still report, or an operator resolve it.
    TIMED_OUT = "timed out"
    # The record was restored from a backup; what the fabric did since then is not known.
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the order on one machine."""

    machine: MachineName
    result: Result
    at: datetime
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Approval:
    """Somebody's permission to start before the notice has run out."""

    by: str
    role: str
    address: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One maintenance, announced to one scope and aimed at some of its machines."""

    id: EventId
    type: EventType
    source: EventSource
    cause: Cause = Cause.MAINTENANCE
    audience: Audience = Audience.GUESTS
    machines: tuple[MachineName, ...]
    update_domain: int
    description: str = ""
    # How long the machines will be interrupted; None where nobody knows.
    duration: timedelta | None = None
    status: EventStatus = EventStatus.SCHEDULED
    announced_by: str
    announced_at: datetime
    # The notice promised: between being readable and starting without approval.
    notice: timedelta
    not_before: datetime
    # Every NotBefore shown before the present one, oldest first.
    earlier: tuple[datetime, ...] = ()
    readable_at: datetime | None = None
    approval: Approval | None = None
    # What keeps a due event from starting, as last written to the journal.
    hold: str = ""
    started_at: datetime | None = None
    outcomes: tuple[Outcome, ...] = ()
    ended_at: datetime | None = None

    def __post_init__(self) -> None:
        assert self.machines, "an event without machines concerns nobody"
        assert self.not_before.tzinfo is UTC, "times inside the core are UTC, always"

    @property
    def is_open(self) -> bool:
        """Not over yet: Scheduled or Started."""
        return self.status in _OPEN

    @property
    def first_not_before(self) -> datetime:
        """The NotBefore it was announced with."""
        return (*self.earlier, self.not_before)[0]

    @property
    def notice_given(self) -> timedelta | None:
        """How long guests could read of it before it started; None if that is not so (yet)."""
        if self.readable_at is None or self.started_at is None:
            return None
        return max(self.started_at - self.readable_at, timedelta())

    @property
    def unfinished(self) -> tuple[MachineName, ...]:
        """The machines of a started event whose order is not over."""
        over = {o.machine for o in self.outcomes if o.result is not Result.TIMED_OUT}
        return tuple(machine for machine in self.machines if machine not in over)


def strike(event: Event, *, now: datetime) -> Event:
    """Begin the impact of a new event at once: hardware fails without asking."""
    struck = TRANSITIONS[None, Step.STRIKE]
    return replace(event, status=struck, started_at=now, not_before=now)


def is_due(event: Event, now: datetime) -> bool:
    """Whether a scheduled event may start, as far as notice goes.

    Somebody approved it, or nobody was to be told, or it was readable and its notice ran out.
    """
    if event.status is not EventStatus.SCHEDULED:
        return False
    if event.approval is not None or event.audience is Audience.OPERATORS:
        return True
    return event.readable_at is not None and event.not_before <= now


def approve(event: Event, approval: Approval) -> Event:
    """Release the event on behalf of all its machines. The first approval is the one kept."""
    status = _advance(event, Step.APPROVE)
    if event.status is not EventStatus.SCHEDULED or event.approval is not None:
        return event
    return replace(event, status=status, approval=approval)


def start(event: Event, *, now: datetime) -> Event:
    """Begin the impact. Refused while the event is neither approved nor due."""
    status = _advance(event, Step.START)
    if not is_due(event, now):
        raise NoticeNotServed(event.id, event.not_before.isoformat())
    return replace(event, status=status, started_at=now, hold="")


def postpone(event: Event, *, to: datetime) -> Event:
    """Move NotBefore later, keeping the one shown before."""
    status = _advance(event, Step.POSTPONE)
    assert to > event.not_before, "the rules of postponing are the ledger's; later is the least"
    earlier = (*event.earlier, event.not_before)
    # What held it when it was due may be over when it is due again.
    return replace(event, status=status, not_before=to, earlier=earlier, hold="")


def conclude(event: Event, outcome: Outcome) -> Event:
    """Note what became of the order on one machine; a later word replaces an alarm."""
    assert event.status is EventStatus.STARTED, "orders are given once an event is Started"
    assert outcome.machine in event.unfinished, "an order ends once"
    others = tuple(o for o in event.outcomes if o.machine != outcome.machine)
    return replace(event, outcomes=(*others, outcome))


def complete(event: Event, *, now: datetime) -> Event:
    """End a started event: the impact is over on all machines."""
    status = _advance(event, Step.COMPLETE)
    assert not event.unfinished, "an event ends when its orders are over"
    return replace(event, status=status, ended_at=now)


def cancel(event: Event, *, now: datetime) -> Event:
    """End an event which never started: there will be no impact."""
    return replace(event, status=_advance(event, Step.CANCEL), ended_at=now, hold="")


def _advance(event: Event, step: Step) -> EventStatus:
    status = TRANSITIONS.get((event.status, step))
    if status is None:
        raise IllegalTransition(event.id, event.status.value, step.value)
    return status
