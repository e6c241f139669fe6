"""Events, hooks and sights for the tests of what is decided about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from forewarn.agent import advancing, cases
from forewarn.agent.advancing import Advance, Sight
from forewarn.agent.cases import Case
from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.runs import Look
from forewarn.client.documents import Event

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
EVENT = Event(
    id="E",
    type="Reboot",
    status="Scheduled",
    resources=("web-0", "web-1"),
    not_before=NOW + timedelta(minutes=15),
    source="Platform",
)
STARTED = replace(EVENT, status="Started", not_before=None)
FIRST = Hook("10-first", ("first",))
SECOND = Hook("20-second", ("second",))
HOOKS: Mapping[Phase, tuple[Hook, ...]] = {
    Phase.PREPARE: (FIRST, SECOND),
    Phase.STARTED: (FIRST,),
    Phase.UNDO: (FIRST,),
}


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def sight(
    at: float = 0,
    event: Event | None = EVENT,
    runs: Mapping[str, Look] | None = None,
    **other: bool,
) -> Sight:
    return Sight(after(at), "boot", event, runs or {}, HOOKS, **other)


def opened(event: Event = EVENT) -> Case:
    return cases.opened(event, "boot", NOW)


def advanced(case: Case, *sights: Sight) -> Advance:
    """The last of some advances."""
    advance = Advance(case)
    for one in sights:
        advance = advancing.advance(advance.case, one)
    return advance
