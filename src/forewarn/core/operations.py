"""Long-running operations: what an owner asked for, followed until its events are over.

An operation has no life of its own. It is a name for some events, given to whoever waits for
them, and its status follows from theirs; once it has ended, that is final.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Final

from forewarn.core.events import Event, EventStatus, Outcome, Result
from forewarn.core.names import EventId, OperationId, ScopeId


class OperationStatus(Enum):
    """How far an operation is. Values are Azure's words."""

    IN_PROGRESS = "InProgress"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELED = "Canceled"


@dataclass(frozen=True, slots=True)
class Ending:
    """How an operation ended; one that did not succeed says why, as a code and in words."""

    status: OperationStatus
    at: datetime
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What somebody asked for, and the events that it takes."""

    id: OperationId
    # What was asked, such as restart, and of which resource.
    verb: str
    resource: str
    group: str
    scope: ScopeId
    # Empty where nothing had to happen.
    event_ids: tuple[EventId, ...] = ()
    # Who asked.
    principal: str
    started_at: datetime
    ending: Ending | None = None

    @property
    def status(self) -> OperationStatus:
        return OperationStatus.IN_PROGRESS if self.ending is None else self.ending.status


# The codes of what can become of an order; what is absent went well.
_CODES: Final[Mapping[Result, str]] = {
    Result.FAILED: "OperationFailed",
    Result.TIMED_OUT: "OperationTimedOut",
    Result.OVERTAKEN: "OperationPreempted",
    Result.LOST: "OperationOutcomeUnknown",
}
CANCELED_CODE: Final = "OperationCanceled"


def follow(operation: Operation, events: Sequence[Event | None], now: datetime) -> Operation:
    """The operation as its events make it; None is an event that nobody remembers."""
    if operation.ending is not None or any(map(_is_under_way, events)):
        return operation
    return replace(operation, ending=_ending(operation, events, now))


def _is_under_way(event: Event | None) -> bool:
    """Whether to go on waiting: not for an order that somebody must see to first."""
    if event is None or not event.is_open:
        return False
    alarmed = {o.machine for o in event.outcomes if o.result is Result.TIMED_OUT}
    return event.status is not EventStatus.STARTED or bool(set(event.unfinished) - alarmed)


def _ending(operation: Operation, events: Sequence[Event | None], now: datetime) -> Ending:
    known = [event for event in events if event is not None]
    ends = [event.ended_at for event in known if event.ended_at is not None]
    at = max(ends) if len(ends) == len(events) and ends else now
    for result, code in _CODES.items():
        bad = [(e, o) for e in known for o in e.outcomes if o.result is result]
        if bad:
            message = "; ".join(_said(event, outcome) for event, outcome in bad)
            return Ending(OperationStatus.FAILED, at, code, message)
    if len(known) < len(events):
        text = f"what became of the {operation.verb} is not known any more: look at the resource"
        return Ending(OperationStatus.FAILED, at, _CODES[Result.LOST], text)
    canceled = [event for event in known if event.status is EventStatus.CANCELED]
    if canceled:
        text = "; ".join(
            f"{event.type.value} {event.id} on {', '.join(event.machines)} was canceled"
            for event in canceled
        )
        return Ending(OperationStatus.CANCELED, at, CANCELED_CODE, text)
    return Ending(OperationStatus.SUCCEEDED, at)


def _said(event: Event, outcome: Outcome) -> str:
    text = f"{event.type.value} {event.id} on {outcome.machine}: {outcome.result.value}"
    return f"{text}, {outcome.detail}" if outcome.detail else text
