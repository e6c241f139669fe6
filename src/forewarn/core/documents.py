"""What a scope's machines may read, and when it counts as new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from forewarn.core.events import Audience, Event, EventSource, EventStatus, EventType
from forewarn.core.names import EventId, Incarnation, MachineName

FIRST_INCARNATION: Final = Incarnation(1)
# Clients decode the number into 32 signed bits.
INCARNATION_MAX: Final = Incarnation(2**31 - 1)
# Azure does not say as what an OS image's replacement is shown; that it ends in a boot is certain.
SHOWN_AS: Final[Mapping[EventType, EventType]] = {EventType.REIMAGE: EventType.REBOOT}


class Notice(NamedTuple):
    """The face an event shows to guests."""

    id: EventId
    status: EventStatus
    type: EventType
    machines: tuple[MachineName, ...]
    # None once the event has started: there is nothing left to wait for.
    not_before: datetime | None
    description: str
    source: EventSource
    duration: timedelta | None


@dataclass(frozen=True, slots=True)
class Document:
    """A scope's notices under one incarnation."""

    incarnation: Incarnation = FIRST_INCARNATION
    notices: tuple[Notice, ...] = ()


def notices(events: Iterable[Event]) -> tuple[Notice, ...]:
    """What guests see of these events, in the order of their creation."""
    return tuple(
        Notice(
            id=event.id,
            status=event.status,
            type=SHOWN_AS.get(event.type, event.type),
            machines=event.machines,
            not_before=event.not_before if event.status is EventStatus.SCHEDULED else None,
            description=event.description,
            source=event.source,
            duration=event.duration,
        )
        for event in events
        if event.is_open and event.audience is Audience.GUESTS
    )
