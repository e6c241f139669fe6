"""The agent: sees, writes down, then does; and what it says of itself meanwhile."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.agent.cases_at_hand import EVENT, FIRST, NOW, STARTED, after

from forewarn.agent.agent import Agent, Desires, Tempo
from forewarn.agent.casebook import DirectoryCasebook, MemoryCasebook
from forewarn.agent.cases import Result
from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.news import Kind, News
from forewarn.agent.rules import Condition, OnFailure, Peers, Rule
from forewarn.agent.strangers import Strangers
from forewarn.client.documents import Event
from forewarn.clocks import SimulatedClock
from forewarn.errors import ForewarnError, Refused, Unavailable
from forewarn.testing.simulated_runs import Manner, SimulatedRuns

OTHER = replace(EVENT, id="OTHER")
TEMPO = Tempo()


@dataclass
class Handbook:
    """What a test wants done."""

    chosen: Rule = field(default_factory=Rule)
    phases: dict[Phase, tuple[Hook, ...]] = field(default_factory=dict)

    def rule(self, event: Event) -> Rule:  # noqa: ARG002 - one for all
        return self.chosen

    def hooks(self, event: Event, phase: Phase) -> tuple[Hook, ...]:  # noqa: ARG002
        return self.phases.get(phase, ())


@dataclass
class Approvals:
    """Approvals that are answered when a test says so."""

    asked: list[str] = field(default_factory=list)
    waiting: list[tuple[str, ForewarnError | None]] = field(default_factory=list)

    def ask(self, event: Event) -> None:
        self.asked.append(event.id)

    def answers(self) -> Iterator[tuple[str, ForewarnError | None]]:
        while self.waiting:
            yield self.waiting.pop(0)


class Desk:
    """An agent, and all that it has to do with."""

    def __init__(self, casebook: MemoryCasebook | DirectoryCasebook, *, waits: bool = True) -> None:
        self.clock = SimulatedClock(NOW)
        minute = timedelta(minutes=1)
        self.runs = SimulatedRuns(
            self.clock.now, {"first": Manner(0, minute), "bad": Manner(1), "idle": Manner(70)}
        )
        self.handbook = Handbook(phases={Phase.PREPARE: (FIRST,), Phase.UNDO: (FIRST,)})
        self.casebook = casebook
        self.waits = waits
        self.told: list[News] = []
        self.restart()

    def restart(self, boot: str = "boot") -> None:
        self.approvals = Approvals()
        self.agent = Agent(
            Desires("web-1", undo_waits=self.waits),
            boot=boot,
            handbook=self.handbook,
            casebook=self.casebook,
            runs=self.runs,
            approvals=self.approvals,
            neighborhood=Strangers(),
            tell=self.told.append,
        )

    def see(self, *events: Event) -> timedelta | None:
        """How long the agent would sleep after it saw these."""
        self.agent.see(events)
        return self.turn()

    def turn(self, seconds: float = 0) -> timedelta | None:
        self.clock.advance(timedelta(seconds=seconds))
        wake = self.agent.turn(self.clock.now())
        return None if wake is None else wake - self.clock.now()

    @property
    def begun(self) -> list[str]:
        return [run.id for run in self.runs.all]

    @property
    def kinds(self) -> list[Kind]:
        return [news.kind for news in self.told]


@pytest.fixture
def desk() -> Desk:
    return Desk(MemoryCasebook())


def test_an_event_is_prepared_for_approved_and_undone(desk: Desk) -> None:
    """Keeps N7: the whole story, without any mishap."""
    wake = desk.see(EVENT)
    assert wake == timedelta(seconds=15 * 60 - 1 - 5)
    assert desk.begun == ["E/prepare-0-1"]
    assert desk.approvals.asked == []

    desk.turn(60)
    assert desk.approvals.asked == ["E"]
    desk.approvals.waiting.append(("E", None))
    desk.turn()
    assert desk.agent.cases["E"].approved == after(60)

    desk.see(STARTED)
    desk.see()
    assert desk.begun == ["E/prepare-0-1", "E/undo-0-1"]
    desk.turn(60)

    assert desk.agent.cases == {}
    assert list(desk.casebook.cases()) == []
    assert desk.runs.kept == ()
    assert desk.kinds == [Kind.ANNOUNCED, Kind.READY, Kind.APPROVED, Kind.STARTED, Kind.UNDONE]
    assert desk.approvals.asked == ["E"]


def test_a_neighbors_event_is_nothing(desk: Desk) -> None:
    assert desk.see(replace(EVENT, resources=("web-0",))) is None
    assert desk.agent.cases == {}


def test_nothing_is_approved_or_undone_before_a_document_was_read(desk: Desk) -> None:
    desk.see(EVENT)
    desk.turn(60)
    desk.restart()

    assert desk.turn() is None
    assert desk.approvals.asked == []
    (case,) = desk.agent.cases.values()
    assert desk.agent.verdict(case).why == "the document was not read yet"

    desk.see(EVENT)
    assert desk.approvals.asked == ["E"]


def test_hooks_are_stopped_in_time_though_no_document_can_be_read(desk: Desk) -> None:
    """Keeps N7: as after a restart while the service is away."""
    desk.handbook.phases[Phase.PREPARE] = (replace(FIRST, limit=timedelta(seconds=30)),)
    desk.see(EVENT)
    desk.restart()

    assert desk.turn() == TEMPO.look
    desk.turn(25)

    assert [number for _, number in desk.runs.all[0].signals] == [signal.SIGTERM]
    assert not desk.agent.cases["E"].is_over


def test_a_run_of_another_agent_is_looked_at_again_and_again(desk: Desk) -> None:
    desk.see(EVENT)
    desk.restart()

    assert desk.see(EVENT) == TEMPO.look


def test_an_approval_that_could_not_be_given_is_tried_again(desk: Desk) -> None:
    desk.handbook.phases.clear()
    desk.see(EVENT)
    desk.approvals.waiting.append(("E", Unavailable("nobody is there")))

    assert desk.turn() == TEMPO.approve
    desk.turn(1)
    assert desk.approvals.asked == ["E"]
    desk.turn(1)
    assert desk.approvals.asked == ["E", "E"]


def test_an_approval_that_was_refused_is_not(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    desk.handbook.phases.clear()
    desk.see(EVENT)
    desk.approvals.waiting += [("E", Refused("no such event")), ("GONE", None)]

    assert desk.turn() is None

    assert desk.approvals.asked == ["E"]
    assert desk.agent.verdict(desk.agent.cases["E"]).why.endswith("refused: no such event")
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_a_verdict_says_what_was_done_already(desk: Desk) -> None:
    desk.see(EVENT)
    case = desk.agent.cases["E"]

    assert desk.agent.verdict(case).why == "the hooks are not over"
    assert desk.agent.verdict(replace(case, approved=NOW)).why == "it is approved"
    assert desk.agent.verdict(replace(case, is_over=True)).why == "it has started, or is over"


def test_who_waits_for_others_asks_them_again(desk: Desk) -> None:
    desk.handbook.phases.clear()
    desk.handbook.chosen = Rule(only=(Condition.PEERS_READY,))

    assert desk.see(EVENT) == TEMPO.ask
    assert desk.approvals.asked == []


def test_where_the_rule_runs_no_hooks_none_is_run(desk: Desk) -> None:
    desk.handbook.chosen = Rule(run_hooks=False)

    desk.see(EVENT)

    assert desk.begun == []
    assert desk.approvals.asked == ["E"]


def test_what_was_done_is_undone_though_the_rule_is_another_by_now(desk: Desk) -> None:
    desk.see(EVENT)
    desk.turn(60)
    desk.handbook.chosen = Rule(run_hooks=False)

    desk.see()

    assert desk.begun == ["E/prepare-0-1", "E/undo-0-1"]


@pytest.mark.parametrize(
    ("rule", "alerts"),
    [
        (Rule(on_failure=OnFailure.ALERT), [Kind.ALERT]),
        (Rule(on_failure=OnFailure.HOLD), []),
        (Rule(on_failure=OnFailure.APPROVE), []),
    ],
)
def test_somebody_is_told_of_an_event_that_a_failure_holds(
    desk: Desk, rule: Rule, alerts: list[Kind]
) -> None:
    desk.handbook.chosen = rule
    desk.handbook.phases = {Phase.PREPARE: (Hook("bad", ("bad",)),)}

    desk.see(EVENT)
    desk.turn()

    assert [kind for kind in desk.kinds if kind is Kind.ALERT] == alerts
    assert Kind.FAILED in desk.kinds


def test_nobody_is_told_of_what_was_called_off(desk: Desk) -> None:
    desk.handbook.chosen = Rule(on_failure=OnFailure.ALERT)
    desk.see(EVENT)

    desk.see()

    assert desk.runs.all[0].code == 143
    assert Kind.ALERT not in desk.kinds
    assert desk.kinds == [Kind.ANNOUNCED]


def test_undoing_waits_until_no_other_event_is_in_hand(desk: Desk) -> None:
    desk.see(EVENT, OTHER)
    desk.turn(60)

    desk.see(OTHER)
    assert "E/undo-0-1" not in desk.begun
    desk.see()

    # One after another.
    assert desk.begun[2:] == ["E/undo-0-1"]
    desk.turn(120)
    desk.turn(120)
    assert desk.begun[2:] == ["E/undo-0-1", "OTHER/undo-0-1"]


def test_undoing_need_not_wait() -> None:
    desk = Desk(MemoryCasebook(), waits=False)
    desk.see(EVENT, OTHER)
    desk.turn(60)

    desk.see(OTHER)

    assert "E/undo-0-1" in desk.begun


def test_whoever_waited_is_looked_at_when_another_case_is_closed(desk: Desk) -> None:
    """One that is gone while its hook, which had nothing to do, goes on for another moment."""
    desk.handbook.phases[Phase.PREPARE] = (FIRST,)
    desk.see(EVENT)
    desk.turn(60)
    desk.handbook.phases[Phase.PREPARE] = (Hook("idle", ("idle",)),)
    desk.see(EVENT, OTHER)

    assert desk.see() is not None
    assert desk.begun[-1] == "E/undo-0-1"


def test_an_event_that_is_for_this_vm_again_is_another_case(desk: Desk) -> None:
    desk.handbook.phases = {Phase.PREPARE: (Hook("idle", ("idle",)),)}
    desk.see(EVENT)
    assert desk.see() is None
    assert desk.agent.cases == {}

    desk.see(EVENT)

    assert desk.begun == ["E/prepare-0-1", "E/prepare-0-1"]


def test_an_event_that_is_there_again_before_all_is_undone_is_taken_up_at_once(desk: Desk) -> None:
    desk.see(EVENT)
    desk.turn(60)
    desk.see()
    desk.see(EVENT)

    assert desk.turn(60) == timedelta()
    assert desk.agent.cases == {}
    desk.turn()
    assert desk.begun[-1] == "E/prepare-0-1"


def test_what_cannot_be_written_down_is_not_done(tmp_path: Path) -> None:
    desk = Desk(DirectoryCasebook(tmp_path / "cases"))
    (tmp_path / "cases").rmdir()
    desk.agent.see((EVENT,))

    with pytest.raises(Unavailable):
        desk.turn()
    assert desk.begun == []

    (tmp_path / "cases").mkdir()
    desk.turn()
    assert desk.begun == ["E/prepare-0-1"]


def test_a_new_boot_prepares_again(desk: Desk) -> None:
    desk.see(EVENT)
    desk.turn(60)
    desk.restart(boot="another")

    desk.see(EVENT)

    assert desk.begun == ["E/prepare-0-1", "E/prepare-0-2"]
    assert desk.runs.all[1].environment["EVENT_ATTEMPT"] == "2"


def test_one_event_does_not_hold_up_another(desk: Desk) -> None:
    desk.see(EVENT, OTHER)

    assert desk.begun == ["E/prepare-0-1", "OTHER/prepare-0-1"]
    desk.turn(60)
    results = [case.runs(Phase.PREPARE)[0].result for case in desk.agent.cases.values()]
    assert results == [Result.READY, Result.READY]


def test_without_peers_nobody_is_known() -> None:
    assert Strangers().peers(EVENT, Rule()) == Peers()
