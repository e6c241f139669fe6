"""The promises hold in any story, and a service that breaks one is found out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from forewarn.core import ledgers
from forewarn.core.events import Approval, EventStatus
from forewarn.core.journal import SERVICE, Role, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import Incarnation
from forewarn.core.orders import Order, Report
from forewarn.errors import Conflict
from forewarn.ports.store import CommitId, Lease, Write
from forewarn.service.conductor import Conductor
from forewarn.testing.faults import StoreDoor
from forewarn.testing.stories import Story
from forewarn.testing.witnesses import WitnessedFabric
from forewarn.wire import records

STEPS = 50
# To find something is enough; the shortest story that shows it is for people.
HUNT = settings(
    stateful_step_count=STEPS,
    max_examples=200,
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    phases=[Phase.generate],
)


def try_stories(machine: type[Story], tried: settings, folder: Path) -> None:
    def begin() -> RuleBasedStateMachine:
        return machine(folder)

    # Any callable will do, whatever the annotation says.
    run_state_machine_as_test(cast(type[RuleBasedStateMachine], begin), settings=tried)


def test_the_promises_hold_in_any_story(tmp_path: Path) -> None:
    """keeps S7, S8, S9, S11, S13, S14, S15, S16, S17, S19, S20, S23, N6."""
    try_stories(Story, settings(stateful_step_count=STEPS), tmp_path)


class HastyConductor(Conductor):
    """Starts whatever is announced, without waiting for the notice to run out."""

    def _decide(self, ledger: Ledger) -> Decision:
        decision = super()._decide(ledger)
        for event in decision.ledger.open_events:
            if event.status is EventStatus.SCHEDULED:
                now = self._clock.now()
                started = replace(event, status=EventStatus.STARTED, started_at=now)
                step = ledgers.note(decision.ledger, What.STARTED, SERVICE, now, started)
                decision = ledgers.then(decision, step)
        return decision


class EagerConductor(Conductor):
    """Approves by itself what nobody approved."""

    def _decide(self, ledger: Ledger) -> Decision:
        decision = Decision(ledger)
        for event in ledger.open_events:
            if event.status is EventStatus.SCHEDULED and event.approval is None:
                now = self._clock.now()
                approval = Approval("nobody", Role.SERVICE.value, "", now)
                approved = replace(event, approval=approval)
                step = ledgers.note(decision.ledger, What.APPROVED, SERVICE, now, approved)
                decision = ledgers.then(decision, step)
        return ledgers.then(decision, super()._decide(decision.ledger))


class LazyConductor(Conductor):
    """Puts on record that an event can be read, and then never starts any."""

    def _decide(self, ledger: Ledger) -> Decision:
        decision = super()._decide(ledger)
        was = {event.id: event.status for event in ledger.events}
        if any(was[event.id] is not event.status for event in decision.ledger.events):
            return Decision(ledger)
        return decision


class StuckStore(StoreDoor):
    """Keeps ledgers without the number that tells guests of news."""

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        return super().commit(commit_id, [_stuck(write) for write in writes], journal, lease)


def _stuck(write: Write) -> Write:
    assert write.value is not None
    ledger = replace(records.load_ledger(write.value, 0), incarnation=Incarnation(1))
    return replace(write, value=records.dump_ledger(ledger))


class CarelessStore(StoreDoor):
    """Writes over whatever somebody else has committed in between."""

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        try:
            return super().commit(commit_id, writes, journal, lease)
        except Conflict:
            found = self.get([write.key for write in writes])
            forced = [replace(write, expected=found[write.key].version) for write in writes]
            return super().commit(commit_id, forced, journal, lease)


class MuteStore(StoreDoor):
    """Keeps ledgers, and forgets to write down why they changed."""

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        return super().commit(commit_id, writes, journal[1:], lease)


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (HastyConductor, "S11|S17"),
        (EagerConductor, "S17: nobody approved it"),
        (LazyConductor, "S1[67]: .* nothing happens"),
        (StuckStore, "S[79]"),
        (CarelessStore, "S16|S23"),
        (MuteStore, "S23"),
    ],
)
def test_a_rule_broken_on_purpose_is_caught(broken: type, promise: str, tmp_path: Path) -> None:
    class Broken(Story):
        store_type = broken if issubclass(broken, StoreDoor) else StoreDoor
        conductor_type = broken if issubclass(broken, Conductor) else Conductor

    with pytest.raises(AssertionError, match=promise):
        try_stories(Broken, HUNT, tmp_path)


class TwofoldFabric(WitnessedFabric):
    """Forgets what it has begun, and begins it again."""

    def observe(self, order: Order) -> Report:
        self._running.pop((order.event, order.machine), None)
        return super().observe(order)


def test_an_impact_that_happens_twice_is_caught(tmp_path: Path) -> None:
    class Broken(Story):
        fabric_type = TwofoldFabric

    with pytest.raises(AssertionError, match="S10: carried out twice"):
        try_stories(Broken, HUNT, tmp_path)
