"""What the agent's endpoint answers: from a target and a report to a reply. Pure, but for `healthy`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, urlsplit

from forewarn.agent import metrics
from forewarn.agent.reports import Counts, Report, dump_report

OK: Final = 200
BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404
UNAVAILABLE: Final = 503
TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered."""

    status: int
    body: str
    content_type: str = TEXT


@dataclass(frozen=True, slots=True)
class Look:
    """What there is to be told of."""

    report: Report
    counts: Counts = field(default_factory=Counts)
    # Whether the agent does its rounds.
    is_at_work: bool = True


def answer(target: str, look: Look, is_healthy: Callable[[], bool]) -> Reply:
    """The reply to a GET. `is_healthy` takes its time, and so is asked only if it matters."""
    try:
        parts = urlsplit(target)
        wanted = parse_qs(parts.query, keep_blank_values=True)
    except ValueError:
        return Reply(BAD_REQUEST, "not a target\n")
    if parts.path == "/readyz":
        event_id = wanted.get("event")
        return (
            _ready(look.report, is_healthy) if event_id is None else _ready_for(look, event_id[0])
        )
    tell = _TELLERS.get(parts.path)
    if tell is None:
        return Reply(NOT_FOUND, f"nothing is here: ask for {', '.join(PATHS)}\n")
    return tell(look)


def _alive(look: Look) -> Reply:
    if look.is_at_work:
        return Reply(OK, "at work\n")
    return Reply(UNAVAILABLE, f"not at work since {look.report.at:%Y-%m-%dT%H:%M:%SZ}\n")


def _drained(look: Look) -> Reply:
    return Reply(UNAVAILABLE, "drained\n") if look.report.is_drained else Reply(OK, "in use\n")


def _metrics(look: Look) -> Reply:
    return Reply(OK, metrics.render(look.report, look.counts), metrics.CONTENT_TYPE)


def _events(look: Look) -> Reply:
    return Reply(OK, json.dumps(dump_report(look.report), indent=1) + "\n", JSON)


_TELLERS: Final[Mapping[str, Callable[[Look], Reply]]] = {
    "/healthz": _alive,
    "/drainz": _drained,
    "/metrics": _metrics,
    "/events": _events,
}
PATHS: Final = ("/readyz", *_TELLERS)


def _ready_for(look: Look, event_id: str) -> Reply:
    if not event_id:
        return Reply(BAD_REQUEST, "write /readyz?event=ID\n")
    if look.report.is_ready_for(event_id):
        return Reply(OK, "ready\n")
    return Reply(UNAVAILABLE, "not ready for that event\n")


def _ready(report: Report, is_healthy: Callable[[], bool]) -> Reply:
    reasons = list(report.unreadiness())
    if not reasons and not is_healthy():
        reasons.append("the command `healthy` says no")
    return Reply(UNAVAILABLE, "\n".join([*reasons, ""])) if reasons else Reply(OK, "ready\n")
