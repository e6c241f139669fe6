"""Update domains kept apart in time: guests shall not drain for nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given

from forewarn.core import periods, spacing, starting
from forewarn.core.events import Event, EventSource, EventStatus, EventType
from forewarn.core.ledgers import Ledger
from forewarn.core.names import EventId, MachineName
from forewarn.core.periods import Periods
from forewarn.core.scopes import Scope
from forewarn.testing import strategies
from forewarn.testing.strategies import EPOCH as NOON

RULES = Periods(recovery=timedelta(minutes=30))
MINUTE = timedelta(minutes=1)
# A Reboot is expected to take a minute.
NEW = Event(
    id=EventId("NEW"),
    type=EventType.REBOOT,
    source=EventSource.PLATFORM,
    machines=(MachineName("web-0"),),
    update_domain=0,
    announced_by="ops",
    announced_at=NOON,
    notice=15 * MINUTE,
    not_before=NOON + 15 * MINUTE,
)
OTHER = replace(NEW, id=EventId("OTHER"), machines=(MachineName("web-1"),), update_domain=1)


def spaced(*others: Event, recovery: timedelta | None = None) -> timedelta:
    ledger = Ledger(scope=Scope(name="web", recovery=recovery), events=others)
    return spacing.not_before(ledger, NEW, RULES) - NOON


def started(at: datetime) -> Event:
    return replace(OTHER, status=EventStatus.STARTED, started_at=at)


def completed(at: datetime) -> Event:
    ended = replace(OTHER, status=EventStatus.COMPLETED, started_at=at, ended_at=at + MINUTE)
    return replace(ended, outcomes=())


@pytest.mark.parametrize(
    ("other", "minutes"),
    [
        # Another update domain's comes first, then a minute of impact, then the recovery.
        (replace(OTHER, not_before=NOON + 10 * MINUTE), 41),
        (replace(OTHER, not_before=NOON + 15 * MINUTE), 46),
        # A minute more, and the new one with its recovery fits before.
        (replace(OTHER, not_before=NOON + 45 * MINUTE), 76),
        (replace(OTHER, not_before=NOON + 46 * MINUTE), 15),
        (started(NOON), 31),
        # It takes longer than expected: it will end now at the earliest.
        (started(NOON - 20 * MINUTE), 30),
        (completed(NOON - 10 * MINUTE), 21),
        (completed(NOON - 60 * MINUTE), 15),
        # What is not in the way.
        (replace(OTHER, update_domain=0), 15),
        (replace(OTHER, source=EventSource.USER), 15),
        (replace(OTHER, type=EventType.PREEMPT), 15),
        (replace(OTHER, status=EventStatus.CANCELED, ended_at=NOON), 15),
    ],
)
def test_maintenance_waits_for_that_of_other_update_domains(other: Event, minutes: int) -> None:
    """keeps S20."""
    assert spaced(other) == minutes * MINUTE


def test_what_is_announced_days_ahead_leaves_room_before_it() -> None:
    """keeps S12: a predicted failure in a week does not stop all maintenance until then."""
    assert spaced(replace(OTHER, not_before=NOON + timedelta(days=7))) == 15 * MINUTE


def test_the_first_gap_that_is_long_enough_is_taken() -> None:
    others = [
        replace(OTHER, id=EventId(f"O{at}"), not_before=NOON + at * MINUTE)
        for at in (200, 20, 70, 140)
    ]

    # After 20 there is time until 70, but not enough; between 70 and 140 there is.
    assert spaced(*others) == 101 * MINUTE


def test_a_scope_may_have_a_recovery_of_its_own() -> None:
    assert spaced(OTHER, recovery=timedelta()) == 16 * MINUTE


def test_only_platform_maintenance_keeps_apart() -> None:
    ledger = Ledger(scope=Scope(name="web"), events=(OTHER,))
    user = replace(NEW, source=EventSource.USER)

    assert spacing.not_before(ledger, user, RULES) == user.not_before


@given(strategies.ledgers(), strategies.events())
def test_a_spaced_event_is_never_earlier_and_clashes_with_nothing(
    ledger: Ledger, event: Event
) -> None:
    recovery = starting.recovery(ledger.scope, RULES)
    begins = spacing.not_before(ledger, event, RULES)
    ends = begins + periods.expected_duration(event)

    assert begins >= event.not_before
    for other in ledger.events:
        apart = starting.is_maintenance(event) and starting.is_maintenance(other)
        if (
            apart
            and other.status is EventStatus.SCHEDULED
            and other.update_domain != event.update_domain
        ):
            other_ends = other.not_before + periods.expected_duration(other)
            assert ends + recovery <= other.not_before or other_ends + recovery <= begins
