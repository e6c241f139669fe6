"""The promises made to guests, as invariants of any story.

Goal: whatever happens, no machine is touched without notice, no document lies, and nothing that
was acknowledged is lost. It is checked from outside: on the bytes that guests read, the ledgers as
they were committed, and the orders as the fabric got them.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Final

from hypothesis.stateful import invariant

from forewarn.core.events import Cause, EventStatus
from forewarn.core.names import MachineName
from forewarn.service.journals import Filter
from forewarn.testing.stories import Story
from forewarn.testing.witnesses import (
    BATCH,
    FLEET,
    MACHINES,
    MINIMUM,
    RECOVERY,
    USER_OPERATIONS_MAX,
    is_maintenance,
    may_wait,
    needs_notice,
)

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)


class Promises(Story):
    """What must hold, whatever happens."""

    @invariant()
    def incarnation_changes_exactly_when_the_events_do(self) -> None:
        """S9: and it never goes back, not even by a restart."""
        for before, after in self.changes:
            changed = before.document.notices != after.document.notices
            assert after.incarnation == before.incarnation + changed, "S9: news and number differ"
        self.changes.clear()
        for scope, document in self.read.items():
            ledger = self.committed[scope]
            assert document["DocumentIncarnation"] == ledger.incarnation, "S9: guests read another"
            assert len(document["Events"]) == len(ledger.document.notices), "S7: not what is"

    @invariant()
    def nothing_starts_without_approval_or_notice(self) -> None:
        """S11, S17: the minimum is true, measured by whoever could read."""
        for start in self.starts:
            if not needs_notice(start):
                continue
            event = start.event
            assert event.approval is None, "S17: nobody approved it"
            assert event.readable_at is not None, "S11: nobody wrote down that it was readable"
            assert start.readable is not None, "S11: nobody could read of it"
            if event.id not in self.unmeasured:
                assert start.at - start.readable >= MINIMUM[event.type], "S11: too little notice"
            assert event.started_at is not None
            assert event.not_before <= event.started_at, "S17: before NotBefore"
            shown = f"{event.not_before:%a, %d %b %Y %H:%M:%S GMT}"
            assert start.not_before == shown, "S17: guests read another NotBefore"

    @invariant()
    def maintenance_takes_one_update_domain_at_a_time(self) -> None:
        """S20: and lets the scope recover in between."""
        for start in self.starts:
            failure = start.event.cause is Cause.HARDWARE_FAILURE
            if failure or not is_maintenance(start.event):
                continue
            for other in start.ledger.events:
                apart = other.update_domain != start.event.update_domain
                if not apart or not is_maintenance(other):
                    continue
                assert other.status is not EventStatus.STARTED, "S20: two update domains are down"
                assert start.event.started_at is not None
                if other.status is EventStatus.COMPLETED and other.ended_at is not None:
                    rested = start.event.started_at - other.ended_at
                    assert rested >= RECOVERY, "S20: no time to recover"

    @invariant()
    def no_order_is_given_before_its_event_is_started(self) -> None:
        """S8: no impact is hidden from guests; S10: it happens to those that were named, once."""
        for order, event in self.orders:
            assert event.status is EventStatus.STARTED, "S8: an impact nobody was told of"
            assert order.machine in event.machines, "S14: the wrong machine"
            once = self.given[order.event, order.machine] <= 1
            assert once or order.machine in self.forgetful, "S10: carried out twice"
        self.orders.clear()

    @invariant()
    def a_machine_has_one_started_event(self) -> None:
        for ledger in self.committed.values():
            busy = Counter(
                machine
                for event in ledger.open_events
                if event.status is EventStatus.STARTED
                for machine in event.unfinished
            )
            assert not busy or max(busy.values()) == 1, "one thing at a time happens to a machine"

    @invariant()
    def an_event_concerns_one_update_domain_of_its_own_scope(self) -> None:
        """S14, S15."""
        for scope in FLEET:
            names = {machine.name for machine in scope.machines}
            for event in self.read[scope.id]["Events"]:
                hit = {MachineName(name.lstrip("_")) for name in event["Resources"]}
                assert hit <= names, "S14: machines of another scope"
                assert len({MACHINES[name].update_domain for name in hit}) == 1, "S15: too many"

    @invariant()
    def what_has_ended_never_returns(self) -> None:
        """S8."""
        assert not self.returned, "S8: it was over"

    @invariant()
    def user_operations_stay_within_their_limit(self) -> None:
        """S19."""
        ledger = self.committed[BATCH.id]
        assert ledger.user_operations <= USER_OPERATIONS_MAX, "S19: too many user operations"

    @invariant()
    def an_acknowledged_approval_is_never_lost(self) -> None:
        """S16."""
        for ledger in self.committed.values():
            for event in ledger.events:
                if event.id in self.acknowledged:
                    assert event.approval is not None, "S16: an approval was lost"

    @invariant()
    def what_may_start_does(self) -> None:
        """S16, S17: unless the record names what holds it."""
        for ledger in self.committed.values():
            for event in ledger.open_events:
                if event.status is not EventStatus.SCHEDULED:
                    continue
                held = may_wait(event, ledger, self.clock.now())
                assert held or event.approval is None, "S16: approved, and nothing happens"
                assert event.approval is None or event.hold, "S17: held, and nobody says why"
                early = event.not_before > self.clock.now() or event.id in self.jumped
                assert held or early, "S17: due, and nothing happens"

    @invariant()
    def a_scope_is_enabled_while_it_is_heard(self) -> None:
        """S13."""
        elapsed = self.clock.elapsed()
        is_enabled = self.committed[BATCH.id].is_enabled
        if elapsed - self.heard.get(BATCH.id, -DAY) < DAY:
            assert is_enabled, "S13: heard, and disabled"
        # What another desk hears may be known as much as an hour later.
        if elapsed - max(self.asked.get(BATCH.id, -DAY), self.listening_since) > DAY + HOUR:
            assert not is_enabled, "S13: a day of silence, and enabled"

    @invariant()
    def the_record_of_every_event_is_complete(self) -> None:
        """N6: announced, readable, approved, started, ended, in this order."""
        for ledger in self.committed.values():
            for event in ledger.events:
                if event.id in self.jumped:
                    continue
                approved_at = event.approval.at if event.approval else None
                for moments in (
                    (event.announced_at, event.readable_at, event.ended_at),
                    (event.announced_at, approved_at, event.started_at, event.ended_at),
                ):
                    known = [moment for moment in moments if moment is not None]
                    assert known == sorted(known), "N6: the record is out of order"
                assert event.is_open == (event.ended_at is None), "N6: it ended, but when?"

    @invariant()
    def the_journal_agrees_with_the_ledgers(self) -> None:
        """S23: whatever happened to an event was written down in the same commit."""
        page = self.world.parts.journals.page(self.cursor, 100_000, Filter())
        self.cursor = page.cursor
        for line in page.lines:
            if line.entry.event is not None:
                self.journaled[line.entry.event.id] = line.entry.event
        for ledger in self.committed.values():
            for event in ledger.events:
                assert self.journaled.get(event.id) == event, "S23: the journal tells another story"
