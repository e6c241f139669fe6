"""News: what became of a case, in words for people, logs and notifications. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final

from forewarn.agent.cases import Case, Result, Run
from forewarn.agent.hooks import Phase
from forewarn.agent.rules import Readiness
from forewarn.agent.wording import failure
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
    # The document cannot be read, or nothing be written down, for a while; or can again.
    TROUBLE = "trouble"


_BAD: Final = (Result.FAILED, Result.TIMED_OUT, Result.CUT_OFF)


@dataclass(frozen=True, slots=True)
class News:
    """One thing that happened, to one event of this VM unless it is trouble."""

    kind: Kind
    name: str
    event: Event | None
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
    for phase, run in ended(before, after):
        if run.result in _BAD:
            yield Kind.FAILED, f"hook {run.hook.name} of {phase.value} {_how(run)}"
        elif run.result is Result.SKIPPED and not after.is_over:
            what = "was not run: the event has started"
            yield Kind.FAILED, f"hook {run.hook.name} of {phase.value} {what}"
    if before.readiness is not Readiness.READY and after.readiness is Readiness.READY:
        yield Kind.READY, "made ready"
    if before.approved is None and after.approved is not None:
        yield Kind.APPROVED, "approved"
    if after.event.has_started and not before.event.has_started:
        yield Kind.STARTED, "started"
    if after.is_closed and not before.is_closed and after.is_touched:
        yield _undone(after)


def _undone(case: Case) -> tuple[Kind, str]:
    bad = [run.hook.name for run in case.runs(Phase.UNDO) if run.result in _BAD]
    if not bad:
        return Kind.UNDONE, "undone"
    hooks = f"{', '.join(bad)} of undo failed"
    return Kind.FAILED, f"not wholly undone, as {hooks}, and is not tried again: see to this VM"


def ended(before: Case, after: Case) -> Iterator[tuple[Phase, Run]]:
    """The runs that were over between two states of one case."""
    for phase, runs in after.phases.items():
        earlier = before.runs(phase)
        for number, run in enumerate(runs):
            was_over = number < len(earlier) and earlier[number].is_over
            if run.is_over and not was_over:
                yield phase, run


def _how(run: Run) -> str:
    if run.result is Result.FAILED:
        return failure(run.code)
    return "was not over in time" if run.result is Result.TIMED_OUT else "was cut off"


# Trouble that is over sooner is for the logs only.
TROUBLE_PATIENCE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Spell:
    """How long there has been trouble, by a clock that never jumps, and whether it was told."""

    since: timedelta | None = None
    is_told: bool = False

    def after(self, trouble: str | None, now: timedelta) -> tuple[Spell, str | None]:
        """The spell now that there is trouble, or none; and what is to be told of it."""
        if trouble is None:
            what = "scheduled events can be read again" if self.is_told else None
            return Spell(), what
        since = now if self.since is None else self.since
        if self.is_told or now - since < TROUBLE_PATIENCE:
            return Spell(since, self.is_told), None
        minutes = int((now - since) / timedelta(minutes=1))
        return Spell(since, is_told=True), f"in trouble for {minutes} min: {trouble}"
