"""Advancing a case: what is to be done about one event of this VM next. Pure.

`advance` is a function of what was done, what is seen, and the time. It says what the case is now, and what to do;
whoever calls it writes the case down before anything is begun. An agent may die between any two steps, and the next one
goes on from what is written.

Rule 1: hooks of one phase run one after another, each to its end, or to its time limit.
Rule 2: `undo` is run once, if anything was begun; what was cut off before its end begins anew.
Rule 3: of an event that is gone nothing more is begun but `undo`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from forewarn.agent import cases
from forewarn.agent.cases import Case, Result, Run, Runs, are_over, replace_runs
from forewarn.agent.hooks import NOTHING_TO_DO, READY, Hook, Phase
from forewarn.agent.names import run_id
from forewarn.agent.rules import Readiness
from forewarn.agent.runs import Absent, CutOff, Going, Look, Over
from forewarn.client.documents import Event


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
    # Whether the document was read: before that, nobody knows whether the event is there.
    is_read: bool = True
    # Whether the VM has another event in hand, for which undoing must wait.
    is_elsewhere: bool = False
    # Whether another event is being undone, for which undoing must wait, and preparing should.
    is_undoing: bool = False


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


@dataclass(frozen=True, slots=True)
class Advance:
    """What a case is now, what is to be done before that is written down, and what after it."""

    case: Case
    stops: tuple[Stop, ...] = ()
    begins: tuple[Begin, ...] = ()


def advance(case: Case, sight: Sight) -> Advance:
    """The case after what is seen, and what to do."""
    if sight.is_read:
        case = _noticed(case, sight)
    case = _looked_at(case, sight)
    if sight.is_read:
        case = _phased(_renewed(case, sight), sight)
    stops: list[Stop] = []
    begins: list[Begin] = []
    for phase in tuple(case.phases):
        case = replace_runs(case, phase, tuple(_stopped(case, phase, sight, stops)))
        if sight.is_read:
            case = replace_runs(case, phase, _begun(case, phase, sight, begins))
    return Advance(_timed(case, sight), tuple(stops), tuple(begins))


def _timed(case: Case, sight: Sight) -> Case:
    if case.readiness is Readiness.UNDER_WAY:
        return replace(case, prepared=None)
    return case if case.prepared is not None else replace(case, prepared=sight.now)


def _noticed(case: Case, sight: Sight) -> Case:
    """The event, as it is now."""
    if case.is_over:
        # It is undone now; if the event is there again, that is another case.
        return case
    event = sight.event
    if event is None:
        return replace(case, is_over=True)
    return replace(case, event=event, not_before=event.not_before or case.not_before)


def _looked_at(case: Case, sight: Sight) -> Case:
    """What has become of the runs."""
    phases = {
        phase: tuple(
            _seen(case, phase, run, _look(case, phase, number, sight)) if run.is_going else run
            for number, run in enumerate(runs)
        )
        for phase, runs in case.phases.items()
    }
    return replace(case, phases=phases)


def _look(case: Case, phase: Phase, number: int, sight: Sight) -> Look:
    look = sight.runs[run_id(case.event.id, phase, number, case.runs(phase)[number].attempt)]
    # What was not on the disk when the VM went down may have run all the same.
    return CutOff() if isinstance(look, Absent) and sight.boot != case.boot else look


def _seen(case: Case, phase: Phase, run: Run, look: Look) -> Run:
    match look:
        case Over(code):
            return replace(run, result=_result(code, run.stopped_as), code=code)
        case Absent():
            return Run(run.hook, attempt=run.attempt - 1, has_done=run.has_done)
        case CutOff() if run.stopped_as is not None:
            return replace(run, result=run.stopped_as)
        case CutOff() if phase is Phase.UNDO or (phase is Phase.PREPARE and case.is_pending):
            return run.anew
        case CutOff():
            return replace(run, result=Result.CUT_OFF)
        case Going():
            return run


def _result(code: int, stopped_as: Result | None) -> Result:
    if code == READY:
        return Result.READY
    if code == NOTHING_TO_DO:
        return Result.NOTHING_TO_DO
    return stopped_as or Result.FAILED


def _renewed(case: Case, sight: Sight) -> Case:
    """After a boot of the VM, nothing that was made ready is so any more."""
    if case.boot == sight.boot:
        return case
    case = replace(case, boot=sight.boot)
    if not case.is_pending or Phase.PREPARE not in case.phases:
        return case
    anew = tuple(run.anew for run in case.runs(Phase.PREPARE))
    return replace_runs(case, Phase.PREPARE, anew)


def _phased(case: Case, sight: Sight) -> Case:
    """The phases that have begun; of those whose time is over, what was not begun is skipped."""
    case = _skipped(case)
    if _is_prepared_now(case):
        return replace_runs(case, Phase.PREPARE, _fresh(sight, Phase.PREPARE))
    if _is_started_now(case):
        return replace_runs(case, Phase.STARTED, _fresh(sight, Phase.STARTED))
    if _is_undone_now(case, sight):
        undoing = _fresh(sight, Phase.UNDO) if case.is_touched else ()
        return replace_runs(case, Phase.UNDO, undoing)
    return case


def _is_prepared_now(case: Case) -> bool:
    return case.is_pending and Phase.PREPARE not in case.phases


def _is_started_now(case: Case) -> bool:
    is_started = not case.is_over and case.event.has_started
    return is_started and Phase.STARTED not in case.phases and are_over(case.runs(Phase.PREPARE))


def _is_undone_now(case: Case, sight: Sight) -> bool:
    is_done = are_over(case.runs(Phase.PREPARE)) and are_over(case.runs(Phase.STARTED))
    may = case.is_over and is_done and Phase.UNDO not in case.phases
    return may and not _must_wait_to_undo(case, sight)


def _must_wait_to_undo(case: Case, sight: Sight) -> bool:
    # What has begun goes on, though another event came meanwhile.
    return (sight.is_elsewhere or sight.is_undoing) and case.is_touched and not case.is_undoing


def _fresh(sight: Sight, phase: Phase) -> Runs:
    return tuple(Run(hook) for hook in sight.hooks.get(phase, ()))


def _skipped(case: Case) -> Case:
    for phase in (Phase.PREPARE, Phase.STARTED):
        is_late = case.is_over or (phase is Phase.PREPARE and case.event.has_started)
        if is_late and phase in case.phases:
            runs = tuple(
                run if run.is_going or run.is_over else replace(run, result=Result.SKIPPED)
                for run in case.runs(phase)
            )
            case = replace_runs(case, phase, runs)
    return case


def _stopped(case: Case, phase: Phase, sight: Sight, stops: list[Stop]) -> Iterator[Run]:
    """The runs of a phase, those asked to end that are to."""
    for number, run in enumerate(case.runs(phase)):
        if not run.is_going:
            yield run
            continue
        called = run_id(case.event.id, phase, number, run.attempt)
        if run.stopped is not None:
            if sight.now >= cases.killed_at(case, phase, run):
                stops.append(Stop(called, kills=True))
            yield run
        elif phase is Phase.PREPARE and case.is_over:
            stops.append(Stop(called, kills=False))
            yield replace(run, stopped=sight.now, stopped_as=Result.CALLED_OFF)
        elif sight.now >= cases.stopped_at(case, phase, run):
            stops.append(Stop(called, kills=False))
            yield replace(run, stopped=sight.now, stopped_as=Result.TIMED_OUT)
        else:
            yield run


def _begun(case: Case, phase: Phase, sight: Sight, begins: list[Begin]) -> Runs:
    """The runs of a phase, the next one begun if those before it are over."""
    runs = case.runs(phase)
    left = (number for number, run in enumerate(runs) if not run.is_over)
    number = next(left, None)
    if number is None or runs[number].is_going or _waits(case, phase, sight):
        return runs
    run = runs[number]
    begun = replace(run, attempt=run.attempt + 1, began=sight.now)
    called = run_id(case.event.id, phase, number, begun.attempt)
    due = cases.deadline(case, phase, begun)
    begins.append(Begin(called, phase, run.hook, begun.attempt, due))
    return (*runs[:number], begun, *runs[number + 1 :])


def _waits(case: Case, phase: Phase, sight: Sight) -> bool:
    """Whether a phase has begun whose hooks have to wait."""
    match phase:
        case Phase.PREPARE:
            yields = sight.is_undoing and sight.now < cases.yields_until(case)
            return yields or cases.is_last_moment(case, sight.now)
        case Phase.STARTED:
            return False
        case Phase.UNDO:
            return _must_wait_to_undo(case, sight)
