"""Events as people see them: a row among others, or the whole record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from forewarn.cli.answers import Event
from forewarn.cli.phrases import span, when, when_from, when_short
from forewarn.cli.tables import Table

_HEADINGS = ("Event", "Type", "Status", "VMs", "Not before", "Scope", "Remarks")
# Event, Type, Status, VMs: what is looked for in a hurry.
_UNFOLDED = 4
SHORT_ID = 8
# Beyond the service's margin for publishing an event.
_SPACING_LEAST = timedelta(seconds=30)
_MAINTENANCE = ("Freeze", "Reboot", "Redeploy")
_SPACED = "after other update domains and their recovery"


def events_table(events: Sequence[Event], now: datetime) -> Table:
    """One row for each event."""
    return Table(
        headings=_HEADINGS,
        rows=[_row(event, now) for event in events],
        short=[_short_row(event, now) for event in events],
        unfolded=_UNFOLDED,
    )


def _row(event: Event, now: datetime) -> tuple[str, ...]:
    return (
        event["event_id"],
        event["type"],
        event["status"],
        ", ".join(event["resources"]),
        _not_before(event, now),
        scope_name(event["resource_group"], event["scope"]),
        "; ".join(_remarks(event, lambda instant: when_from(instant, now))),
    )


def _short_row(event: Event, now: datetime) -> tuple[str, ...]:
    first, *others = event["resources"]
    return (
        event["event_id"][:SHORT_ID],
        event["type"],
        event["status"],
        first if not others else f"{first} +{len(others)}",
        when_short(_shown_not_before(event), now) if event["status"] == "Scheduled" else "",
        scope_name(event["resource_group"], event["scope"]),
        "; ".join(_remarks(event, lambda instant: when_short(instant, now))),
    )


def record_table(event: Event, now: datetime, why_canceled: str = "") -> Table:
    """Everything that is on record about one event."""
    rows = [
        ("Event", event["event_id"]),
        ("Type", event["type"]),
        ("Status", event["status"]),
        ("Canceled", why_canceled),
        ("Held", event["hold"] or ""),
        ("Scope", scope_name(event["resource_group"], event["scope"])),
        ("Update domain", "" if event["update_domain"] is None else str(event["update_domain"])),
        ("VMs", ", ".join(event["resources"])),
        ("Source", f"{event['source']}, {event['cause']}"),
        ("Description", event["description"]),
        ("Expected to take", _length(event["duration_seconds"])),
        ("Not before", ", ".join(filter(None, [_not_before(event, now), _spaced(event)]))),
        *(("Not before, earlier", when(earlier)) for earlier in event["not_before_earlier"]),
        ("Announced", _announced(event)),
        ("Readable", when(event["readable_at"]) or "not yet" * event["announced"]),
        ("Approved", _approved(event) or "no"),
        ("Started", when(event["started_at"]) or "no"),
        ("Ended", when(event["ended_at"]) or "no"),
        ("Notice promised", _length(event["notice_promised_seconds"])),
        ("Notice given", _length(event["notice_given_seconds"])),
        *(("Outcome", line) for line in _outcomes(event)),
    ]
    return Table(rows=[row for row in rows if row[1]])


def scope_name(resource_group: str, scope: str) -> str:
    """A scope as people write it; nothing where the whole service is meant."""
    return f"{resource_group}/{scope}" if scope else ""


def actor_name(role: str, name: str, address: str) -> str:
    """Who did something, and from where, as far as that says more than the role alone."""
    known = role if name == role else f"{role} {name}"
    return f"{known} from {address}" if address else known


def summary(event: Event) -> str:
    """An event in a few words."""
    return f"{event['event_id']} ({event['type']} of {', '.join(event['resources'])})"


def _shown_not_before(event: Event) -> str | None:
    """The NotBefore that guests were shown, if any were."""
    return event["not_before"] if event["announced"] else None


def _not_before(event: Event, now: datetime) -> str:
    instant = _shown_not_before(event)
    return when_from(instant, now) if event["status"] == "Scheduled" else when(instant)


def _remarks(event: Event, tell: Callable[[str | None], str]) -> Iterator[str]:
    if not event["announced"]:
        yield "unannounced"
    if event["started_at"] and not event["ended_at"]:
        yield f"started {tell(event['started_at'])}"
    elif event["approved"] is not None and not event["ended_at"]:
        yield f"approved by {event['approved']['by']}"
    if event["hold"]:
        yield f"held: {event['hold']}"
    elif _spaced(event):
        yield _spaced(event)
    yield from _troubles(event)
    if event["ended_at"]:
        yield f"ended {tell(event['ended_at'])}"


def _troubles(event: Event) -> Iterator[str]:
    for result in ("failed", "timed out"):
        hit = [one["resource"] for one in event["outcomes"] if one["result"] == result]
        if hit:
            yield f"{result} on {', '.join(hit)}"


def _spaced(event: Event) -> str:
    """Why an event waits for longer than its notice, unless somebody postponed it."""
    promised = event["notice_promised_seconds"]
    is_maintenance = event["source"] == "Platform" and event["type"] in _MAINTENANCE
    waits = event["status"] == "Scheduled" and event["announced"] and event["approved"] is None
    if not (waits and is_maintenance and promised is not None and event["not_before"]):
        return ""
    if event["not_before_earlier"]:
        return ""
    announced_at = datetime.fromisoformat(event["announced_at"])
    extra = datetime.fromisoformat(event["not_before"]) - announced_at
    return _SPACED if extra - timedelta(seconds=promised) > _SPACING_LEAST else ""


def _announced(event: Event) -> str:
    by = f" by {event['announced_by']}" if event["announced_by"] else ""
    where = "" if event["announced"] else " (unannounced: guests do not see it)"
    return f"{when(event['announced_at'])}{by}{where}"


def _approved(event: Event) -> str:
    approval = event["approved"]
    if approval is None:
        return ""
    by = actor_name(approval["role"], approval["by"], approval["address"])
    return f"{when(approval['at'])} by {by}"


def _length(amount: float | None) -> str:
    return "" if amount is None or amount < 0 else span(timedelta(seconds=amount))


def _outcomes(event: Event) -> Iterator[str]:
    for outcome in event["outcomes"]:
        at = f" at {when(outcome['at'])}" if outcome["at"] else ""
        detail = f": {outcome['detail']}" if outcome["detail"] else ""
        yield f"{outcome['resource']} {outcome['result']}{at}{detail}"
