"""What the agent's endpoint answers: from a target and a report to a reply. Pure, but for `healthy`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
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

PATHS: Final = ("/healthz", "/readyz", "/drainz", "/metrics", "/events")


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
    counts: Counts = Counts()
    # Whether the agent does its rounds.
    is_at_work: bool = True


def answer(target: str, look: Look, is_healthy: Callable[[], bool]) -> Reply:
    """The reply to a GET. `is_healthy` takes its time, and so is asked only if it matters."""
    try:
        parts = urlsplit(target)
        wanted = parse_qs(parts.query, keep_blank_values=True)
    except ValueError:
        return Reply(BAD_REQUEST, "not a target\n")
    report = look.report
    match parts.path:
        case "/healthz" if look.is_at_work:
            return Reply(OK, "at work\n")
        case "/healthz":
            return Reply(UNAVAILABLE, f"not at work since {report.at:%Y-%m-%dT%H:%M:%SZ}\n")
        case "/readyz" if "event" in wanted:
            return _ready_for(report, wanted["event"][0])
        case "/readyz":
            return _ready(report, is_healthy)
        case "/drainz":
            return Reply(UNAVAILABLE, "drained\n") if report.is_drained else Reply(OK, "in use\n")
        case "/metrics":
            return Reply(OK, metrics.render(report, look.counts), metrics.CONTENT_TYPE)
        case "/events":
            return Reply(OK, json.dumps(dump_report(report), indent=1) + "\n", JSON)
        case _:
            return Reply(NOT_FOUND, f"nothing is here: ask for {', '.join(PATHS)}\n")


def _ready_for(report: Report, event_id: str) -> Reply:
    if not event_id:
        return Reply(BAD_REQUEST, "write /readyz?event=ID\n")
    if report.is_ready_for(event_id):
        return Reply(OK, "ready\n")
    return Reply(UNAVAILABLE, "not ready for that event\n")


def _ready(report: Report, is_healthy: Callable[[], bool]) -> Reply:
    reasons = list(report.unreadiness())
    if not reasons and not is_healthy():
        reasons.append("the command `healthy` says no")
    return Reply(UNAVAILABLE, "\n".join([*reasons, ""])) if reasons else Reply(OK, "ready\n")
