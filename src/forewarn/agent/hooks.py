"""Hooks: what the owner has done before, during and after an event, and what they are told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from enum import Enum
from typing import Final

from forewarn.client.documents import Event

# What a hook says by its exit status; anything else is a failure.
READY: Final = 0
NOTHING_TO_DO: Final = 70


class Phase(Enum):
    """When a hook is run."""

    # From when the event is announced.
    PREPARE = "prepare"
    # When it has started.
    STARTED = "started"
    # When it is over, or was called off: once.
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class Hook:
    """A command of the owner's."""

    # Of one phase, in the order of their names.
    name: str
    command: tuple[str, ...]
    # How long it may take; None if nobody says.
    limit: timedelta | None = None


def variables(
    event: Event, phase: Phase, *, name: str, deadline: datetime, attempt: int
) -> dict[str, str]:
    """A hook's environment. The names up to EVENT_RESOURCETYPE are in use in the field."""
    not_before = event.not_before
    duration = event.duration
    return {
        "EVENT_ID": event.id,
        "EVENT_TYPE": event.type,
        "EVENT_STATUS": event.status,
        "EVENT_SOURCE": event.source,
        "EVENT_NOTBEFORE": "" if not_before is None else format_datetime(not_before, usegmt=True),
        "EVENT_RESOURCES": " ".join(event.resources),
        "EVENT_RESOURCETYPE": "VirtualMachine",
        "EVENT_DESCRIPTION": event.description,
        "EVENT_DURATION": "-1" if duration is None else str(int(duration.total_seconds())),
        "EVENT_DEADLINE": str(int(deadline.timestamp())),
        "EVENT_PHASE": phase.value,
        "EVENT_NAME": name,
        "EVENT_ATTEMPT": str(attempt),
    }
