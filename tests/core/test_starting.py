"""When a due event starts, what holds it, and when it is over."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given

from forewarn.core import ledgers, starting
from forewarn.core.events import (
    Approval,
    Audience,
    Cause,
    Event,
    EventSource,
    EventStatus,
    EventType,
    Outcome,
    Result,
)
from forewarn.core.journal import SERVICE, Actor, Role, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import EventId, MachineName
from forewarn.core.periods import Periods
from forewarn.core.scopes import Machine, Presence, Scope
from forewarn.errors import IllegalTransition, Refused, UnknownEvent
from forewarn.testing import strategies
from forewarn.testing.strategies import EPOCH as NOON

RULES = Periods(recovery=timedelta(minutes=30))
MINUTE = timedelta(minutes=1)
TICK = timedelta(microseconds=1)
OPS = Actor(Role.OPERATOR, "ops", "127.0.0.1")
GUEST = Actor(Role.GUEST, "b", "10.0.0.5")
A, B, C = MachineName("a"), MachineName("b"), MachineName("c")

WEB = Scope(name="web", machines=tuple(Machine(name=name) for name in (A, B, C)))
# Due: it was readable, and its notice has run out.
DUE = Event(
    id=EventId("E1"),
    type=EventType.REBOOT,
    source=EventSource.PLATFORM,
    machines=(A, B),
    update_domain=0,
    announced_by="ops",
    announced_at=NOON - 15 * MINUTE,
    notice=15 * MINUTE,
    not_before=NOON,
    readable_at=NOON - 15 * MINUTE,
)
SOON = replace(DUE, not_before=NOON + MINUTE)
STARTED = replace(DUE, status=EventStatus.STARTED, started_at=NOON)
OTHER = replace(STARTED, id=EventId("E2"), machines=(C,), update_domain=1)
OVER = replace(
    OTHER,
    status=EventStatus.COMPLETED,
    outcomes=(Outcome(C, Result.DONE, NOON),),
    ended_at=NOON,
)
APPROVAL = Approval("ops", "operator", "127.0.0.1", NOON)
RECOVERING = "the scope recovers from maintenance of another update domain until "


def ledger_of(*events: Event) -> Ledger:
    return Ledger(scope=WEB, events=events)


def start(ledger: Ledger, now: datetime = NOON) -> Decision:
    return starting.start_if_free(ledger, DUE.id, now, RULES)


def whats(decision: Decision) -> list[What]:
    return [entry.what for entry in decision.entries]


# -- starting and holding ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (DUE, "notice ran out"),
        (replace(SOON, approval=APPROVAL), "approved"),
        (replace(SOON, audience=Audience.OPERATORS, readable_at=None), "unannounced"),
    ],
)
def test_a_due_event_that_nothing_holds_starts_and_says_why(event: Event, why: str) -> None:
    """keeps S17."""
    decision = start(ledger_of(event))

    assert decision.ledger.event("E1").status is EventStatus.STARTED
    assert decision.ledger.event("E1").started_at == NOON
    (entry,) = decision.entries
    assert (entry.what, entry.note, entry.actor) == (What.STARTED, why, SERVICE)


@pytest.mark.parametrize("event", [SOON, STARTED, replace(DUE, readable_at=None)])
def test_an_event_that_is_not_due_is_left_alone(event: Event) -> None:
    ledger = ledger_of(event)

    assert start(ledger).ledger is ledger


@pytest.mark.parametrize(
    ("other", "holds"),
    [
        # One started event on a machine at a time, whatever the two are.
        (replace(OTHER, machines=(B,), update_domain=0), "Reboot E2 is started on b"),
        (replace(OTHER, machines=(A,), source=EventSource.USER), "Reboot E2 is started on a"),
        (
            replace(OTHER, machines=(B,), audience=Audience.OPERATORS, update_domain=0),
            "Reboot E2 is started on b",
        ),
        # Platform maintenance: no other update domain is in flight, for whatever reason.
        (replace(OTHER, source=EventSource.USER), "Reboot E2 is started in update domain 1"),
        (replace(OTHER, type=EventType.PREEMPT), "Preempt E2 is started in update domain 1"),
        (OTHER, "Reboot E2 is started in update domain 1"),
        (replace(OTHER, cause=Cause.HARDWARE_FAILURE), "Reboot E2 is started in update domain 1"),
        (OVER, RECOVERING + "2030-01-01T12:30:00Z"),
        # What holds nobody.
        (replace(OTHER, update_domain=0), ""),
        (replace(OVER, update_domain=0), ""),
        (replace(OVER, source=EventSource.USER), ""),
        (replace(OTHER, status=EventStatus.SCHEDULED, started_at=None), ""),
        (replace(OVER, status=EventStatus.CANCELED, outcomes=(), started_at=None), ""),
    ],
)
def test_what_holds_platform_maintenance(other: Event, holds: str) -> None:
    """keeps S17, S20."""
    ledger = ledger_of(DUE, other)

    decision = start(ledger)

    assert starting.hold(ledger, DUE, NOON, RULES) == holds
    event = decision.ledger.event("E1")
    assert event.hold == holds
    assert event.status is (EventStatus.SCHEDULED if holds else EventStatus.STARTED)
    assert whats(decision) == [What.HELD if holds else What.STARTED]


@pytest.mark.parametrize("other", [OTHER, OVER])
@pytest.mark.parametrize(
    "event",
    [
        replace(DUE, source=EventSource.USER),
        replace(DUE, type=EventType.PREEMPT),
        replace(DUE, type=EventType.TERMINATE),
    ],
)
def test_only_platform_maintenance_is_held_by_update_domains(event: Event, other: Event) -> None:
    assert whats(start(ledger_of(event, other))) == [What.STARTED]


def test_unannounced_maintenance_is_held_as_well() -> None:
    unannounced = replace(DUE, audience=Audience.OPERATORS)

    assert whats(start(ledger_of(unannounced, OTHER))) == [What.HELD]


def test_the_same_hold_is_written_down_once_and_another_one_again() -> None:
    held = start(ledger_of(DUE, OTHER)).ledger
    assert start(held).ledger is held

    recovering = start(ledgers.record(held, OVER), NOON + MINUTE)

    assert whats(recovering) == [What.HELD]
    started = start(recovering.ledger, NOON + 30 * MINUTE)
    assert whats(started) == [What.STARTED]
    assert started.ledger.event("E1").hold == ""


def test_recovery_is_over_to_the_instant_and_may_be_the_scopes_own() -> None:
    ledger = ledger_of(DUE, OVER)
    assert starting.hold(ledger, DUE, NOON + 30 * MINUTE - TICK, RULES)
    assert not starting.hold(ledger, DUE, NOON + 30 * MINUTE, RULES)

    own = replace(ledger, scope=replace(WEB, recovery=MINUTE))

    assert starting.hold(own, DUE, NOON + MINUTE - TICK, RULES)
    assert not starting.hold(own, DUE, NOON + MINUTE, RULES)


def test_the_last_of_several_to_end_decides_when_the_scope_has_recovered() -> None:
    later = replace(OVER, id=EventId("E3"), update_domain=2, ended_at=NOON + MINUTE)

    assert starting.rested_at(ledger_of(DUE, later, OVER), DUE, RULES) == NOON + 31 * MINUTE
    assert starting.rested_at(ledger_of(DUE), DUE, RULES) is None


def test_what_recovery_looks_back_at_is_remembered_as_long() -> None:
    assert starting.remembered(WEB, RULES) == RULES.remember
    slow = replace(WEB, recovery=timedelta(days=3))
    assert starting.remembered(slow, RULES) == timedelta(days=3)


# -- approving ---------------------------------------------------------------------------


def test_anybody_of_the_scope_approves_for_all_machines() -> None:
    """keeps S16, N6: by whom, and from where."""
    decision = starting.approve(ledger_of(SOON), ("e1",), GUEST, NOON)

    approved = decision.ledger.event("E1")
    assert approved.approval == Approval("b", "guest", "10.0.0.5", NOON)
    assert approved.status is EventStatus.SCHEDULED
    assert [(e.what, e.actor) for e in decision.entries] == [(What.APPROVED, GUEST)]
    assert whats(start(decision.ledger)) == [What.STARTED]


def test_all_of_these_ids_or_none() -> None:
    ledger = ledger_of(SOON, OTHER)

    with pytest.raises(UnknownEvent, match="E9"):
        starting.approve(ledger, ("E1", "E9"), GUEST, NOON)

    both = starting.approve(ledger, ("E1", "E2", "E1"), GUEST, NOON)
    assert whats(both) == [What.APPROVED]


@given(strategies.ledgers())
def test_repeated_and_late_approvals_are_accepted_and_change_nothing(ledger: Ledger) -> None:
    """keeps S16."""
    ids = tuple(event.id for event in ledger.events if event.audience is Audience.GUESTS)

    once = starting.approve(ledger, ids, GUEST, NOON)
    again = starting.approve(once.ledger, ids, OPS, NOON + MINUTE)

    assert again.ledger is once.ledger
    assert again.entries == ()
    assert once.ledger.document == ledger.document
    for before, after in zip(ledger.events, once.ledger.events, strict=True):
        if before.status is not EventStatus.SCHEDULED or before.approval is not None:
            assert after is before
    if not once.entries:
        assert once.ledger is ledger


def test_what_guests_are_not_told_of_is_unknown_to_them_and_needs_no_approval() -> None:
    ledger = ledger_of(replace(SOON, audience=Audience.OPERATORS))

    with pytest.raises(UnknownEvent):
        starting.approve(ledger, ("E1",), GUEST, NOON)
    with pytest.raises(Refused, match="nobody's approval"):
        starting.approve(ledger, ("E1",), OPS, NOON)


# -- canceling and postponing ------------------------------------------------------------


def test_an_event_is_called_off_before_it_has_started() -> None:
    """keeps N5."""
    decision = starting.cancel(ledger_of(replace(DUE, hold="x")), "e1", OPS, NOON, "no need")

    canceled = decision.ledger.event("E1")
    assert (canceled.status, canceled.ended_at) == (EventStatus.CANCELED, NOON)
    assert canceled.hold == ""
    assert decision.ledger.document.notices == ()
    assert [(e.what, e.note) for e in decision.entries] == [(What.CANCELED, "no need")]


def test_what_has_started_cannot_be_called_off() -> None:
    with pytest.raises(IllegalTransition):
        starting.cancel(ledger_of(STARTED), "E1", OPS, NOON)


def test_an_event_may_be_moved_later_within_a_day_of_its_first_time() -> None:
    """keeps N5, N6."""
    day = timedelta(hours=24)

    once = starting.postpone(
        ledger_of(SOON), "E1", SOON.not_before + MINUTE - TICK, OPS, NOON, RULES
    )
    twice = starting.postpone(once.ledger, "E1", SOON.not_before + day, OPS, NOON, RULES)

    moved = twice.ledger.event("E1")
    assert moved.earlier == (SOON.not_before, SOON.not_before + MINUTE)
    assert moved.not_before == SOON.not_before + day
    assert [(e.what, e.note) for e in once.entries] == [
        (What.POSTPONED, "from 2030-01-01T12:01:00Z to 2030-01-01T12:02:00Z")
    ]
    with pytest.raises(Refused, match="until 2030-01-02T12:01:00Z at most"):
        starting.postpone(once.ledger, "E1", SOON.not_before + day + TICK, OPS, NOON, RULES)


@pytest.mark.parametrize(
    ("event", "to", "why"),
    [
        (replace(SOON, type=EventType.PREEMPT), 9, "a Preempt cannot be postponed"),
        (replace(SOON, type=EventType.TERMINATE), 9, "a Terminate cannot be postponed"),
        (replace(SOON, audience=Audience.OPERATORS), 9, "unannounced"),
        (replace(SOON, approval=APPROVAL), 9, "approved by ops"),
        (STARTED, 9, "is Started: cannot postpone"),
        (replace(STARTED, approval=APPROVAL), 9, "is Started: cannot postpone"),
        (replace(SOON, status=EventStatus.CANCELED, ended_at=NOON), 9, "cannot postpone"),
        (SOON, 1, "can only be moved later"),
        (replace(SOON, not_before=NOON + 10 * MINUTE), 9, "can only be moved later"),
        # It is held: it is due, but its time can still be moved, into what is to come.
        (replace(DUE, not_before=NOON - 5 * MINUTE), -1, "has passed"),
    ],
)
def test_postponing_has_its_limits(event: Event, to: int, why: str) -> None:
    """keeps N5."""
    with pytest.raises(Refused, match=why):
        starting.postpone(ledger_of(event), "E1", NOON + to * MINUTE, OPS, NOON, RULES)


# -- ending ------------------------------------------------------------------------------


def test_an_event_ends_with_its_last_order() -> None:
    first = starting.report(ledger_of(STARTED), DUE.id, Outcome(A, Result.DONE, NOON), SERVICE)
    assert whats(first) == [What.REPORTED]
    assert first.ledger.event("E1").status is EventStatus.STARTED

    failed = Outcome(B, Result.FAILED, NOON + MINUTE, "no such disk")
    last = starting.report(first.ledger, DUE.id, failed, SERVICE)

    ended = last.ledger.event("E1")
    assert (ended.status, ended.ended_at) == (EventStatus.COMPLETED, NOON + MINUTE)
    assert [(e.what, e.note) for e in last.entries] == [(What.COMPLETED, "b: failed, no such disk")]


@pytest.mark.parametrize(
    ("event_type", "presence"),
    [(EventType.PREEMPT, Presence.DEALLOCATED), (EventType.TERMINATE, Presence.DELETED)],
)
def test_a_machine_that_is_gone_leaves_what_is_scheduled(
    event_type: EventType, presence: Presence
) -> None:
    going = replace(STARTED, type=event_type, machines=(A,))
    shared = replace(SOON, id=EventId("E2"), machines=(A, B))
    alone = replace(SOON, id=EventId("E3"), machines=(A,))
    elsewhere = replace(SOON, id=EventId("E4"), machines=(C,))
    ledger = ledger_of(going, shared, alone, elsewhere)

    gone = starting.report(ledger, DUE.id, Outcome(A, Result.DONE, NOON), SERVICE)

    assert whats(gone) == [What.COMPLETED, What.ROSTER, What.NARROWED, What.CANCELED]
    assert [m.presence for m in gone.ledger.scope.machines] == [
        presence,
        Presence.RUNNING,
        Presence.RUNNING,
    ]
    assert gone.ledger.event("E2").machines == (B,)
    assert gone.ledger.event("E3").status is EventStatus.CANCELED
    assert gone.ledger.event("E4") == elsewhere


@pytest.mark.parametrize("event_type", [EventType.PREEMPT, EventType.TERMINATE])
def test_a_machine_that_could_not_be_removed_is_still_there(event_type: EventType) -> None:
    ledger = ledger_of(replace(STARTED, type=event_type, machines=(A,)))

    failed = starting.report(ledger, DUE.id, Outcome(A, Result.FAILED, NOON), SERVICE)

    assert failed.ledger.scope == WEB


def test_a_started_event_keeps_the_machine_that_left() -> None:
    ledger = ledger_of(STARTED)

    assert starting.leave_scheduled(ledger, A, NOON) == Decision(ledger)


def test_an_order_that_takes_too_long_raises_an_alarm_and_goes_on() -> None:
    alarmed = starting.time_out(ledger_of(STARTED), DUE.id, A, NOON)

    assert whats(alarmed) == [What.TIMED_OUT]
    assert "forewarn resolve E1" in alarmed.entries[0].note
    assert alarmed.ledger.event("E1").unfinished == (A, B)
    reported = starting.report(alarmed.ledger, DUE.id, Outcome(A, Result.DONE, NOON), SERVICE)
    assert reported.ledger.event("E1").unfinished == (B,)


@pytest.mark.parametrize("result", [Result.DONE, Result.FAILED])
def test_an_operator_ends_what_will_not_end_by_itself(result: Result) -> None:
    alarmed = starting.time_out(ledger_of(STARTED), DUE.id, A, NOON).ledger

    resolved = starting.resolve(alarmed, "e1", result, OPS, NOON + MINUTE)

    ended = resolved.ledger.event("E1")
    assert ended.status is EventStatus.COMPLETED
    assert {outcome.result for outcome in ended.outcomes} == {result}
    assert whats(resolved) == [What.RESOLVED, What.REPORTED, What.COMPLETED]
    assert {entry.actor for entry in resolved.entries} == {OPS}


@pytest.mark.parametrize("event", [DUE, replace(OVER, id=DUE.id)])
def test_only_what_has_started_is_resolved(event: Event) -> None:
    with pytest.raises(IllegalTransition, match="cannot resolve"):
        starting.resolve(ledger_of(event), "E1", Result.DONE, OPS, NOON)
