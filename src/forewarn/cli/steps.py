"""What operators do to an event: approve, cancel, postpone, resolve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from forewarn.cli import prefixes
from forewarn.cli.answers import Event
from forewarn.cli.client import Client
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.options import AsJson, EventIdPrefix, Length
from forewarn.cli.phrases import parse_instant, seconds, spell, when_from
from forewarn.cli.pictures import summary
from forewarn.cli.tables import print_json, print_line
from forewarn.clocks import SystemClock
from forewarn.errors import Malformed, Refused, Unknown
from forewarn.tables.durations import parse_duration

OPEN: Final = ("Scheduled", "Started")


def approve(
    event: EventIdPrefix,
    /,
    *more: EventIdPrefix,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Approve events: they may start before their notice has run out.

    For example:

        forewarn approve 4F2A
        forewarn approve 4F2A 9C01 --json
    """
    client = connection.client()
    found = _found(client, [event, *more], "approved")
    for one in found:
        if one["status"] not in OPEN:
            raise Refused(f"{summary(one)} is {one['status']}: nothing to approve")
    approved = (client.step(one["event_id"], "approve", {}) for one in found)
    if as_json:
        print_json({"events": list(approved)})
        return
    for before, after in zip(found, approved, strict=True):
        print_line(_approved(before, after))


def cancel(
    event: EventIdPrefix,
    /,
    *more: EventIdPrefix,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Cancel events that have not started.

    For example:

        forewarn cancel 4F2A
        forewarn cancel 4F2A 9C01
    """
    client = connection.client()
    found = _found(client, [event, *more], "canceled")
    canceled = (client.step(one["event_id"], "cancel", {}) for one in found)
    _tell("canceled", canceled, as_json=as_json)


def postpone(
    event: EventIdPrefix,
    /,
    *,
    by: Length | None = None,
    to: str | None = None,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Move an event later, as far as the service allows.

    For example:

        forewarn postpone 4F2A --by 1h
        forewarn postpone 4F2A --to 2026-11-16T09:00:00Z

    Args:
        by: How much later it may start, such as 1h.
        to: When it may start, such as 2026-11-16T09:00:00Z.
    """
    body: Mapping[str, object]
    if by is not None and to is None:
        body = {"by_seconds": seconds(parse_duration(by))}
    elif to is not None and by is None:
        body = {"to": spell(parse_instant(to))}
    else:
        raise Malformed("say how far to postpone it: either --by 1h, or --to 2026-11-16T09:00:00Z")
    client = connection.client()
    [event_id] = prefixes.resolve(client, [event])
    _tell("postponed", [client.step(event_id, "postpone", body)], as_json=as_json)


def resolve(
    event: EventIdPrefix,
    /,
    *,
    completed: bool = False,
    failed: bool = False,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """End a started event by hand, when the fabric cannot tell how it went.

    For example:

        forewarn resolve 4F2A --completed
        forewarn resolve 4F2A --failed

    Args:
        completed: What was to happen to the VMs has happened.
        failed: It has not.
    """
    if completed == failed:
        raise Malformed("say how it went: either --completed or --failed")
    result = "completed" if completed else "failed"
    client = connection.client()
    [event_id] = prefixes.resolve(client, [event])
    resolved = client.step(event_id, "resolve", {"result": result})
    _tell(f"resolved as {result}:", [resolved], as_json=as_json)


def _found(client: Client, typed: Sequence[str], done: str) -> list[Event]:
    """The events that are meant, all of them, before anything is done to one of them."""
    try:
        return [client.event(event_id) for event_id in prefixes.resolve(client, typed)]
    except (Malformed, Unknown) as error:
        if len(typed) == 1:
            raise
        family = Unknown if isinstance(error, Unknown) else Malformed
        raise family(f"{error}; nothing was {done}") from error


def _approved(before: Event, after: Event) -> str:
    """What an approval came to."""
    if before["approved"] is not None:
        return f"{summary(before)} was already approved by {before['approved']['by']}"
    if before["status"] != "Scheduled":
        return f"{summary(before)} is {before['status']} already: no approval was needed"
    return f"approved {summary(after)}"


def _tell(done: str, events: Iterable[Event], *, as_json: bool) -> None:
    """Say what was done to each event as soon as it is."""
    if as_json:
        print_json({"events": list(events)})
        return
    now = SystemClock().now()
    for event in events:
        not_before = when_from(event["not_before"], now) if event["status"] == "Scheduled" else ""
        later = f", not before {not_before}" if not_before and not event["approved"] else ""
        print_line(f"{done} {summary(event)}{later}")
