"""What was begun, and how far it is: an operation, its events, and the words for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from forewarn.cli.answers import Event, Operation
from forewarn.cli.phrases import span, when_from
from forewarn.cli.pictures import SHORT_ID, actor_name

_ENDED: Final = ("Completed", "Canceled")
_BAD_RESULTS: Final = ("failed", "timed out", "overtaken", "lost")


@dataclass(slots=True, kw_only=True)
class Errand:
    """Something that was begun, as it was when we last looked."""

    # Such as "restart of web-0".
    label: str
    # Where its operation tells how far it is; None: its events say it all.
    address: str | None = None
    operation: Operation | None = None
    event_ids: Sequence[str] = ()
    events: list[Event] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        if self.operation is not None:
            return self.operation["status"] != "InProgress"
        return all(map(_is_over, self.events))

    @property
    def fault(self) -> str:
        """Why it did not succeed; nothing if it did, or is not over."""
        if self.operation is None:
            return "; ".join(filter(None, map(_fault, self.events)))
        error = self.operation.get("error")
        return "" if error is None else error["message"]


def of_events(events: Sequence[Event]) -> list[Errand]:
    """Events as something to be followed, each for itself."""
    return [
        Errand(
            label=f"{event['type']} of {', '.join(event['resources'])}",
            event_ids=[event["event_id"]],
        )
        for event in events
    ]


def phrase(event: Event, now: datetime) -> str:
    """How far an event is, in a line."""
    named = f"{event['type']} {event['event_id'][:SHORT_ID]} of {', '.join(event['resources'])}"
    return f"{named}: {'; '.join(filter(None, _clauses(event, now)))}"


def _clauses(event: Event, now: datetime) -> Iterator[str]:
    status, approval = event["status"], event["approved"]
    is_scheduled = status == "Scheduled"
    waits = is_scheduled and event["announced"] and approval is None
    yield f"{status}, not before {when_from(event['not_before'], now)}" if waits else status
    if waits:
        yield "waiting for approval"
    if not event["announced"]:
        yield "unannounced"
    if approval is not None:
        yield f"approved by {actor_name(approval['role'], approval['by'], approval['address'])}"
    yield f"held: {event['hold']}" if event["hold"] else ""
    if status == "Started":
        yield f"for {span(now - datetime.fromisoformat(event['started_at'] or event['announced_at']))}"
    yield _fault(event) if status != "Canceled" else ""


def phrase_of_nothing(errand: Errand) -> str:
    return f"{errand.label}: nothing had to be done"


def _is_over(event: Event) -> bool:
    """Whether an event has ended, or needs somebody to see to it first."""
    if event["status"] in _ENDED:
        return True
    told = {outcome["resource"] for outcome in event["outcomes"]}
    return event["status"] == "Started" and told >= set(event["resources"])


def _fault(event: Event) -> str:
    """Why an event did not do what it was for; nothing if it did, or is under way."""
    if event["status"] == "Canceled":
        return f"{event['type']} {event['event_id']} was canceled"
    bad = [outcome for outcome in event["outcomes"] if outcome["result"] in _BAD_RESULTS]
    return "; ".join(
        f"{one['resource']} {one['result']}" + (f", {one['detail']}" if one["detail"] else "")
        for one in bad
    )
