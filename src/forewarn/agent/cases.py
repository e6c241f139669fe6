"""Cases: one event of this VM and what was done about it, from its first sight to its undoing. Pure.

What is to be done about it is decided in `advancing`; by when, here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, TypeAlias

from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.names import run_id
from forewarn.agent.rules import Readiness
from forewarn.client.documents import Event

# What a hook may take if neither it nor the event says.
LIMIT: Final = timedelta(minutes=10)
# A hook of `prepare` is over, or killed, so long before its event may start.
MARGIN: Final = timedelta(seconds=1)
# An event that has not started so long after it might have is being held: there is time again.
HELD: Final = timedelta(seconds=5)
# Between a hook's SIGTERM and its SIGKILL; less if there is little time.
GRACE: Final = timedelta(seconds=5)
_GRACE_SHARE: Final = 5
# One that does not even obey SIGKILL is looked at again, but not all the time.
_PAUSE: Final = timedelta(seconds=0.1)


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
    # Whether an earlier attempt did, or may have done, something.
    has_done: bool = False

    @property
    def is_over(self) -> bool:
        return self.result is not None

    @property
    def is_going(self) -> bool:
        """Whether it was begun and, as far as is written, is not over."""
        return self.began is not None and self.result is None

    @property
    def is_touched(self) -> bool:
        """Whether it did, or may have done, something that is to be undone."""
        is_idle = self.began is None or self.result is Result.NOTHING_TO_DO
        return self.has_done or not is_idle

    @property
    def anew(self) -> Run:
        """The same hook, to be begun once more."""
        return Run(self.hook, attempt=self.attempt, has_done=self.is_touched)


Runs: TypeAlias = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One event of this VM, and what was done about it."""

    event: Event
    opened: datetime
    # In which boot of the VM it was made ready.
    boot: str
    # The event's; kept when it has started and does without: hooks were told to be over by then.
    not_before: datetime | None = None
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
    def is_pending(self) -> bool:
        """Whether the event is still ahead."""
        return not self.is_over and not self.event.has_started

    @property
    def is_at_rest(self) -> bool:
        """Whether no hook goes on that is to be undone."""
        runs = (*self.runs(Phase.PREPARE), *self.runs(Phase.STARTED))
        return not any(run.is_going for run in runs)

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left to be done."""
        return Phase.UNDO in self.phases and are_over(self.runs(Phase.UNDO))

    @property
    def is_undoing(self) -> bool:
        """Whether undoing has begun, and is not over."""
        runs = self.runs(Phase.UNDO)
        return any(run.attempt for run in runs) and not are_over(runs)

    @property
    def is_touched(self) -> bool:
        """Whether there is anything to be undone."""
        runs = (*self.runs(Phase.PREPARE), *self.runs(Phase.STARTED))
        return any(run.is_touched for run in runs)

    @property
    def readiness(self) -> Readiness:
        """How far `prepare` has come."""
        runs = self.phases.get(Phase.PREPARE)
        if runs is None or not are_over(runs):
            return Readiness.UNDER_WAY
        if not runs:
            return Readiness.WITHOUT
        is_well = all(run.result in WELL for run in runs)
        return Readiness.READY if is_well else Readiness.FAILED


def are_over(runs: Runs) -> bool:
    return all(run.is_over for run in runs)


def opened(event: Event, boot: str, now: datetime) -> Case:
    """The case of an event that was not seen before."""
    return Case(event, opened=now, boot=boot, not_before=event.not_before)


def replace_runs(case: Case, phase: Phase, runs: Runs) -> Case:
    """The same case with other runs of a phase."""
    return replace(case, phases={**case.phases, phase: runs})


def going(case: Case) -> Iterator[str]:
    """The ids of the runs that were begun and, as far as is written, are not over."""
    for phase, runs in case.phases.items():
        for number, run in enumerate(runs):
            if run.is_going:
                yield run_id(case.event.id, phase, number, run.attempt)


# -- by when ---------------------------------------------------------------------------------


def deadline(case: Case, phase: Phase, run: Run) -> datetime:
    """When a run is killed if it is not over."""
    assert run.began is not None, "only what was begun has a deadline"
    latest = _latest(case, phase, run)
    if run.hook.limit is None and latest is not None:
        return latest
    own = run.began + (run.hook.limit or LIMIT)
    return own if latest is None else min(own, latest)


def stopped_at(case: Case, phase: Phase, run: Run) -> datetime:
    """When a run is asked to end."""
    return deadline(case, phase, run) - _grace(case, phase, run)


def killed_at(case: Case, phase: Phase, run: Run) -> datetime:
    """When a run is killed that was asked to end."""
    assert run.stopped is not None, "who is killed was asked before"
    at = run.stopped + _grace(case, phase, run)
    latest = _latest(case, phase, run)
    return at if latest is None else min(at, max(latest, run.stopped))


def _latest(case: Case, phase: Phase, run: Run) -> datetime | None:
    """When a run must be over because of the event; None if it need not."""
    assert run.began is not None, "only what was begun must end"
    if phase is not Phase.PREPARE or case.not_before is None:
        return None
    latest = case.not_before - MARGIN
    # Or it began when the event was being held.
    return latest if run.began < latest else None


def _grace(case: Case, phase: Phase, run: Run) -> timedelta:
    assert run.began is not None, "only what was begun is stopped"
    return min(GRACE, (deadline(case, phase, run) - run.began) / _GRACE_SHARE)


def is_last_moment(case: Case, now: datetime) -> bool:
    """Whether the event may start at any moment, so that nothing is begun any more, or not yet."""
    at = case.not_before
    return at is not None and at - MARGIN <= now < at + HELD


def yields_until(case: Case) -> datetime:
    """Until when preparing waits for the undoing of another event: at most for half its notice."""
    if case.not_before is None:
        return case.opened
    return case.opened + (case.not_before - case.opened) / 2


def wake(case: Case, now: datetime) -> datetime | None:
    """When to look again though nothing was heard: a hook is then to be stopped, killed or begun."""
    due = [
        stopped_at(case, phase, run) if run.stopped is None else killed_at(case, phase, run)
        for phase, runs in case.phases.items()
        for run in runs
        if run.is_going
    ]
    if case.is_pending and case.not_before is not None and is_last_moment(case, now):
        due.append(case.not_before + HELD)
    return max(min(due), now + _PAUSE) if due else None
