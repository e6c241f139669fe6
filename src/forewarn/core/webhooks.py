"""Webhooks: who wants to be told of which changes, and how long we try.

A change is a line of the journal that concerns an event. Nobody is told of anything else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, NewType

from forewarn.core.events import Audience, EventType
from forewarn.core.journal import Entry, What
from forewarn.core.names import ScopeId
from forewarn.core.targets import Target

WebhookId = NewType("WebhookId", str)
# Names one change, the same at every attempt to tell it: "<commit>.<number of the line>".
ChangeId = NewType("ChangeId", str)

WEBHOOKS_MAX: Final = 100
# Of one owner, so that none takes all of them.
WEBHOOKS_OF_ONE_MAX: Final = 20

BACK_OFF_FIRST: Final = timedelta(seconds=1)
BACK_OFF_MAX: Final = timedelta(minutes=10)
# A change this old is given up on, if it was tried often enough since we noticed it.
GIVE_UP_AFTER: Final = timedelta(hours=24)
TRIES_MIN: Final = 5
# With so many, nothing more is told until somebody looks at them.
DEAD_LETTERS_MAX: Final = 1000

# What Azure's form can express: changes of what guests see.
_OF_NOTICES: Final = frozenset(
    {
        *(What.ANNOUNCED, What.MOVED, What.POSTPONED, What.NARROWED),
        *(What.STARTED, What.COMPLETED, What.CANCELED),
    }
)


class Form(Enum):
    """How a change is written."""

    CLOUD_EVENTS = "cloudevents"
    # As Azure's Event Grid tells of scheduled events.
    EVENT_GRID = "event-grid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which changes somebody wants; what is empty wants all."""

    # In lower case.
    groups: tuple[str, ...] = ()
    scopes: tuple[ScopeId, ...] = ()
    types: tuple[EventType, ...] = ()
    changes: tuple[What, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Somebody who is told of changes."""

    id: WebhookId
    name: str
    target: Target
    form: Form = Form.CLOUD_EVENTS
    wanted: Wanted = field(default_factory=Wanted)
    # What every delivery is signed with.
    secret: bytes = field(repr=False)
    created_by: str
    created_at: datetime
    is_paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """What a webhook was not told. Without an entry, changes that the journal no longer had."""

    number: int
    change: ChangeId | None
    entry: Entry | None
    at: datetime
    tries: int
    why: str


def wants(webhook: Webhook, entry: Entry) -> bool:
    """Whether a webhook is told of a line of the journal."""
    event, wanted = entry.event, webhook.wanted
    if event is None:
        return False
    if webhook.form is Form.EVENT_GRID and (
        entry.what not in _OF_NOTICES or event.audience is not Audience.GUESTS
    ):
        return False
    if wanted.groups and entry.scope.partition("/")[0] not in wanted.groups:
        return False
    return (
        (not wanted.scopes or entry.scope in wanted.scopes)
        and (not wanted.types or event.type in wanted.types)
        and (not wanted.changes or entry.what in wanted.changes)
    )


def back_off(tries: int, chance: float) -> timedelta:
    """How long to wait after so many failures: twice as long each time, less up to a half by chance."""
    assert tries >= 1, "nobody waits before the first attempt"
    assert 0 <= chance <= 1, "a share"
    # Bounded before it is raised: 2 to the power of days of trying is out of any calendar.
    longest = min(BACK_OFF_FIRST * (1 << min(tries - 1, 30)), BACK_OFF_MAX)
    return longest * (1 - chance / 2)


def is_hopeless(entry: Entry, now: datetime, tries: int) -> bool:
    """Whether a change that just failed again is given up on."""
    return tries >= TRIES_MIN and now - entry.at >= GIVE_UP_AFTER
