"""The true minimum: notice counts from the moment an event could be read."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given

from forewarn.core import ledgers, periods, publishing
from forewarn.core.events import Event, EventSource, EventStatus, EventType
from forewarn.core.journal import What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import EventId, MachineName
from forewarn.core.periods import Periods
from forewarn.core.scopes import Scope
from forewarn.testing import strategies
from forewarn.testing.strategies import EPOCH as NOON

RULES = Periods()
QUARTER = timedelta(minutes=15)
FREEZE = Event(
    id=EventId("E1"),
    type=EventType.FREEZE,
    source=EventSource.PLATFORM,
    machines=(MachineName("web-0"),),
    update_domain=0,
    announced_by="ops",
    announced_at=NOON,
    notice=QUARTER,
    not_before=NOON + QUARTER + timedelta(seconds=2),
)
LEDGER = Ledger(scope=Scope(name="web"), events=(FREEZE,))


@given(strategies.ledgers(), strategies.instants())
def test_not_before_is_never_less_than_the_notice_after_it_was_readable(
    ledger: Ledger, now: datetime
) -> None:
    """keeps S11."""
    published = publishing.publish(ledger, now, RULES).ledger

    assert publishing.unpublished(published) == ()
    for event in publishing.unpublished(ledger):
        after = published.event(event.id)
        assert after.readable_at == now
        if after.status is EventStatus.SCHEDULED:
            assert after.not_before >= now + after.notice
            assert after.not_before >= event.not_before
            assert after.notice >= periods.MINIMUM_NOTICE.get(
                after.type, periods.TERMINATE_NOTICE_MIN
            )


@given(strategies.ledgers(), strategies.instants())
def test_what_was_readable_is_published_once(ledger: Ledger, now: datetime) -> None:
    published = publishing.publish(ledger, now, RULES).ledger

    assert publishing.publish(published, now + QUARTER, RULES) == Decision(published)


@pytest.mark.parametrize("delay", [timedelta(), timedelta(seconds=2)])
def test_within_the_margin_nothing_moves(delay: timedelta) -> None:
    decision = publishing.publish(LEDGER, NOON + delay, RULES)

    assert [entry.what for entry in decision.entries] == [What.READABLE]
    assert decision.ledger.event("E1").not_before == FREEZE.not_before
    assert ledgers.seal(LEDGER, decision).ledger.incarnation == LEDGER.incarnation


def test_beyond_the_margin_not_before_moves_and_guests_are_told() -> None:
    """keeps S11, N6."""
    decision = publishing.publish(LEDGER, NOON + timedelta(seconds=2, microseconds=1), RULES)

    assert [entry.what for entry in decision.entries] == [What.READABLE, What.MOVED]
    moved = decision.ledger.event("E1")
    assert moved.not_before == FREEZE.not_before + timedelta(seconds=1)
    assert moved.earlier == (FREEZE.not_before,)
    assert ledgers.seal(LEDGER, decision).ledger.incarnation == LEDGER.incarnation + 1


def test_what_has_started_is_written_down_as_readable_and_does_not_move() -> None:
    started = replace(FREEZE, status=EventStatus.STARTED, started_at=NOON, not_before=NOON)
    ledger = replace(LEDGER, events=(started,))

    decision = publishing.publish(ledger, NOON + timedelta(hours=1), RULES)

    assert [entry.what for entry in decision.entries] == [What.READABLE]
    assert decision.ledger.event("E1").not_before == NOON


def test_update_domains_that_are_published_late_stay_apart() -> None:
    """Guests of the second would drain for nothing."""
    other = replace(FREEZE, id=EventId("E2"), machines=(MachineName("web-1"),), update_domain=1)
    ledger = replace(LEDGER, events=(FREEZE, other))

    published = publishing.publish(ledger, NOON + timedelta(minutes=40), RULES).ledger

    first, second = published.events
    assert first.not_before == NOON + timedelta(minutes=55)
    assert second.not_before == first.not_before + timedelta(seconds=9) + RULES.recovery
