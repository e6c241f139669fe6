"""A ledger from a backup: no number is shown twice, nothing happens twice or without notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core import events, ledgers, restoring
from forewarn.core.documents import INCARNATION_MAX
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
from forewarn.core.journal import Actor, Role, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import EventId, Incarnation, MachineName
from forewarn.core.periods import Periods
from forewarn.core.restoring import Overdue
from forewarn.core.scopes import Machine, Presence, Scope
from forewarn.errors import Refused
from forewarn.testing import strategies
from forewarn.testing.strategies import EPOCH as NOON

RULES = Periods()
MINUTE = timedelta(minutes=1)
OPS = Actor(Role.OPERATOR, "ops")
A, B = MachineName("a"), MachineName("b")
WEB = Scope(name="web", machines=(Machine(name=A), Machine(name=B, update_domain=1)))
LATE = Event(
    id=EventId("E1"),
    type=EventType.REBOOT,
    source=EventSource.PLATFORM,
    machines=(A,),
    update_domain=0,
    announced_by="somebody",
    announced_at=NOON - 60 * MINUTE,
    notice=20 * MINUTE,
    not_before=NOON - 40 * MINUTE,
    earlier=(NOON - 50 * MINUTE,),
    readable_at=NOON - 60 * MINUTE,
    hold="something",
)
AHEAD = replace(LATE, not_before=NOON + MINUTE, earlier=(), hold="")
APPROVAL = Approval("a", "guest", "", NOON)


def new_ids() -> Callable[[], EventId]:
    numbers = count(1)
    return lambda: EventId(f"NEW-{next(numbers)}")


def restore(ledger: Ledger, overdue: Overdue = Overdue.REANNOUNCE, leap: int = 1000) -> Decision:
    return restoring.restore(
        ledger, leap=leap, overdue=overdue, new_id=new_ids(), now=NOON, rules=RULES, actor=OPS
    )


def whats(decision: Decision) -> list[What]:
    return [entry.what for entry in decision.entries]


@given(st.timedeltas(timedelta(days=-1), timedelta(days=365 * 6)))
def test_incarnations_leap_over_all_that_guests_can_have_seen(age: timedelta) -> None:
    leap = restoring.jump(age)

    assert leap >= 1_000_000
    assert leap > 10 * int(age.total_seconds())
    assert leap < INCARNATION_MAX


@given(strategies.ledgers(), st.integers(1, 10**9), st.sampled_from(Overdue))
def test_whatever_is_restored_is_safe_to_serve(ledger: Ledger, leap: int, overdue: Overdue) -> None:
    restored = ledgers.seal(ledger, restore(ledger, overdue, leap)).ledger

    assert restored.incarnation == ledger.incarnation + leap
    assert restored.scope == ledger.scope
    for event in restored.open_events:
        assert event.status is EventStatus.SCHEDULED
        assert event.not_before > NOON
        assert not events.is_due(event, NOON)
        if ledger.find(event.id) is None:
            assert event.not_before >= NOON + event.notice + RULES.margin
            assert event.readable_at is None
            assert event.approval is None
    for event in ledger.events:
        known = restored.event(event.id)
        assert known == event or not known.is_open


def test_an_impact_that_may_have_happened_is_not_repeated() -> None:
    started = replace(
        LATE,
        machines=(A, B),
        status=EventStatus.STARTED,
        started_at=NOON,
        outcomes=(Outcome(A, Result.DONE, NOON),),
    )

    decision = restore(Ledger(scope=WEB, events=(started,)))

    ended = decision.ledger.event("E1")
    assert ended.status is EventStatus.COMPLETED
    assert [outcome.result for outcome in ended.outcomes] == [Result.DONE, Result.LOST]
    assert whats(decision) == [What.RESTORED, What.COMPLETED]


@pytest.mark.parametrize(
    "event", [LATE, replace(AHEAD, not_before=NOON), replace(AHEAD, approval=APPROVAL)]
)
def test_what_would_have_started_is_announced_anew_with_full_notice(event: Event) -> None:
    """keeps S11."""
    decision = restore(Ledger(scope=WEB, events=(event,)))

    assert whats(decision) == [What.RESTORED, What.CANCELED, What.ANNOUNCED]
    assert decision.ledger.event("E1").status is EventStatus.CANCELED
    assert decision.ledger.event("NEW-1") == replace(
        LATE,
        id=EventId("NEW-1"),
        announced_by="ops",
        announced_at=NOON,
        not_before=NOON + 20 * MINUTE + timedelta(seconds=2),
        earlier=(),
        readable_at=None,
        hold="",
    )


def test_update_domains_announced_anew_are_kept_apart() -> None:
    other = replace(LATE, id=EventId("E2"), machines=(B,), update_domain=1)

    restored = restore(Ledger(scope=WEB, events=(LATE, other))).ledger

    first, second = restored.open_events
    assert second.not_before == first.not_before + MINUTE + RULES.recovery


def test_or_it_is_canceled() -> None:
    decision = restore(Ledger(scope=WEB, events=(LATE,)), Overdue.CANCEL)

    assert whats(decision) == [What.RESTORED, What.CANCELED]
    assert decision.ledger.open_events == ()


@pytest.mark.parametrize("overdue", Overdue)
def test_what_is_still_ahead_keeps_its_time_and_gets_a_new_id(overdue: Overdue) -> None:
    """Keeps S8: the old id may have come to an end since, and never comes back."""
    ahead = replace(AHEAD, not_before=NOON + 60 * MINUTE)

    decision = restore(Ledger(scope=WEB, events=(ahead,)), overdue)

    assert whats(decision) == [What.RESTORED, What.CANCELED, What.ANNOUNCED]
    assert decision.ledger.event("E1").status is EventStatus.CANCELED
    assert decision.ledger.event("NEW-1").not_before == ahead.not_before


@pytest.mark.parametrize(
    ("event", "presence"),
    [
        (LATE, Presence.DELETED),
        (replace(LATE, audience=Audience.OPERATORS, readable_at=None), Presence.RUNNING),
    ],
)
def test_nothing_is_announced_anew_to_nobody(event: Event, presence: Presence) -> None:
    scope = replace(WEB, machines=(Machine(name=A, presence=presence),))

    decision = restore(Ledger(scope=scope, events=(event,)))

    assert whats(decision) == [What.RESTORED, What.CANCELED]


def test_only_machines_that_are_there_are_announced_to() -> None:
    decision = restore(
        Ledger(
            scope=replace(WEB, machines=(Machine(name=B),)),
            events=(replace(LATE, machines=(A, B)),),
        )
    )

    assert decision.ledger.event("NEW-1").machines == (B,)


def test_when_the_numbers_are_used_up_a_restore_is_refused() -> None:
    last = Ledger(scope=WEB, incarnation=Incarnation(INCARNATION_MAX - 10))

    assert restore(last, leap=10).ledger.incarnation == INCARNATION_MAX
    with pytest.raises(Refused, match="too old"):
        restore(last, leap=11)
