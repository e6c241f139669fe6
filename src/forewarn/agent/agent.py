"""The agent proper: sees what there is, has `cases` decide, writes it down, and does it. Waits for nothing."""

from __future__ import annotations

import logging
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from forewarn.agent import advancing, cases, rules
from forewarn.agent.advancing import Begin, Sight
from forewarn.agent.casebook import Casebook
from forewarn.agent.cases import Case, Result
from forewarn.agent.hooks import Hook, Phase, variables
from forewarn.agent.names import file_name
from forewarn.agent.news import Kind, News, ended, news_of
from forewarn.agent.rules import Approve, OnFailure, Peers, Readiness, Rule, Verdict
from forewarn.agent.runs import Runs
from forewarn.client.documents import Event
from forewarn.errors import ForewarnError, Refused

_log: Final = logging.getLogger("forewarn.agent")


class Handbook(Protocol):
    """What the owner wants done."""

    def rule(self, event: Event) -> Rule:
        """The rule that is for an event."""
        ...

    def hooks(self, event: Event, phase: Phase) -> tuple[Hook, ...]:
        """The hooks that are for it, in their order."""
        ...


class Approvals(Protocol):
    """Who approves events at the endpoint, and tells later how that went."""

    def ask(self, event: Event) -> None:
        """Have an event approved."""
        ...

    def answers(self) -> Iterator[tuple[str, ForewarnError | None]]:
        """By the event's id, what came of it since this was asked last; None: it is approved."""
        ...


class Neighborhood(Protocol):
    """Who knows of the other VMs."""

    def peers(self, event: Event, rule: Rule) -> Peers:
        """What is known now; what is not will be asked for."""
        ...


@dataclass(frozen=True, slots=True)
class Tempo:
    """How soon something is done again of which nobody tells that it should be."""

    # Whether a hook is over that another agent began.
    look: timedelta = timedelta(seconds=0.2)
    # Whether others are ready.
    ask: timedelta = timedelta(seconds=1)
    # An approval that could not be given.
    approve: timedelta = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Desires:
    """What the agent is told once, for all events."""

    name: str
    # Whether undoing waits until no other event is in hand.
    undo_waits: bool = True
    tempo: Tempo = field(default_factory=Tempo)


class Agent:
    """Call `see` with every document, and `turn` whenever something may have happened."""

    def __init__(  # noqa: PLR0913 - one parameter for each port
        self,
        desires: Desires,
        *,
        boot: str,
        handbook: Handbook,
        casebook: Casebook,
        runs: Runs,
        approvals: Approvals,
        neighborhood: Neighborhood,
        tell: Callable[[News], None],
    ) -> None:
        self._desires = desires
        self._boot = boot
        self._handbook = handbook
        self._casebook = casebook
        self._runs = runs
        self._approvals = approvals
        self._neighborhood = neighborhood
        self._tell = tell
        self._cases = {case.event.id: case for case in casebook.cases()}
        self._document: dict[str, Event] | None = None
        self._asked: set[str] = set()
        self._again: dict[str, datetime] = {}
        self._ended: Counter[tuple[Phase, Result]] = Counter()
        # The runs of whose end we will be told.
        self._begun: set[str] = set()
        for case in self._cases.values():
            _log.info("event %s is taken up again: %s", case.event.id, case.event.type)

    @property
    def cases(self) -> Mapping[str, Case]:
        """What is in hand, by the event's id."""
        return dict(self._cases)

    @property
    def ended(self) -> Mapping[tuple[Phase, Result], int]:
        """How many runs are over since this agent is at work, and how they ended."""
        return dict(self._ended)

    def see(self, events: tuple[Event, ...]) -> None:
        """Take in a whole document."""
        name = self._desires.name
        self._document = {event.id: event for event in events if event.concerns(name)}

    def turn(self, now: datetime) -> datetime | None:
        """Do what is to be done, and say when to look again if nothing is heard until then.

        Raises: Unavailable, if nothing can be written down: then nothing was done.
        """
        self._note_approvals(now)
        for event in (self._document or {}).values():
            if event.id not in self._cases:
                self._keep(cases.opened(event, self._boot, now))
        # Before a document was read, nobody knows what has become of the events that are written down;
        # but hooks that go on are stopped in time.
        wakes = [self._attend(case, now) for case in tuple(self._cases.values())]
        return min((wake for wake in wakes if wake is not None), default=None)

    def verdict(self, case: Case) -> Verdict:
        """Whether a case's event is approved now, and why."""
        if self._document is None:
            return Verdict(approves=False, why="the document was not read yet")
        if case.approved is not None:
            return Verdict(approves=False, why="it is approved")
        if case.refused is not None:
            return Verdict(approves=False, why=f"the approval was refused: {case.refused}")
        if case.is_over or case.event.has_started:
            return Verdict(approves=False, why="it has started, or is over")
        rule = self._handbook.rule(case.event)
        peers = self._neighborhood.peers(case.event, rule) if rule.only else Peers()
        return rules.judge(rule, case.event, self._desires.name, case.readiness, peers)

    def _attend(self, case: Case, now: datetime) -> datetime | None:
        # Each step may make the next one possible, as an empty phase does.
        while True:
            sight = self._sight(case, now)
            advance = advancing.advance(case, sight)
            # To ask a hook twice to end does no harm; to write down that it was, when it was not, does.
            for stop in advance.stops:
                self._runs.signal(stop.run, signal.SIGKILL if stop.kills else signal.SIGTERM)
            if advance.case != case:
                self._keep(advance.case)
            for begin in advance.begins:
                self._begin(advance.case, begin)
            if advance.case == case:
                break
            case = advance.case
        if not case.is_closed:
            return self._wake(case, sight, self._approve(case, now), now)
        self._close(case.event.id)
        # Others may have waited for that; and an event that is still there is for this VM again.
        return now if self._cases or self._document else None

    def _close(self, event_id: str) -> None:
        self._runs.forget(event_id)
        self._casebook.close(event_id)
        del self._cases[event_id]
        self._asked.discard(event_id)
        self._again.pop(event_id, None)
        self._begun = {run for run in self._begun if not run.startswith(f"{file_name(event_id)}/")}

    def _sight(self, case: Case, now: datetime) -> Sight:
        document = self._document or {}
        waits = self._desires.undo_waits
        others = [one for one in self._cases.values() if one.event.id != case.event.id]
        return Sight(
            now=now,
            boot=self._boot,
            event=document.get(case.event.id),
            runs={run: self._runs.look(run) for run in cases.going(case)},
            hooks={phase: self._hooks(case, phase) for phase in Phase if phase not in case.phases},
            is_read=self._document is not None,
            is_elsewhere=waits and any(_is_in_hand(one, document) for one in others),
            is_undoing=waits and any(one.is_undoing for one in others),
        )

    def _hooks(self, case: Case, phase: Phase) -> tuple[Hook, ...]:
        # What was done is undone, though the rule may be another one by now.
        is_wanted = phase is Phase.UNDO or self._handbook.rule(case.event).run_hooks
        return self._handbook.hooks(case.event, phase) if is_wanted else ()

    def _begin(self, case: Case, begin: Begin) -> None:
        told = variables(
            case.event,
            begin.phase,
            name=self._desires.name,
            deadline=begin.deadline,
            attempt=begin.attempt,
        )
        called = f"{case.event.id} ({case.event.type})"
        _log.info("event %s: hook %s of %s begins", called, begin.hook.name, begin.phase.value)
        self._runs.begin(begin.run, begin.hook.command, told)
        self._begun.add(begin.run)

    def _approve(self, case: Case, now: datetime) -> Verdict:
        verdict = self.verdict(case)
        event_id = case.event.id
        is_due = now >= self._again.get(event_id, now)
        if verdict.approves and event_id not in self._asked and is_due:
            self._asked.add(event_id)
            _log.info("event %s is being approved: %s", event_id, verdict.why)
            self._approvals.ask(case.event)
        return verdict

    def _note_approvals(self, now: datetime) -> None:
        for event_id, error in self._approvals.answers():
            self._asked.discard(event_id)
            case = self._cases.get(event_id)
            if case is None:
                continue
            if error is None:
                self._keep(replace(case, approved=now))
            elif isinstance(error, Refused):
                _log.error("event %s: the approval was refused: %s", event_id, error)
                self._keep(replace(case, refused=str(error)))
            else:
                _log.warning("event %s could not be approved, and will be: %s", event_id, error)
                self._again[event_id] = now + self._desires.tempo.approve

    def _wake(self, case: Case, sight: Sight, verdict: Verdict, now: datetime) -> datetime | None:
        wakes = [cases.wake(case, now)]
        if not self._begun.issuperset(sight.runs):
            wakes.append(now + self._desires.tempo.look)
        if verdict.asks:
            wakes.append(now + self._desires.tempo.ask)
        if verdict.approves and case.event.id in self._again:
            wakes.append(self._again[case.event.id])
        return min((wake for wake in wakes if wake is not None), default=None)

    def _keep(self, case: Case) -> None:
        before = self._cases.get(case.event.id)
        self._casebook.write(case)
        self._cases[case.event.id] = case
        for news in news_of(before, case, self._desires.name):
            self._tell(news)
        if before is not None:
            self._ended.update(
                (phase, run.result) for phase, run in ended(before, case) if run.result
            )
        has_failed = case.readiness is Readiness.FAILED
        if has_failed and (before is None or before.readiness is not Readiness.FAILED):
            self._alert(case)

    def _alert(self, case: Case) -> None:
        rule = self._handbook.rule(case.event)
        is_held = case.is_pending and rule.approve is Approve.AFTER_HOOKS
        if is_held and rule.on_failure is OnFailure.ALERT:
            by_hand = f"forewarn-agent approve {case.event.id}"
            what = f"held, as a hook failed: see to it, then let the event start with `{by_hand}`"
            self._tell(News(Kind.ALERT, self._desires.name, case.event, what))


def _is_in_hand(case: Case, document: Mapping[str, Event]) -> bool:
    """Whether an event is ahead or has started, or hooks go on that were begun for it."""
    return (not case.is_over and case.event.id in document) or not case.is_at_rest
