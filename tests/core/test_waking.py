"""When to look at a ledger again: never too late."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core import ledgers, publishing, starting, waking
from forewarn.core.events import (
    Approval,
    Audience,
    Event,
    EventSource,
    EventStatus,
    EventType,
    Outcome,
    Result,
)
from forewarn.core.journal import What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import EventId, MachineName
from forewarn.core.periods import Periods
from forewarn.core.scopes import Scope
from forewarn.testing import strategies
from forewarn.testing.strategies import EPOCH as NOON

RULES = Periods(recovery=timedelta(minutes=30))
MINUTE = timedelta(minutes=1)
A, B = MachineName("a"), MachineName("b")

SOON = Event(
    id=EventId("E1"),
    type=EventType.REBOOT,
    source=EventSource.PLATFORM,
    machines=(A, B),
    update_domain=0,
    announced_by="ops",
    announced_at=NOON - 10 * MINUTE,
    notice=15 * MINUTE,
    not_before=NOON + 5 * MINUTE,
    readable_at=NOON - 10 * MINUTE,
)
STARTED = replace(SOON, status=EventStatus.STARTED, started_at=NOON)
OVER = replace(
    STARTED,
    id=EventId("E2"),
    machines=(A,),
    update_domain=1,
    status=EventStatus.COMPLETED,
    outcomes=(Outcome(A, Result.DONE, NOON),),
    ended_at=NOON,
)
APPROVAL = Approval("a", "guest", "", NOON)


def ledger_of(*events: Event) -> Ledger:
    return Ledger(scope=Scope(name="web"), events=events)


def tend(ledger: Ledger, now: datetime, rules: Periods) -> Decision:
    """All that time alone brings."""
    decision = publishing.publish(ledger, now, RULES)
    decision = ledgers.then(decision, waking.start_due(decision.ledger, now, rules))
    for event, machine in waking.overdue(decision.ledger, now, rules):
        late = starting.time_out(decision.ledger, event.id, machine, now)
        decision = ledgers.then(decision, late)
    return ledgers.then(decision, waking.forget(decision.ledger, now, rules))


@given(
    strategies.ledgers(),
    strategies.instants(),
    strategies.rules(),
    strategies.instants(),
    st.data(),
)
def test_a_wake_is_never_missed(
    ledger: Ledger, now: datetime, rules: Periods, moment: datetime, data: st.DataObject
) -> None:
    """If by some instant time alone changes something, the wake is not after that instant."""
    if data.draw(st.booleans()):
        ledger = tend(ledger, now, rules).ledger
    then = now + abs(moment - now)
    wake = waking.wake(ledger, now, rules)

    assert wake is None or wake >= now
    if wake is None or then < wake:
        assert tend(ledger, then, rules) == Decision(ledger)


@given(strategies.ledgers(), strategies.instants(), strategies.rules())
def test_looking_twice_at_one_instant_changes_nothing_more(
    ledger: Ledger, now: datetime, rules: Periods
) -> None:
    tended = tend(ledger, now, rules).ledger

    assert tend(tended, now, rules) == Decision(tended)


@given(strategies.ledgers(), strategies.instants(), strategies.rules())
def test_a_wake_is_not_for_nothing(ledger: Ledger, now: datetime, rules: Periods) -> None:
    """Once all is done that could be, a scope without started events can sleep."""
    tended = tend(ledger, now, rules).ledger
    wake = waking.wake(tended, now, rules)

    if all(event.status is not EventStatus.STARTED for event in tended.events):
        assert wake is None or wake > now


@pytest.mark.parametrize(
    ("events", "wake"),
    [
        ((), None),
        # Nobody has written down that it is readable.
        ((replace(SOON, readable_at=None),), NOON),
        ((SOON,), NOON + 5 * MINUTE),
        ((replace(SOON, approval=APPROVAL),), NOON),
        ((replace(SOON, not_before=NOON),), NOON),
        ((replace(SOON, audience=Audience.OPERATORS, readable_at=None),), NOON),
        ((STARTED,), NOON),
        # Remembered for a day after its end.
        ((OVER,), NOON + timedelta(hours=24)),
        ((replace(OVER, ended_at=NOON - timedelta(days=2)),), NOON),
        ((OVER, SOON), NOON + 5 * MINUTE),
    ],
)
def test_the_next_wake(events: tuple[Event, ...], wake: datetime | None) -> None:
    assert waking.wake(ledger_of(*events), NOON, RULES) == wake


def test_a_held_event_is_looked_at_when_the_scope_has_recovered() -> None:
    due = replace(SOON, approval=APPROVAL)
    held = waking.start_due(ledger_of(due, OVER), NOON, RULES).ledger

    assert waking.wake(ledger_of(due, OVER), NOON, RULES) == NOON
    assert waking.wake(held, NOON, RULES) == NOON + 30 * MINUTE


def test_an_event_held_by_another_waits_for_that_ones_end_only() -> None:
    running = replace(STARTED, id=EventId("E3"), machines=(A,))
    due = replace(SOON, approval=APPROVAL)
    held = waking.start_due(ledger_of(due, running), NOON, RULES).ledger

    # It is the started event for which one looks at once.
    assert waking.wake(held, NOON, RULES) == NOON
    (waiting, _) = held.events
    assert waiting.hold == "Reboot E3 is started on a"


def test_due_events_start_oldest_first_and_one_at_a_time_on_a_machine() -> None:
    first = replace(SOON, not_before=NOON)
    second = replace(first, id=EventId("E2"))

    decision = waking.start_due(ledger_of(first, second), NOON, RULES)

    assert [entry.what for entry in decision.entries] == [What.STARTED, What.HELD]
    assert [event.status for event in decision.ledger.events] == [
        EventStatus.STARTED,
        EventStatus.SCHEDULED,
    ]


def test_a_clock_set_forward_starts_nothing_that_is_not_approved() -> None:
    """keeps S11: the notice must really have passed."""
    due = replace(SOON, not_before=NOON)
    ledger = ledger_of(due)

    held = waking.start_due(ledger, NOON, RULES, {due.id})
    assert [entry.what for entry in held.entries] == [What.HELD]
    assert held.ledger.event("E1").hold == waking.UNSERVED
    assert waking.start_due(held.ledger, NOON, RULES, {due.id}) == Decision(held.ledger)
    early = ledger_of(SOON)
    assert waking.start_due(early, NOON, RULES, {due.id}) == Decision(early)

    approved = ledger_of(replace(due, approval=APPROVAL))
    started = waking.start_due(approved, NOON, RULES, {due.id}).ledger
    assert started.event("E1").status is EventStatus.STARTED


def test_an_order_is_overdue_at_its_limit_and_alarms_once() -> None:
    ledger = ledger_of(SOON, replace(STARTED, id=EventId("E9")), OVER)
    limit = NOON + timedelta(minutes=15)
    assert waking.overdue(ledger, limit - timedelta(microseconds=1), RULES) == ()

    late = waking.overdue(ledger, limit, RULES)

    assert [(event.id, machine) for event, machine in late] == [("E9", A), ("E9", B)]
    alarmed = starting.time_out(ledger, EventId("E9"), A, limit).ledger
    assert [machine for _, machine in waking.overdue(alarmed, limit, RULES)] == [B]


def test_an_event_is_forgotten_a_day_after_its_end() -> None:
    ledger = ledger_of(SOON, OVER)
    day = NOON + timedelta(hours=24)

    assert waking.forget(ledger, day - timedelta(microseconds=1), RULES) == Decision(ledger)
    assert waking.forget(ledger, day, RULES) == Decision(ledger_of(SOON))
