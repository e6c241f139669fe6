"""Parts that break a rule on purpose: whoever holds the promises must find each of them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from forewarn.core import enabling, ledgers
from forewarn.core.events import Approval, EventStatus
from forewarn.core.journal import SERVICE, Role, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import EventId, Incarnation, ScopeId
from forewarn.core.orders import Order, Report, unfinished_orders
from forewarn.errors import Conflict
from forewarn.ports.store import CommitId, Lease, Store, Write
from forewarn.service.conductor import Conductor
from forewarn.testing.faults import StoreDoor
from forewarn.testing.witnesses import WitnessedFabric
from forewarn.wire import records


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


class TwofoldFabric(WitnessedFabric):
    """Forgets what it has begun, and begins it again."""

    def observe(self, order: Order) -> Report:
        self._running.pop((order.event, order.machine), None)
        return super().observe(order)


class GullibleConductor(Conductor):
    """Goes by the hands of the clock alone."""

    def _unserved(self, ledger: Ledger) -> frozenset[EventId]:
        del ledger
        return frozenset()


class RecklessConductor(Conductor):
    """Lets nothing hold an event that is due."""

    def _decide(self, ledger: Ledger) -> Decision:
        decision = super()._decide(ledger)
        for event in decision.ledger.open_events:
            if event.status is EventStatus.SCHEDULED and event.hold:
                now = self._clock.now()
                started = replace(event, status=EventStatus.STARTED, started_at=now, hold="")
                step = ledgers.note(decision.ledger, What.STARTED, SERVICE, now, started)
                decision = ledgers.then(decision, step)
        return decision


class DeafConductor(Conductor):
    """Disables a scope after an hour of silence."""

    def _decide(self, ledger: Ledger) -> Decision:
        decision = super()._decide(ledger)
        silent_for = 24 * self._attendance.silent_for(ledger)
        now = self._clock.now()
        return ledgers.then(decision, enabling.fall_silent(decision.ledger, silent_for, now))


class SecretiveConductor(Conductor):
    """Gives the orders first, and says afterwards that the event is Started."""

    def _tend(self, scopes: Sequence[ScopeId]) -> dict[ScopeId, Exception]:
        for scope in scopes:
            for event in self._books.load(scope).open_events:
                for order in unfinished_orders(scope, event):
                    if event.not_before <= self._clock.now() + timedelta(hours=1):
                        self._fabric.begin(order)
        return super()._tend(scopes)


class HollowStore(StoreDoor):
    """Says that a commit is durable, and now and then it is not even written."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._count = 0

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        self._count += 1
        if self._count % 7 == 0:
            return {write.key: write.expected + 1 for write in writes}
        return super().commit(commit_id, writes, journal, lease)
