"""Events that are made up, to try hooks and rules with. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Final

from forewarn.client.documents import SCHEDULED, Event
from forewarn.errors import Malformed

# The notice that Azure gives at least; of Terminate, unless its owner asks for more.
NOTICES: Final[Mapping[str, timedelta]] = {
    "Freeze": timedelta(minutes=15),
    "Reboot": timedelta(minutes=15),
    "Redeploy": timedelta(minutes=10),
    "Preempt": timedelta(seconds=30),
    "Terminate": timedelta(minutes=5),
}
SOURCES: Final = ("Platform", "User")


@dataclass(frozen=True, slots=True, kw_only=True)
class Idea:
    """What is known of an event that is to be made up."""

    type: str
    source: str = "Platform"
    duration: timedelta | None = None
    # The VMs that it hits; this one alone, if nobody says.
    resources: tuple[str, ...] = ()
    # How long before it may start; as long as Azure gives, if nobody says.
    notice: timedelta | None = None


def imagined(idea: Idea, *, event_id: str, name: str, now: datetime) -> Event:
    """An event that was announced just now, to the VM of this name."""
    notice = NOTICES[idea.type] if idea.notice is None else idea.notice
    return Event(
        id=event_id,
        type=idea.type,
        status=SCHEDULED,
        resources=idea.resources or (name,),
        not_before=_whole(now + notice),
        description="Made up, to try what is done about it.",
        source=idea.source,
        duration=idea.duration,
    )


def _whole(instant: datetime) -> datetime:
    """Not before it, in whole seconds: documents have no others."""
    return (instant + timedelta(microseconds=999_999)).replace(microsecond=0)


def parse_type(text: str) -> str:
    """A type as Azure spells it, from what somebody typed. Raises: Malformed."""
    return _spelled(text, tuple(NOTICES), "event type")


def parse_source(text: str) -> str:
    """A source as Azure spells it, from what somebody typed. Raises: Malformed."""
    return _spelled(text, SOURCES, "source")


def _spelled(text: str, known: tuple[str, ...], kind: str) -> str:
    spelled = {one.casefold(): one for one in known}
    if text.casefold() in spelled:
        return spelled[text.casefold()]
    near = get_close_matches(text.casefold(), spelled, n=1)
    meant = f"did you mean {spelled[near[0]]}?" if near else f"give {' or '.join(known)}"
    raise Malformed(f"{text!r} is no {kind}: {meant}")
