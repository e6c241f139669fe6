"""A report in Prometheus's text format: under the names that are in use in the field, and under ours. Pure.

The field's are those of webdevops/azure-scheduledevents-manager, labels and all, so that dashboards and alerts go on
working. Where it counts every request, we leave out those that the server was asked to hold until there is news: they
take as long as there is none, and would say nothing of how soon it answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from email.utils import format_datetime
from typing import Final

from forewarn import __version__
from forewarn.agent.cases import Case
from forewarn.agent.hooks import Phase
from forewarn.agent.reports import Counts, Report
from forewarn.agent.rules import Readiness, Verdict
from forewarn.client.documents import Event
from forewarn.client.tallies import BOUNDS, Tally

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_STATES: Final = ("preparing", "ready", "failed", "approved", "started", "undoing")


def render(report: Report, counts: Counts = Counts()) -> str:  # noqa: B008 - a value
    """All metrics."""
    return "".join(f"{line}\n" for line in _lines(report, counts))


def _lines(report: Report, counts: Counts) -> Iterator[str]:
    yield from _of_the_document(report)
    yield from _of_requests(counts.requests)
    yield from _ours(report, counts)


def _of_the_document(report: Report) -> Iterator[str]:
    document = report.document
    if document is not None:
        name = "azure_scheduledevent_document_incarnation"
        yield from _head(name, "gauge", "DocumentIncarnation of the document that was read last.")
        yield _sample(name, document.incarnation)
    name = "azure_scheduledevent_event"
    yield from _head(name, "gauge", "NotBefore of each event of the document; 0: there is none.")
    for event in () if document is None else document.events:
        # One line twice would have the whole page refused.
        for resource in dict.fromkeys(event.resources) or ("",):
            yield _sample(name, _seconds(event.not_before), _labels_of(event, resource))
    cases = [case for case, _ in report.cases]
    name = "azure_scheduledevent_event_drain"
    yield from _head(name, "gauge", "When the hooks of prepare began, and when the last was over.")
    for case in cases:
        if case.runs(Phase.PREPARE):
            yield from _drain(name, case)
    name = "azure_scheduledevent_event_approval"
    yield from _head(name, "gauge", "When this agent approved the event.")
    for case in cases:
        if case.approved is not None:
            yield _sample(name, _seconds(case.approved), [("eventID", case.event.id)])


def _labels_of(event: Event, resource: str) -> list[tuple[str, str]]:
    not_before = event.not_before
    return [
        ("eventID", event.id),
        ("eventType", event.type),
        ("resourceType", "VirtualMachine"),
        ("resource", resource),
        ("eventStatus", event.status),
        ("notBefore", "" if not_before is None else format_datetime(not_before, usegmt=True)),
        ("eventSource", event.source),
    ]


def _drain(name: str, case: Case) -> Iterator[str]:
    yield _sample(name, _seconds(case.opened), [("eventID", case.event.id), ("type", "start")])
    if case.prepared is not None:
        labels = [("eventID", case.event.id), ("type", "finish")]
        yield _sample(name, _seconds(case.prepared), labels)


def _of_requests(tally: Tally) -> Iterator[str]:
    name = "azure_scheduledevent_request"
    what = "Seconds until the metadata service answered, if it was not asked to wait for news."
    yield from _head(name, "histogram", what)
    for bound, count in zip(BOUNDS, tally.within, strict=True):
        yield _sample(f"{name}_bucket", count, [("le", f"{bound:g}")])
    yield _sample(f"{name}_bucket", tally.answered, [("le", "+Inf")])
    yield _sample(f"{name}_sum", tally.took.total_seconds())
    yield _sample(f"{name}_count", tally.answered)
    name = "azure_scheduledevent_request_error"
    yield from _head(name, "counter", "Requests that were not answered, or not well.")
    yield _sample(name, tally.failed)


def _ours(report: Report, counts: Counts) -> Iterator[str]:
    name = "forewarn_agent_info"
    yield from _head(name, "gauge", "The agent, and the VM's own name.")
    yield _sample(name, 1, [("version", __version__), ("name", report.name or "")])
    name = "forewarn_agent_events"
    yield from _head(name, "gauge", "Events of this VM that are in hand, by how far they are.")
    states = Counter(_state(case) for case, _ in report.cases)
    for state in _STATES:
        yield _sample(name, states[state], [("state", state)])
    name = "forewarn_agent_held"
    yield from _head(name, "gauge", "Events that are prepared for, and not approved all the same.")
    yield _sample(name, sum(_is_held(*one) for one in report.cases))
    name = "forewarn_agent_hook_runs_total"
    yield from _head(name, "counter", "Hooks that are over, since the agent was started.")
    for (phase, result), count in sorted(
        counts.ended.items(), key=lambda item: (item[0][0].value, item[0][1].value)
    ):
        labels = [("phase", phase.value), ("result", result.value.replace(" ", "_"))]
        yield _sample(name, count, labels)
    name = "forewarn_agent_trouble"
    yield from _head(name, "gauge", "1 while the document cannot be read, or nothing be written.")
    yield _sample(name, int(report.trouble is not None))


def _state(case: Case) -> str:
    if case.is_over:
        return "undoing"
    if case.event.has_started:
        return "started"
    if case.approved is not None:
        return "approved"
    match case.readiness:
        case Readiness.UNDER_WAY:
            return "preparing"
        case Readiness.FAILED:
            return "failed"
        case Readiness.READY | Readiness.WITHOUT:
            return "ready"


def _is_held(case: Case, verdict: Verdict) -> bool:
    return _state(case) in ("ready", "failed") and not verdict.approves


def _head(name: str, kind: str, what: str) -> tuple[str, str]:
    return f"# HELP {name} {what}", f"# TYPE {name} {kind}"


def _sample(name: str, value: float, labels: Iterable[tuple[str, str]] = ()) -> str:
    told = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels)
    return f"{name}{{{told}}} {value}" if told else f"{name} {value}"


def _seconds(instant: datetime | None) -> float:
    return 0 if instant is None else instant.timestamp()
