"""What can happen in a scenario, as values: things done to VMs, and things expected of what they read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from forewarn.core.events import Cause, EventSource, EventType


class Seen(Enum):
    """How a VM sees an event."""

    SCHEDULED = "Scheduled"
    STARTED = "Started"
    # Not, or not any more.
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: its number in the file, counted from 1, and when it is taken, from the beginning."""

    number: int
    at: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Announce(Step):
    """Something is announced to machines; or it strikes them, if hardware failed."""

    type: EventType
    cause: Cause = Cause.MAINTENANCE
    source: EventSource = EventSource.PLATFORM
    machines: tuple[str, ...]
    # All machines of this host, instead.
    host: str | None = None
    notice: timedelta | None = None
    # What guests are told; how long it really stays Started is another thing.
    duration: timedelta | None = None
    started_for: timedelta | None = None
    description: str | None = None
    # What later steps call the events that come of it, one for each.
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(Step):
    """An event is called off."""

    event: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve(Step):
    """A machine approves an event, as a handler on it would."""

    event: str
    machine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inject(Step):
    """The guests' endpoint misbehaves; to all machines, if none is named."""

    kind: str
    machine: str | None = None
    times: int | None = None
    lasts: timedelta | None = None
    delay: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectEvent(Step):
    """Machines read an event so, or not at all. A detail that is None is not looked at."""

    event: str
    seen: Seen
    # Who reads; nobody in particular: those that the event is about.
    machines: tuple[str, ...] = ()
    within: timedelta = timedelta()
    type: EventType | None = None
    source: EventSource | None = None
    resources: tuple[str, ...] | None = None
    # How long after the announcement.
    not_before: timedelta | None = None
    # In seconds, as guests read it; -1 where it is not known.
    duration: int | None = None
    description: str | None = None
    incarnation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectApproval(Step):
    """Somebody on a machine approves an event; on this machine, if one is named."""

    event: str
    machine: str | None = None
    within: timedelta = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectAnswer(Step):
    """Machines are answered so: a status, or a word for what is no proper answer."""

    machines: tuple[str, ...]
    answer: str
    within: timedelta = timedelta()


Expectation = ExpectEvent | ExpectApproval | ExpectAnswer
AnyStep = Announce | Cancel | Approve | Inject | Expectation
