"""What a document means to who knows the one before: events announced, changed, started and gone.

Only events are compared, never incarnations: those begin anew at times, and the same number may then
stand for something else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from forewarn.client.documents import Event


class Kind(Enum):
    """What has become of an event."""

    # It is new, and has not started.
    ANNOUNCED = "announced"
    # It is not what it was: postponed, or for other VMs.
    CHANGED = "changed"
    # It has started; it may be new as well, as after a failure of hardware.
    STARTED = "started"
    # It is over, or was called off. Azure does not say which; whether it had started is a hint.
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Change:
    """One event's change, with the event as it is now; one that is gone, as it was last seen."""

    kind: Kind
    event: Event
    # Whether the VM that asks is, or was, among those that the event is for.
    concerns_me: bool


def compare(before: Iterable[Event], after: Iterable[Event], name: str) -> tuple[Change, ...]:
    """What changed for the VM of that name: first what is gone, then the rest in its order."""
    known = {event.id: event for event in before}
    shown = {event.id: event for event in after}
    gone = [
        Change(Kind.GONE, event, event.concerns(name))
        for event in known.values()
        if event.id not in shown
    ]
    others = [
        Change(kind, event, event.concerns(name) or _concerned(known.get(event.id), name))
        for event in shown.values()
        if (kind := _kind(known.get(event.id), event)) is not None
    ]
    return (*gone, *others)


def _kind(before: Event | None, after: Event) -> Kind | None:
    if before == after:
        return None
    if after.has_started and (before is None or not before.has_started):
        return Kind.STARTED
    return Kind.ANNOUNCED if before is None else Kind.CHANGED


def _concerned(before: Event | None, name: str) -> bool:
    return before is not None and before.concerns(name)
