"""News: what became of a case, in words for people, logs and notifications. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from forewarn.agent.cases import Case, Result, Run
from forewarn.agent.hooks import Phase
from forewarn.agent.rules import Readiness
from forewarn.client.documents import Event


class Kind(Enum):
    """What there is to be told."""

    ANNOUNCED = "announced"
    READY = "ready"
    FAILED = "failed"
    # A hook failed, and so the event is held: somebody should look.
    ALERT = "alert"
    APPROVED = "approved"
    STARTED = "started"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class News:
    """One thing that happened to one event of this VM."""

    kind: Kind
    name: str
    event: Event
    what: str


def news_of(before: Case | None, after: Case, name: str) -> Iterator[News]:
    """What happened between two states of one case."""
    told = _first(after) if before is None else _steps(before, after)
    for kind, what in told:
        yield News(kind, name, after.event, what)


def _first(case: Case) -> Iterator[tuple[Kind, str]]:
    if case.event.has_started:
        yield Kind.STARTED, "started without notice"
    else:
        yield Kind.ANNOUNCED, "announced"


def _steps(before: Case, after: Case) -> Iterator[tuple[Kind, str]]:
    for phase, run in _ended_badly(before, after):
        yield Kind.FAILED, f"hook {run.hook.name} of {phase.value} {_how(run)}"
    if before.readiness is not Readiness.READY and after.readiness is Readiness.READY:
        yield Kind.READY, "made ready"
    if before.approved is None and after.approved is not None:
        yield Kind.APPROVED, "approved"
    if after.event.has_started and not before.event.has_started:
        yield Kind.STARTED, "started"
    if after.is_closed and not before.is_closed and after.is_touched:
        yield Kind.UNDONE, "undone"


def _ended_badly(before: Case, after: Case) -> Iterator[tuple[Phase, Run]]:
    for phase, runs in after.phases.items():
        earlier = before.runs(phase)
        for number, run in enumerate(runs):
            was_over = number < len(earlier) and earlier[number].is_over
            if not was_over and run.result in (Result.FAILED, Result.TIMED_OUT, Result.CUT_OFF):
                yield phase, run


def _how(run: Run) -> str:
    if run.result is Result.FAILED:
        return f"failed with status {run.code}"
    return "was not over in time" if run.result is Result.TIMED_OUT else "was cut off"
