"""What operators do to an event: approve, cancel, postpone, resolve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forewarn.cli import prefixes
from forewarn.cli.answers import Event
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.options import AsJson, EventIdPrefix
from forewarn.cli.phrases import parse_instant, seconds, spell, when_from
from forewarn.cli.pictures import summary
from forewarn.cli.tables import print_json, print_line
from forewarn.clocks import SystemClock
from forewarn.config.durations import parse_duration
from forewarn.errors import Malformed


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
    approved = _take("approve", {}, [event, *more], connection)
    _tell("approved", approved, as_json=as_json)


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
    canceled = _take("cancel", {}, [event, *more], connection)
    _tell("canceled", canceled, as_json=as_json)


def postpone(
    event: EventIdPrefix,
    /,
    *,
    by: str | None = None,
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
    postponed = _take("postpone", body, [event], connection)
    _tell("postponed", postponed, as_json=as_json)


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
    resolved = _take("resolve", {"result": result}, [event], connection)
    _tell(f"resolved as {result}:", resolved, as_json=as_json)


def _take(
    verb: str, body: Mapping[str, object], typed: Sequence[str], connection: Connection
) -> list[Event]:
    client = connection.client()
    return [client.step(event_id, verb, body) for event_id in prefixes.resolve(client, typed)]


def _tell(done: str, events: Sequence[Event], *, as_json: bool) -> None:
    if as_json:
        print_json({"events": events})
        return
    now = SystemClock().now()
    for event in events:
        not_before = when_from(event["not_before"], now) if event["status"] == "Scheduled" else ""
        later = f", not before {not_before}" if not_before and not event["approved"] else ""
        print_line(f"{done} {summary(event)}{later}")
