"""Cases: what the agent does about one event of this VM, from its first sight to its undoing. Pure.

`advance` is a function of what was done, what is seen, and the time. It says what the case is now, and what to do;
whoever calls it writes the case down first. It says the same again if that was not done: an agent may die between any
two steps, and the next one goes on from what is written.

Rule 1: hooks of one phase run one after another, each to its end, or to its time limit.
Rule 2: `undo` is run once, if anything was begun; what was cut off before its end begins anew.
Rule 3: of an event that is gone nothing more is begun but `undo`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, TypeAlias

from forewarn.agent.hooks import NOTHING_TO_DO, READY, Hook, Phase
from forewarn.agent.names import run_id
from forewarn.agent.rules import Readiness
from forewarn.agent.runs import CutOff, Going, Look, Over
from forewarn.client.documents import Event

# What a hook may take if neither it nor the event says.
LIMIT: Final = timedelta(minutes=10)
# A hook of `prepare` is over, or killed, so long before its event may start.
MARGIN: Final = timedelta(seconds=1)
# Between a hook's SIGTERM and its SIGKILL; less if there is little time.
GRACE: Final = timedelta(seconds=5)
_GRACE_SHARE: Final = 5


class Result(Enum):
    """How a run ended."""

    READY = "ready"
    NOTHING_TO_DO = "nothing to do"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    # It was stopped, as the event is gone.
    CALLED_OFF = "called off"
    # It was cut off, and it is too late to begin anew.
    CUT_OFF = "cut off"
    # It was not begun, as its time was over.
    SKIPPED = "skipped"


WELL: Final = frozenset({Result.READY, Result.NOTHING_TO_DO})


@dataclass(frozen=True, slots=True)
class Run:
    """One hook of a case."""

    hook: Hook
    # How often it was begun.
    attempt: int = 0
    # Since when it runs; None if it does not.
    began: datetime | None = None
    # Since when it is asked to end, and what that makes of it.
    stopped: datetime | None = None
    stopped_as: Result | None = None
    result: Result | None = None
    code: int | None = None

    @property
    def is_over(self) -> bool:
        return self.result is not None


Runs: TypeAlias = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One event of this VM, and what was done about it."""

    event: Event
    opened: datetime
    # In which boot of the VM it was made ready.
    boot: str
    # Hooks by phase; a phase that has not begun is not there.
    phases: Mapping[Phase, Runs] = field(default_factory=dict)
    # The event is gone, or for other VMs only.
    is_over: bool = False
    approved: datetime | None = None
    # Why the approval was refused, if it was.
    refused: str | None = None
    # Since when `prepare` is over.
    prepared: datetime | None = None

    def runs(self, phase: Phase) -> Runs:
        return self.phases.get(phase, ())

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left to be done."""
        return Phase.UNDO in self.phases and _are_over(self.runs(Phase.UNDO))

    @property
    def is_touched(self) -> bool:
        """Whether a hook did, or may have done, something that is to be undone."""
        return any(
            run.attempt > 0 and run.result is not Result.NOTHING_TO_DO
            for phase in (Phase.PREPARE, Phase.STARTED)
            for run in self.runs(phase)
        )

    @property
    def readiness(self) -> Readiness:
        """How far `prepare` has come."""
        runs = self.phases.get(Phase.PREPARE)
        if runs is None or not _are_over(runs):
            return Readiness.UNDER_WAY
        if not runs:
            return Readiness.WITHOUT
        is_well = all(run.result in WELL for run in runs)
        return Readiness.READY if is_well else Readiness.FAILED


@dataclass(frozen=True, slots=True)
class Sight:
    """What there is to be seen, of one case."""

    now: datetime
    # Which boot of the VM this is.
    boot: str
    # The event, if it is there and for this VM.
    event: Event | None
    # How each run is that was begun and was not over yet, by its id.
    runs: Mapping[str, Look]
    # What would be run now.
    hooks: Mapping[Phase, tuple[Hook, ...]]
    # Whether the VM has another event in hand, for which undoing must wait.
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin a hook; it is stopped at `deadline`."""

    run: str
    phase: Phase
    hook: Hook
    attempt: int
    deadline: datetime


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask a hook to end, or end it."""

    run: str
    kills: bool


Act: TypeAlias = Begin | Stop


@dataclass(frozen=True, slots=True)
class Advance:
    """What a case is now, and what is to be done once that is written down."""

    case: Case
    acts: tuple[Act, ...] = ()


def opened(event: Event, sight_boot: str, now: datetime) -> Case:
    """The case of an event that was not seen before."""
    return Case(event, opened=now, boot=sight_boot)


def going(case: Case) -> Iterator[str]:
    """The ids of the runs that were begun and, as far as is written, are not over."""
    for phase, runs in case.phases.items():
        for number, run in enumerate(runs):
            if run.began is not None and not run.is_over:
                yield run_id(case.event.id, phase, number, run.attempt)


def advance(case: Case, sight: Sight) -> Advance:
    """The case after what is seen, and what to do."""
    case = _noticed(case, sight)
    case = _looked_at(case, sight)
    case = _renewed(case, sight)
    case = _phased(case, sight)
    acts: list[Act] = []
    for phase in tuple(case.phases):
        runs = tuple(_stopped(case, phase, sight, acts))
        runs = _begun(replace_runs(case, phase, runs), phase, sight, acts)
        case = replace_runs(case, phase, runs)
    return Advance(_timed(case, sight), tuple(acts))


def wake(case: Case, now: datetime) -> datetime | None:
    """When to look again though nothing was heard: a hook is then to be stopped, or killed."""
    due = [
        run.stopped + _grace(case, phase, run)
        if run.stopped is not None
        else deadline(case, phase, run) - _grace(case, phase, run)
        for phase, runs in case.phases.items()
        for run in runs
        if run.began is not None and not run.is_over
    ]
    # One that does not even obey SIGKILL is looked at again, but not all the time.
    return max(min(due), now + timedelta(seconds=0.1)) if due else None


def deadline(case: Case, phase: Phase, run: Run) -> datetime:
    """When a run is killed if it is not over."""
    assert run.began is not None, "only what was begun has a deadline"
    not_before = case.event.not_before
    if phase is not Phase.PREPARE or not_before is None or not_before - MARGIN <= run.began:
        # Or the event may start at any moment, and has not: it is held.
        return run.began + (run.hook.limit or LIMIT)
    latest = not_before - MARGIN
    return latest if run.hook.limit is None else min(run.began + run.hook.limit, latest)


def _grace(case: Case, phase: Phase, run: Run) -> timedelta:
    assert run.began is not None, "only what was begun is stopped"
    return min(GRACE, (deadline(case, phase, run) - run.began) / _GRACE_SHARE)


def replace_runs(case: Case, phase: Phase, runs: Runs) -> Case:
    """The same case with other runs of a phase."""
    return replace(case, phases={**case.phases, phase: runs})


def _noticed(case: Case, sight: Sight) -> Case:
    """The event, as it is now."""
    if case.is_over:
        # It is undone now; if the event is there again, that is another case.
        return case
    if sight.event is None:
        return replace(case, is_over=True)
    return replace(case, event=sight.event)


def _looked_at(case: Case, sight: Sight) -> Case:
    """What has become of the runs."""
    phases = {
        phase: tuple(
            _seen(
                case, phase, run, sight.runs.get(run_id(case.event.id, phase, number, run.attempt))
            )
            for number, run in enumerate(runs)
        )
        for phase, runs in case.phases.items()
    }
    return replace(case, phases=phases)


def _seen(case: Case, phase: Phase, run: Run, look: Look | None) -> Run:
    if run.began is None or run.is_over:
        return run
    match look:
        case Over(code):
            return replace(run, result=_result(code, run.stopped_as), code=code)
        case CutOff() if run.stopped_as is not None:
            return replace(run, result=run.stopped_as)
        case CutOff() if _begins_anew(case, phase):
            return replace(run, began=None)
        case CutOff():
            return replace(run, result=Result.CUT_OFF)
        case Going() | None:
            return run


def _result(code: int, stopped_as: Result | None) -> Result:
    if code == READY:
        return Result.READY
    if code == NOTHING_TO_DO:
        return Result.NOTHING_TO_DO
    return stopped_as or Result.FAILED


def _begins_anew(case: Case, phase: Phase) -> bool:
    is_pending = not case.is_over and not case.event.has_started
    return phase is Phase.UNDO or (phase is Phase.PREPARE and is_pending)


def _renewed(case: Case, sight: Sight) -> Case:
    """After a boot of the VM, nothing that was made ready is so any more."""
    if case.boot == sight.boot:
        return case
    case = replace(case, boot=sight.boot)
    if case.is_over or case.event.has_started:
        return case
    anew = tuple(Run(run.hook, attempt=run.attempt) for run in case.runs(Phase.PREPARE))
    return replace_runs(case, Phase.PREPARE, anew) if Phase.PREPARE in case.phases else case


def _phased(case: Case, sight: Sight) -> Case:
    """The phases that have begun; of those whose time is over, what was not begun is skipped."""
    case = _skipped(case)
    phases = dict(case.phases)
    if _is_prepared_now(case):
        phases[Phase.PREPARE] = _fresh(sight, Phase.PREPARE)
    elif _is_started_now(case):
        phases[Phase.STARTED] = _fresh(sight, Phase.STARTED)
    elif _is_undone_now(case, sight):
        phases[Phase.UNDO] = _fresh(sight, Phase.UNDO) if case.is_touched else ()
    return replace(case, phases=phases)


def _is_prepared_now(case: Case) -> bool:
    return not case.is_over and not case.event.has_started and Phase.PREPARE not in case.phases


def _is_started_now(case: Case) -> bool:
    return (
        not case.is_over
        and case.event.has_started
        and Phase.STARTED not in case.phases
        and _are_over(case.runs(Phase.PREPARE))
    )


def _is_undone_now(case: Case, sight: Sight) -> bool:
    is_done = _are_over(case.runs(Phase.PREPARE)) and _are_over(case.runs(Phase.STARTED))
    may = case.is_over and is_done and Phase.UNDO not in case.phases
    return may and not (sight.is_elsewhere and case.is_touched)


def _fresh(sight: Sight, phase: Phase) -> Runs:
    return tuple(Run(hook) for hook in sight.hooks.get(phase, ()))


def _skipped(case: Case) -> Case:
    late = [phase for phase in (Phase.PREPARE, Phase.STARTED) if phase in case.phases]
    for phase in late:
        if case.is_over or (phase is Phase.PREPARE and case.event.has_started):
            runs = tuple(
                replace(run, result=Result.SKIPPED)
                if run.began is None and not run.is_over
                else run
                for run in case.runs(phase)
            )
            case = replace_runs(case, phase, runs)
    return case


def _stopped(case: Case, phase: Phase, sight: Sight, acts: list[Act]) -> Iterator[Run]:
    """The runs of a phase, those asked to end that are to."""
    for number, run in enumerate(case.runs(phase)):
        if run.began is None or run.is_over:
            yield run
            continue
        called = run_id(case.event.id, phase, number, run.attempt)
        grace = _grace(case, phase, run)
        if run.stopped is not None:
            if sight.now >= run.stopped + grace:
                acts.append(Stop(called, kills=True))
            yield run
        elif phase is Phase.PREPARE and case.is_over:
            acts.append(Stop(called, kills=False))
            yield replace(run, stopped=sight.now, stopped_as=Result.CALLED_OFF)
        elif sight.now >= deadline(case, phase, run) - grace:
            acts.append(Stop(called, kills=False))
            yield replace(run, stopped=sight.now, stopped_as=Result.TIMED_OUT)
        else:
            yield run


def _begun(case: Case, phase: Phase, sight: Sight, acts: list[Act]) -> Runs:
    """The runs of a phase, the next one begun if the one before it is over."""
    runs = case.runs(phase)
    for number, run in enumerate(runs):
        if run.is_over:
            continue
        if run.began is None:
            begun = replace(run, attempt=run.attempt + 1, began=sight.now)
            called = run_id(case.event.id, phase, number, begun.attempt)
            due = deadline(case, phase, begun)
            acts.append(Begin(called, phase, run.hook, begun.attempt, due))
            return (*runs[:number], begun, *runs[number + 1 :])
        break
    return runs


def _timed(case: Case, sight: Sight) -> Case:
    if case.readiness is Readiness.UNDER_WAY:
        return replace(case, prepared=None)
    return case if case.prepared is not None else replace(case, prepared=sight.now)


def _are_over(runs: Runs) -> bool:
    return all(run.is_over for run in runs)
