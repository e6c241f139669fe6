"""The promises, each said once, as what must be true of any story whatever happens in it.

Goal: whatever happens, no machine is touched without notice, no document lies, and nothing that
was acknowledged is lost. All is checked from outside: on the bytes that guests read, the ledgers
as they were committed, and the orders as the fabric got them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from forewarn.core.events import (
    Audience,
    Cause,
    EventSource,
    EventStatus,
    EventType,
    Result,
)
from forewarn.core.journal import Role, What
from forewarn.core.scopes import Enabling, Presence
from forewarn.testing import measures
from forewarn.testing.witnesses import Witness

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
POSTPONED_MAX: Final = 24 * HOUR
# Where an event may go from where it is; None is nowhere.
WAYS: Final = {
    None: tuple(EventStatus),
    EventStatus.SCHEDULED: tuple(EventStatus),
    EventStatus.STARTED: (EventStatus.STARTED, EventStatus.COMPLETED),
    EventStatus.COMPLETED: (EventStatus.COMPLETED,),
    EventStatus.CANCELED: (EventStatus.CANCELED,),
}
ALL_DOWN: Final = "all-instances-down"
WORDS: Final = {"Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"}
UNANNOUNCED: Final = (EventType.POWER_OFF, EventType.START, EventType.DEALLOCATE)
OF_MACHINES_THAT_ARE_OFF: Final = (EventType.START, EventType.TERMINATE)
AFTERWARDS: Final = {
    EventType.POWER_OFF: Presence.STOPPED,
    EventType.DEALLOCATE: Presence.DEALLOCATED,
    EventType.PREEMPT: Presence.DEALLOCATED,
    EventType.START: Presence.RUNNING,
    EventType.TERMINATE: Presence.DELETED,
}


def a_document_shows_what_is_scheduled(seen: Witness) -> None:
    """S7: guests read the events that were committed, no more and no less."""
    for reading in seen.readings:
        document = seen.documents.get((reading.scope, reading.revision))
        assert document == reading.document, "S7: guests read what nobody committed"
        assert reading.body["DocumentIncarnation"] == reading.document.incarnation, "S7: another"
        ids = [event["EventId"] for event in reading.body["Events"]]
        assert ids == [notice.id for notice in reading.document.notices], "S7: not what is"


def an_event_goes_one_way(seen: Witness) -> None:
    """S8: Scheduled, Started, gone. What has ended never returns."""
    for before, after in measures.changed(seen):
        ways = WAYS[before.status if before else None]
        assert after.status in ways, "S8: an event went back"
    assert not seen.returned, "S8: it was over"


def the_number_changes_exactly_when_the_events_do(seen: Witness) -> None:
    """S9: and it never goes back, not even by a restart."""
    for commit in seen.commits:
        if commit.before is None:
            assert commit.after.incarnation >= 1, "S9: the first number"
            continue
        changed = commit.before.document.notices != commit.after.document.notices
        number = commit.before.incarnation + changed
        assert commit.after.incarnation == number, "S9: news and number differ"
    for reading in seen.readings:
        assert reading.before <= reading.document.incarnation, "S9: guests saw it go back"
    if seen.is_settled:
        for board in seen.boards.values():
            for scope, reading in board.items():
                newest = seen.committed[scope].document
                assert reading.document == newest, "S9: guests read another"


def an_impact_happens_to_whom_it_was_announced_once(seen: Witness) -> None:
    """S8, S10: after Started, on the machines that were named, as the type says."""
    for order, event in seen.orders:
        # What ended while the order was on its way could not be called back.
        started = event.status is EventStatus.STARTED or event.id in seen.ended_lately
        assert started, "S8: an impact nobody was told of"
        assert order.machine in event.machines, "S14: the wrong machine"
        assert order.impact is event.type, "S10: another impact"
        assert seen.given[order.event, order.machine] <= 1, "S10: carried out twice"


def the_notice_is_a_true_minimum(seen: Witness) -> None:
    """S11: measured by whoever could read, on a clock that does not jump."""
    for commit in seen.commits:
        for event in measures.new(commit):
            if measures.is_told_ahead(event):
                least = measures.minimum(event, commit.after.scope)
                assert event.notice >= least, "S11: less than the minimum was promised"
                assert event.not_before >= event.announced_at + event.notice, "S11: NotBefore"
    for start in seen.starts:
        if not measures.needs_notice(start):
            continue
        assert start.event.readable_at is not None, "S11: nobody wrote down that it was readable"
        assert start.readable is not None, "S11: nobody could read of it"
        # Time during which no service ran counts, and is known by the hands of the clock alone.
        served = start.at - start.readable + start.misled_by
        assert served >= start.event.notice, "S11: too little notice"


def a_predicted_failure_is_announced_days_ahead(seen: Witness) -> None:
    """S12: it is an event as any other, and never less ahead than one."""
    for commit in seen.commits:
        for event in measures.new(commit):
            if event.cause is Cause.PREDICTED_FAILURE and event.audience is Audience.GUESTS:
                assert event.status is EventStatus.SCHEDULED, "S12: it was only predicted"


def a_scope_is_enabled_while_it_is_heard(seen: Witness) -> None:
    """S13: and disabled after a day of silence; only while it is enabled there are notices."""
    elapsed = seen.clock.elapsed()
    for scope, ledger in seen.committed.items():
        if ledger.scope.enabling is Enabling.ALWAYS:
            continue
        if elapsed - seen.heard.get(scope, -DAY) < DAY:
            assert ledger.is_enabled, "S13: heard, and disabled"
        # What another service hears may be known as much as an hour later.
        silent = elapsed - max(seen.asked.get(scope, -DAY), seen.listening_since)
        if seen.is_settled and silent > DAY + HOUR:
            assert not ledger.is_enabled, "S13: a day of silence, and enabled"
    for commit in seen.commits:
        for event in measures.new(commit):
            told = event.audience is Audience.GUESTS
            assert commit.after.is_enabled or not told, "S13: told to nobody"


def an_event_concerns_one_update_domain_of_its_own_scope(seen: Witness) -> None:
    """S14, S15: and one host."""
    for commit in seen.commits:
        roster = {machine.name: machine for machine in commit.after.scope.machines}
        for event in measures.new(commit):
            assert set(event.machines) <= set(roster), "S14: machines of another scope"
            hosts = {roster[name].host for name in event.machines}
            assert len(hosts) == 1, "S15: machines of several hosts"
        for event in commit.after.open_events:
            there = [roster[name] for name in event.machines if name in roster]
            domains = {machine.update_domain for machine in there}
            assert domains <= {event.update_domain}, "S15: too many update domains"


def an_acknowledged_approval_is_never_lost(seen: Witness) -> None:
    """S16, N12: nor one that was kept before, nor the one that came first."""
    for before, after in measures.changed(seen):
        if before is not None and before.approval is not None:
            assert after.approval == before.approval, "S16: an approval was lost"
    for ledger in seen.committed.values():
        for event in ledger.events:
            if event.id in seen.acknowledged:
                assert event.approval is not None, "S16: an approval was lost"


def nothing_starts_before_its_time(seen: Witness) -> None:
    """S17: without approval never before NotBefore, as guests read it; and nobody else approves."""
    for start in seen.starts:
        event = start.event
        if event.approval is not None:
            by_policy = event.approval.role == Role.POLICY.value
            # Whether it was so is known when that policy speaks, not when the event starts.
            if by_policy and event.approval.by != ALL_DOWN:
                allowed = measures.is_auto_approved(event, start.ledger.scope)
                assert allowed, "S17: no such policy"
            assert by_policy or start.was_attempted, "S17: nobody approved it"
        elif measures.needs_notice(start):
            assert event.started_at is not None
            assert event.not_before <= event.started_at, "S17: before NotBefore"
            assert measures.latest(start.shown) <= event.not_before, "S17: guests read a later one"


def a_policy_speaks_for_machines_only_when_none_of_them_can(seen: Witness) -> None:
    """S17: and only if the owner did not forbid it."""
    for commit in seen.commits:
        for event in commit.after.events:
            before = commit.before.find(event.id) if commit.before else None
            if event.approval is None or event.approval.by != ALL_DOWN:
                continue
            if before is None or before.approval is None:
                scope = commit.after.scope
                assert scope.owner.all_instances_down, "S17: the owner forbade it"
                running = [m for m in scope.machines if m.presence is Presence.RUNNING]
                assert not running, "S17: somebody could have approved it"


def guests_read_the_words_they_know(seen: Witness) -> None:
    """S5: what owners do to their own machines is in no document."""
    for reading in seen.readings:
        assert {event["EventType"] for event in reading.body["Events"]} <= WORDS, "S5: a new word"
    for commit in seen.commits:
        for event in commit.after.events:
            if event.type in UNANNOUNCED:
                assert event.audience is Audience.OPERATORS, "S5: an owner's own doing is told"


def what_may_start_does(seen: Witness) -> None:
    """S16, S17: unless the record names what holds it."""
    if not seen.is_settled:
        return
    now = seen.clock.now()
    for ledger in seen.committed.values():
        for event in ledger.open_events:
            if event.status is not EventStatus.SCHEDULED:
                continue
            held = measures.may_wait(event, ledger, now)
            assert held or event.approval is None, "S16: approved, and nothing happens"
            assert event.approval is None or event.hold, "S17: held, and nobody says why"
            early = event.not_before > now or event.id in seen.jumped
            assert held or early, "S17: due, and nothing happens"


def user_operations_stay_within_their_limit(seen: Witness) -> None:
    """S19: what is there may exceed a limit that was lowered; what is added may not."""
    for commit in seen.commits:
        limit = commit.after.scope.user_operations_max
        if limit is None or all(e.source is not EventSource.USER for e in measures.new(commit)):
            continue
        assert commit.after.user_operations <= limit, "S19: too many user operations"


def maintenance_takes_one_update_domain_at_a_time(seen: Witness) -> None:
    """S20: and lets the scope recover in between."""
    for start in seen.starts:
        if start.event.cause is Cause.HARDWARE_FAILURE:
            continue
        for other in start.ledger.events:
            if not measures.are_apart(start.event, other):
                continue
            assert other.status is not EventStatus.STARTED, "S20: two update domains are down"
            assert start.event.started_at is not None
            if other.status is EventStatus.COMPLETED and other.ended_at is not None:
                rested = start.event.started_at - other.ended_at
                assert rested >= measures.recovery(start.ledger.scope), "S20: no time to recover"


def one_thing_at_a_time_happens_to_a_machine(seen: Witness) -> None:
    """S20: no two started events concern one machine."""
    for commit in seen.commits:
        busy = Counter(
            machine
            for event in commit.after.open_events
            if event.status is EventStatus.STARTED
            for machine in event.unfinished
        )
        assert not busy or max(busy.values()) == 1, "S20: two things happen to one machine"


def nothing_is_planned_for_a_machine_that_is_gone(seen: Witness) -> None:
    """S21: whoever was preempted or terminated is gone, and whatever was planned for it is off.

    What is off can still be started, and what is not deleted can still be deleted.
    """
    for commit in seen.commits:
        for event in commit.after.open_events:
            if event.status is EventStatus.SCHEDULED:
                for name in event.machines:
                    machine = commit.after.scope.machine(name)
                    assert machine is not None, "S21: planned for a machine that is gone"
                    there = machine.presence in (Presence.RUNNING, Presence.STOPPED)
                    is_off = machine.presence is Presence.DEALLOCATED
                    there = there or (is_off and event.type in OF_MACHINES_THAT_ARE_OFF)
                    assert there, "S21: planned for a machine that is gone"
        for event in commit.after.events:
            before = commit.before.find(event.id) if commit.before else None
            for outcome in event.outcomes:
                machine = commit.after.scope.machine(outcome.machine)
                is_new = before is not None and outcome not in before.outcomes
                if is_new and machine is not None and outcome.result is Result.DONE:
                    expected = AFTERWARDS.get(event.type, machine.presence)
                    assert machine.presence is expected, "S21: it is still there"


def the_journal_agrees_with_the_ledgers(seen: Witness) -> None:
    """S23: whatever happened to an event was written down in the same commit."""
    for commit in seen.commits:
        told = {entry.event.id: entry.event for entry in commit.entries if entry.event}
        before = {event.id: event for event in (commit.before.events if commit.before else ())}
        for event in commit.after.events:
            if before.get(event.id) != event:
                assert told.get(event.id) == event, "S23: the journal tells another story"
        for entry in commit.entries:
            number = commit.after.incarnation
            assert entry.incarnation == number, "S23: the journal tells another number"


def what_was_announced_is_remembered(seen: Witness) -> None:
    """S16, S23: until it has ended, and for a day after."""
    for commit in seen.commits:
        for event in commit.before.events if commit.before else ():
            if commit.after.find(event.id) is None:
                assert event.ended_at is not None, "S23: an open event vanished"
                assert commit.now - event.ended_at >= DAY, "S16: forgotten within a day"
    assert seen.promised <= set(seen.announced), "S23: an announcement was lost"


def whoever_waits_is_woken(seen: Witness) -> None:
    """N4: a long poll is answered when the document changes."""
    for reading in seen.readings:
        assert reading.woken_for == reading.document.incarnation, "N4: nobody was woken"


def postponing_has_limits(seen: Witness) -> None:
    """N5: later only, by a day in all, and never once it is approved."""
    for before, after in measures.changed(seen):
        if before is None or before.not_before == after.not_before:
            continue
        assert after.not_before > before.not_before, "N5: moved to an earlier time"
        assert after.earlier == (*before.earlier, before.not_before), "N5: a NotBefore is missing"
    for commit in seen.commits:
        for entry in commit.entries:
            if entry.what is What.POSTPONED and entry.event is not None:
                event = entry.event
                moved = event.not_before - event.first_not_before
                assert moved <= POSTPONED_MAX, "N5: postponed for too long"
                assert event.approval is None, "N5: postponed although approved"


def the_record_of_every_event_is_complete(seen: Witness) -> None:
    """N6: announced, readable, approved, started, ended, in this order; and it is never altered."""
    for before, event in measures.changed(seen):
        assert event.is_open == (event.ended_at is None), "N6: it ended, but when?"
        if before is not None:
            assert event.announced_at == before.announced_at, "N6: the record was altered"
            for moment in ("readable_at", "started_at", "ended_at"):
                was = getattr(before, moment)
                assert was in (None, getattr(event, moment)), "N6: the record was altered"
        if event.id in seen.jumped:
            continue
        approved_at = event.approval.at if event.approval else None
        for moments in (
            (event.announced_at, event.readable_at, event.ended_at),
            (event.announced_at, approved_at, event.started_at, event.ended_at),
        ):
            known = [moment for moment in moments if moment is not None]
            assert known == sorted(known), "N6: the record is out of order"


PROMISES: Final[tuple[Callable[[Witness], None], ...]] = (
    a_document_shows_what_is_scheduled,
    an_event_goes_one_way,
    the_number_changes_exactly_when_the_events_do,
    an_impact_happens_to_whom_it_was_announced_once,
    the_notice_is_a_true_minimum,
    a_predicted_failure_is_announced_days_ahead,
    a_scope_is_enabled_while_it_is_heard,
    an_event_concerns_one_update_domain_of_its_own_scope,
    an_acknowledged_approval_is_never_lost,
    nothing_starts_before_its_time,
    a_policy_speaks_for_machines_only_when_none_of_them_can,
    guests_read_the_words_they_know,
    what_may_start_does,
    user_operations_stay_within_their_limit,
    maintenance_takes_one_update_domain_at_a_time,
    one_thing_at_a_time_happens_to_a_machine,
    nothing_is_planned_for_a_machine_that_is_gone,
    the_journal_agrees_with_the_ledgers,
    what_was_announced_is_remembered,
    whoever_waits_is_woken,
    postponing_has_limits,
    the_record_of_every_event_is_complete,
)


def check(seen: Witness) -> None:
    """Hold every promise against what was seen since the last time."""
    for promise in PROMISES:
        promise(seen)
    seen.pass_over()
