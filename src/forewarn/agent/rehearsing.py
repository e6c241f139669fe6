"""A rehearsal: an event that is made up goes by, and its hooks are really run.

The agent itself plays it, with a casebook that lasts as long as the rehearsal and nobody to approve anything: what is
seen here is what happens when it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from forewarn.agent import cases, rules
from forewarn.agent.agent import Agent, Desires, Handbook
from forewarn.agent.casebook import MemoryCasebook
from forewarn.agent.cases import WELL, Case, Result, Run
from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.loop import Bell
from forewarn.agent.rules import Peers, Rule, Verdict
from forewarn.agent.runs import ProcessRuns
from forewarn.agent.strangers import Strangers
from forewarn.agent.wording import a, failure, length
from forewarn.client.documents import STARTED, Event
from forewarn.errors import ForewarnError

# A turn is never longer in coming, so that Ctrl-C is heard.
_TURN_MAX: Final = timedelta(seconds=1)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LimitedHandbook:
    """The owner's, but no hook may take longer than this; None leaves them as they are."""

    handbook: Handbook
    limit: timedelta | None

    def rule(self, event: Event) -> Rule:
        return self.handbook.rule(event)

    def hooks(self, event: Event, phase: Phase) -> tuple[Hook, ...]:
        hooks = self.handbook.hooks(event, phase)
        if self.limit is None:
            return hooks
        return tuple(
            replace(hook, limit=min(hook.limit or self.limit, self.limit)) for hook in hooks
        )


class _Witness(MemoryCasebook):
    """Says what becomes of the one case that there is."""

    def __init__(self, say: Say) -> None:
        super().__init__()
        self._say = say
        self.last: Case | None = None

    def write(self, case: Case) -> None:
        for line in progress(self.last, case):
            self._say(line)
        self.last = case
        super().write(case)


class _NoApprovals:
    """Nobody is asked to approve what does not exist."""

    def ask(self, event: Event) -> None:
        """Leave it."""

    def answers(self) -> Iterator[tuple[str, ForewarnError | None]]:
        return iter(())


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a rehearsal went."""

    case: Case
    # What the hooks' results mean for the approval, whatever else the rule asks for.
    verdict: Verdict
    # It was broken off, and what it did undone.
    is_interrupted: bool = False

    @property
    def bad(self) -> tuple[str, ...]:
        """What did not end well, in words."""
        return tuple(
            f"{phase.value}/{run.hook.name} {ended(run)}"
            for phase, runs in self.case.phases.items()
            for run in runs
            if run.result not in WELL
        )


class Rehearsal:
    """One event, from its announcement to its undoing."""

    def __init__(  # noqa: PLR0913 - one parameter for each part of the world
        self,
        event: Event,
        name: str,
        *,
        handbook: Handbook,
        directory: Path,
        environment: Mapping[str, str],
        now: Callable[[], datetime],
        say: Say,
    ) -> None:
        """Runs are kept in `directory`."""
        self._event = event
        self._name = name
        self._handbook = handbook
        self._now = now
        self._say = say
        self._bell = Bell()
        self._witness = _Witness(say)
        self._agent = Agent(
            Desires(name),
            boot="rehearsal",
            handbook=handbook,
            casebook=self._witness,
            runs=ProcessRuns(directory, environment, self._bell.ring),
            approvals=_NoApprovals(),
            neighborhood=Strangers(),
            tell=lambda _: None,
        )

    def play(self) -> Outcome:
        """Have the hooks of all phases run; a first Ctrl-C calls the event off."""
        verdict: Verdict | None = None
        try:
            verdict = self._play_prepare()
            has_started = replace(self._event, status=STARTED, not_before=None)
            self._drive((has_started,), _has_started)
            self._drive((), _is_closed)
        except KeyboardInterrupt:
            self._say("interrupted: hooks are stopped, and what they did is undone")
            with suppress(KeyboardInterrupt):
                self._drive((), _is_closed)
            return Outcome(self._case, verdict or self._judged(self._case), is_interrupted=True)
        return Outcome(self._case, verdict)

    def _play_prepare(self) -> Verdict:
        case = self._drive((self._event,), _is_prepared)
        verdict = self._judged(case)
        would = "would" if verdict.approves else "would not"
        self._say(f"approval  it {would} be approved: {verdict.why}")
        return verdict

    def _judged(self, case: Case) -> Verdict:
        rule = replace(self._handbook.rule(self._event), only=())
        return rules.judge(rule, self._event, self._name, case.readiness, Peers())

    @property
    def _case(self) -> Case:
        return self._witness.last or cases.opened(self._event, "rehearsal", self._now())

    def _drive(self, events: tuple[Event, ...], is_enough: Callable[[Case], bool]) -> Case:
        self._agent.see(events)
        while True:
            wake = self._agent.turn(self._now())
            if is_enough(self._case):
                return self._case
            self._bell.wait(min(_TURN_MAX, (wake or self._now() + _TURN_MAX) - self._now()))


def _is_prepared(case: Case) -> bool:
    return Phase.PREPARE in case.phases and all(run.is_over for run in case.runs(Phase.PREPARE))


def _has_started(case: Case) -> bool:
    return Phase.STARTED in case.phases and all(run.is_over for run in case.runs(Phase.STARTED))


def _is_closed(case: Case) -> bool:
    return case.is_closed


def progress(before: Case | None, after: Case) -> Iterator[str]:
    """What to say of a case, now that it has changed."""
    for phase, runs in after.phases.items():
        if before is None or phase not in before.phases:
            yield from _opening(phase, after)
        earlier = () if before is None else before.runs(phase)
        for number, run in enumerate(runs):
            was = earlier[number] if number < len(earlier) else Run(run.hook)
            if run.attempt > was.attempt:
                assert run.began is not None, "it was begun just now"
                most = length(cases.deadline(after, phase, run) - run.began)
                yield f"{phase.value:9} {run.hook.name} begins, and may take {most}"
            if run.is_over and not was.is_over:
                yield f"{phase.value:9} {run.hook.name} {ended(run)}"


def _opening(phase: Phase, case: Case) -> Iterator[str]:
    if case.runs(phase):
        return
    if phase is Phase.UNDO and not case.is_touched:
        yield "undo      nothing is run: nothing was done that is to be undone"
    else:
        yield f"{phase.value:9} no hook is for {a(case.event.type)}"


def ended(run: Run) -> str:
    """How a run ended, in words."""
    assert run.result is not None, "it is over"
    return failure(run.code) if run.result is Result.FAILED else _ENDS[run.result]


_ENDS: Final[Mapping[Result, str]] = {
    Result.READY: "is ready",
    Result.NOTHING_TO_DO: "had nothing to do",
    Result.TIMED_OUT: "was not over in time, and was stopped",
    Result.CALLED_OFF: "was called off",
    Result.CUT_OFF: "was cut off",
    Result.SKIPPED: "was not begun",
}
