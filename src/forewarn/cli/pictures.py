"""Events as people see them: a row among others, or the whole record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from forewarn.cli.answers import Event
from forewarn.cli.phrases import span, when, when_from
from forewarn.cli.tables import Table

_HEADINGS = ("Event", "Type", "Status", "VMs", "Not before", "Scope", "Remarks")


def events_table(events: Iterable[Event], now: datetime) -> Table:
    """One row for each event."""
    rows = [
        (
            event["event_id"],
            event["type"],
            event["status"],
            ", ".join(event["resources"]),
            _not_before(event, now),
            scope_name(event["resource_group"], event["scope"]),
            "; ".join(_remarks(event, now)),
        )
        for event in events
    ]
    return Table(headings=_HEADINGS, rows=rows)


def record_table(event: Event, now: datetime) -> Table:
    """Everything that is on record about one event."""
    rows = [
        ("Event", event["event_id"]),
        ("Type", event["type"]),
        ("Status", event["status"]),
        ("Held by", event["hold"] or ""),
        ("Scope", scope_name(event["resource_group"], event["scope"])),
        ("Update domain", "" if event["update_domain"] is None else str(event["update_domain"])),
        ("VMs", ", ".join(event["resources"])),
        ("Source", f"{event['source']}, {event['cause']}"),
        ("Description", event["description"]),
        ("Expected to take", _length(event["duration_seconds"])),
        ("Not before", _not_before(event, now)),
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


def _not_before(event: Event, now: datetime) -> str:
    if event["status"] == "Scheduled":
        return when_from(event["not_before"], now)
    return when(event["not_before"])


def _remarks(event: Event, now: datetime) -> Iterator[str]:
    if not event["announced"]:
        yield "unannounced"
    if event["started_at"] and not event["ended_at"]:
        yield f"started {when_from(event['started_at'], now)}"
    elif event["approved"] is not None and not event["ended_at"]:
        yield f"approved by {event['approved']['by']}"
    if event["hold"]:
        yield f"held by {event['hold']}"
    if event["ended_at"]:
        yield f"ended {when_from(event['ended_at'], now)}"


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
