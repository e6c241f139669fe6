"""What may happen to a machine that runs, or does not, and what it is afterwards.

Both are tables. A pair that is absent from the first is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from forewarn.core.events import EventType
from forewarn.core.scopes import Presence


class Verdict(Enum):
    """What comes of an impact that is allowed."""

    GO = "go"
    # The machine is as it shall be: nothing happens, and nobody is refused.
    ALREADY = "already"


VERDICTS: Final[Mapping[tuple[EventType, Presence], Verdict]] = {
    (EventType.FREEZE, Presence.RUNNING): Verdict.GO,
    (EventType.REBOOT, Presence.RUNNING): Verdict.GO,
    (EventType.REDEPLOY, Presence.RUNNING): Verdict.GO,
    (EventType.PREEMPT, Presence.RUNNING): Verdict.GO,
    (EventType.REIMAGE, Presence.RUNNING): Verdict.GO,
    (EventType.TERMINATE, Presence.RUNNING): Verdict.GO,
    (EventType.TERMINATE, Presence.STOPPED): Verdict.GO,
    (EventType.TERMINATE, Presence.DEALLOCATED): Verdict.GO,
    (EventType.POWER_OFF, Presence.RUNNING): Verdict.GO,
    (EventType.POWER_OFF, Presence.STOPPED): Verdict.ALREADY,
    (EventType.POWER_OFF, Presence.DEALLOCATED): Verdict.ALREADY,
    (EventType.DEALLOCATE, Presence.RUNNING): Verdict.GO,
    (EventType.DEALLOCATE, Presence.STOPPED): Verdict.GO,
    (EventType.DEALLOCATE, Presence.DEALLOCATED): Verdict.ALREADY,
    (EventType.START, Presence.RUNNING): Verdict.ALREADY,
    (EventType.START, Presence.STOPPED): Verdict.GO,
    (EventType.START, Presence.DEALLOCATED): Verdict.GO,
}

# Any other impact leaves a machine what it was.
AFTER: Final[Mapping[EventType, Presence]] = {
    EventType.POWER_OFF: Presence.STOPPED,
    EventType.DEALLOCATE: Presence.DEALLOCATED,
    EventType.PREEMPT: Presence.DEALLOCATED,
    EventType.START: Presence.RUNNING,
    EventType.TERMINATE: Presence.DELETED,
}

# What changes whether a machine runs, at its owner's wish.
POWER_TYPES: Final = frozenset({EventType.POWER_OFF, EventType.DEALLOCATE, EventType.START})


def is_concerned(event_type: EventType, presence: Presence) -> bool:
    """Whether a scheduled event goes on to concern a machine that is now so."""
    if presence is Presence.STOPPED and event_type not in POWER_TYPES:
        # What happens to its host happens to it, and it may run again by then.
        return True
    return VERDICTS.get((event_type, presence)) is Verdict.GO
