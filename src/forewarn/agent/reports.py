"""Reports: how the agent is, as one value that those who tell others read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from forewarn.agent.cases import Case, Result, Run
from forewarn.agent.hooks import Phase
from forewarn.agent.rules import Readiness, Verdict
from forewarn.client.documents import Document, dump_event
from forewarn.client.tallies import Tally


@dataclass(frozen=True, slots=True)
class Report:
    """The agent at one moment."""

    # When it was last at work.
    at: datetime
    # None until the VM has said who it is.
    name: str | None = None
    # None until it was read.
    document: Document | None = None
    # What is in hand, each with what keeps it from being approved, or does not.
    cases: tuple[tuple[Case, Verdict], ...] = ()
    # Why the document cannot be read at the moment, or nothing be written down.
    trouble: str | None = None
    # Whether the cases are as this agent has seen them, and not only as the last one wrote them down.
    is_settled: bool = True

    @property
    def is_pending(self) -> bool:
        """Whether an event is before this VM."""
        return any(not case.is_over for case, _ in self.cases)

    @property
    def is_drained(self) -> bool:
        """Whether this VM has made ready for an event, and that was not undone yet."""
        return any(_is_drained(case) for case, _ in self.cases)

    def is_ready_for(self, event_id: str) -> bool:
        """Whether this VM has made ready for that event."""
        return self.is_settled and any(
            case.event.id == event_id.upper()
            and not case.is_over
            and case.readiness in (Readiness.READY, Readiness.WITHOUT)
            for case, _ in self.cases
        )

    def unreadiness(self) -> Iterator[str]:
        """What keeps this VM from being used as ever: events in hand, until they are undone."""
        for case, _ in self.cases:
            state = "is being undone" if case.is_over else f"is {case.event.status}"
            yield f"event {case.event.id} ({case.event.type}) {state}"


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted since the agent is at work."""

    ended: Mapping[tuple[Phase, Result], int] = field(default_factory=dict)
    requests: Tally = field(default_factory=Tally)


def _is_drained(case: Case) -> bool:
    return case.readiness is Readiness.READY and case.is_touched


def dump_report(report: Report) -> dict[str, object]:
    """A report for programs: what is in hand, how far it is, and what keeps it from being approved."""
    return {
        "name": report.name,
        "at": report.at.isoformat(),
        "incarnation": None if report.document is None else report.document.incarnation,
        "trouble": report.trouble,
        "is_pending": report.is_pending,
        "is_drained": report.is_drained,
        "events": [_dump_case(case, verdict) for case, verdict in report.cases],
    }


def _dump_case(case: Case, verdict: Verdict) -> dict[str, object]:
    return {
        "event": dump_event(case.event),
        "opened": case.opened.isoformat(),
        "readiness": case.readiness.value,
        "phases": {
            phase.value: [_dump_run(run) for run in runs] for phase, runs in case.phases.items()
        },
        "is_over": case.is_over,
        "approved": None if case.approved is None else case.approved.isoformat(),
        "refused": case.refused,
        "approves": verdict.approves,
        "why": verdict.why,
    }


def _dump_run(run: Run) -> dict[str, object]:
    return {
        "hook": run.hook.name,
        "attempt": run.attempt,
        "began": None if run.began is None else run.began.isoformat(),
        "result": None if run.result is None else run.result.value,
        "code": run.code,
    }
