"""The state machine, exhaustively: it is small enough to try everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import product

import pytest
from hypothesis import given

from forewarn.core import events
from forewarn.core.events import (
    TRANSITIONS,
    Approval,
    Audience,
    Event,
    EventSource,
    EventStatus,
    EventType,
    Outcome,
    Result,
    Step,
)
from forewarn.core.names import EventId, MachineName
from forewarn.errors import IllegalTransition, NoticeNotServed
from forewarn.testing import strategies
from forewarn.testing.strategies import EPOCH as NOON

WEB_0, WEB_1 = MachineName("web-0"), MachineName("web-1")
BY_GUEST = Approval("web-0", "guest", "10.0.0.4", NOON)

FREEZE = Event(
    id=EventId("E1"),
    type=EventType.FREEZE,
    source=EventSource.PLATFORM,
    machines=(WEB_0, WEB_1),
    update_domain=0,
    announced_by="ops",
    announced_at=NOON - timedelta(minutes=16),
    notice=timedelta(minutes=15),
    not_before=NOON,
    readable_at=NOON - timedelta(minutes=15),
)
STARTED = replace(FREEZE, status=EventStatus.STARTED, started_at=NOON)


def over(event: Event) -> Event:
    outcomes = tuple(Outcome(machine, Result.DONE, NOON) for machine in event.machines)
    return replace(event, outcomes=outcomes)


TAKE: dict[Step, Callable[[Event], Event]] = {
    Step.APPROVE: lambda event: events.approve(event, BY_GUEST),
    Step.POSTPONE: lambda event: events.postpone(event, to=NOON + timedelta(hours=1)),
    Step.START: lambda event: events.start(event, now=NOON),
    Step.COMPLETE: lambda event: events.complete(over(event), now=NOON),
    Step.CANCEL: lambda event: events.cancel(event, now=NOON),
}


@pytest.mark.parametrize(("status", "step"), list(product(EventStatus, TAKE)))
def test_a_step_is_taken_if_and_only_if_the_table_has_it(status: EventStatus, step: Step) -> None:
    event = replace(FREEZE, status=status)

    if (status, step) in TRANSITIONS:
        assert TAKE[step](event).status is TRANSITIONS[status, step]
    else:
        with pytest.raises(IllegalTransition, match=f"is {status.value}: cannot {step.value}"):
            TAKE[step](event)


def test_the_table_has_two_ways_into_life_and_none_back() -> None:
    """keeps S8: an ended event never returns."""
    endings = (EventStatus.COMPLETED, EventStatus.CANCELED)

    assert {step for status, step in TRANSITIONS if status is None} == set(Step) - set(TAKE)
    for (status, _), becomes in TRANSITIONS.items():
        assert becomes is status or status not in endings
        assert becomes is not EventStatus.SCHEDULED or status in (None, EventStatus.SCHEDULED)


def test_a_new_event_is_as_the_table_says() -> None:
    struck = events.strike(FREEZE, now=NOON)

    assert FREEZE.status is TRANSITIONS[None, Step.ANNOUNCE]
    assert struck.status is TRANSITIONS[None, Step.STRIKE]
    assert struck.started_at == struck.not_before == NOON


def test_without_approval_an_event_starts_at_not_before_and_no_sooner() -> None:
    """keeps S17."""
    with pytest.raises(NoticeNotServed):
        events.start(FREEZE, now=NOON - timedelta(microseconds=1))

    started = events.start(FREEZE, now=NOON)

    assert started.status is EventStatus.STARTED
    assert started.started_at == NOON


def test_what_nobody_could_read_does_not_start_by_time_alone() -> None:
    """keeps S11: notice counts from the moment the event is readable."""
    unread = replace(FREEZE, readable_at=None)

    assert not events.is_due(unread, NOON + timedelta(days=1))
    with pytest.raises(NoticeNotServed):
        events.start(unread, now=NOON + timedelta(days=1))


def test_an_approved_event_need_not_wait() -> None:
    """keeps S16."""
    approved = events.approve(FREEZE, BY_GUEST)

    assert events.start(approved, now=NOON - timedelta(hours=1)).status is EventStatus.STARTED


def test_an_operation_that_nobody_is_told_of_need_not_wait() -> None:
    unannounced = replace(FREEZE, audience=Audience.OPERATORS, readable_at=None)

    assert events.is_due(unannounced, NOON - timedelta(hours=1))


@pytest.mark.parametrize("status", set(EventStatus) - {EventStatus.SCHEDULED})
def test_only_a_scheduled_event_is_due(status: EventStatus) -> None:
    assert not events.is_due(replace(FREEZE, status=status), NOON)


def test_the_first_approval_is_the_one_kept() -> None:
    approved = events.approve(FREEZE, BY_GUEST)

    again = events.approve(approved, replace(BY_GUEST, by="web-1"))

    assert again is approved
    assert again.approval == BY_GUEST


@given(strategies.events())
def test_a_late_approval_changes_nothing(event: Event) -> None:
    if event.status is not EventStatus.SCHEDULED:
        assert events.approve(event, BY_GUEST) is event


def test_every_not_before_shown_is_kept() -> None:
    """keeps N6."""
    first, second = NOON + timedelta(hours=1), NOON + timedelta(hours=2)
    held = replace(FREEZE, hold="something")

    moved = events.postpone(events.postpone(held, to=first), to=second)

    assert (*moved.earlier, moved.not_before) == (NOON, first, second)
    assert moved.first_not_before == FREEZE.first_not_before == NOON
    assert moved.hold == ""


def test_an_event_is_never_moved_to_an_earlier_time() -> None:
    with pytest.raises(AssertionError, match="later"):
        events.postpone(FREEZE, to=NOON)


def test_an_order_ends_once_and_only_once_given() -> None:
    done = events.conclude(STARTED, Outcome(WEB_0, Result.DONE, NOON))

    assert done.unfinished == (WEB_1,)
    with pytest.raises(AssertionError, match="once"):
        events.conclude(done, Outcome(WEB_0, Result.FAILED, NOON))
    with pytest.raises(AssertionError, match="Started"):
        events.conclude(FREEZE, Outcome(WEB_0, Result.DONE, NOON))


def test_an_alarm_is_not_an_ending_and_a_later_word_replaces_it() -> None:
    alarmed = events.conclude(STARTED, Outcome(WEB_0, Result.TIMED_OUT, NOON))
    assert alarmed.unfinished == (WEB_0, WEB_1)

    done = events.conclude(alarmed, Outcome(WEB_0, Result.DONE, NOON))

    assert done.unfinished == (WEB_1,)
    assert [outcome.result for outcome in done.outcomes] == [Result.DONE]


def test_an_event_ends_only_when_all_its_orders_are_over() -> None:
    with pytest.raises(AssertionError, match="orders are over"):
        events.complete(STARTED, now=NOON)

    assert events.complete(over(STARTED), now=NOON).ended_at == NOON


def test_the_notice_given_is_from_readable_to_started() -> None:
    """keeps N6."""
    assert FREEZE.notice_given is None
    assert replace(STARTED, readable_at=None).notice_given is None
    assert STARTED.notice_given == timedelta(minutes=15)
    assert replace(STARTED, readable_at=NOON + timedelta(seconds=1)).notice_given == timedelta()


def test_an_event_concerns_somebody_and_keeps_universal_time() -> None:
    with pytest.raises(AssertionError, match="nobody"):
        replace(FREEZE, machines=())
    with pytest.raises(AssertionError, match="UTC"):
        replace(FREEZE, not_before=datetime(2030, 1, 1, tzinfo=timezone(timedelta(hours=2))))


@given(strategies.events())
def test_an_event_is_open_until_it_has_ended(event: Event) -> None:
    assert event.is_open is (event.ended_at is None)
