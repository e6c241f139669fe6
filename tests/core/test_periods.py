"""How long things take and must wait."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given

from forewarn.core import periods
from forewarn.core.events import Event, EventType
from forewarn.core.periods import MINIMUM_NOTICE, Periods
from forewarn.testing import strategies

NINE_SECONDS = timedelta(seconds=9)


def test_minimum_notice_is_as_promised() -> None:
    """keeps S11."""
    assert {
        EventType.FREEZE: timedelta(minutes=15),
        EventType.REBOOT: timedelta(minutes=15),
        EventType.REDEPLOY: timedelta(minutes=10),
        EventType.PREEMPT: timedelta(seconds=30),
    } == MINIMUM_NOTICE
    assert timedelta(minutes=5) == periods.TERMINATE_NOTICE_MIN
    assert timedelta(minutes=15) == periods.TERMINATE_NOTICE_MAX


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(), "0s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(seconds=-0.5), "-0.5s"),
        (timedelta(minutes=15), "15m"),
        (timedelta(hours=24), "24h"),
        (timedelta(hours=49), "2d1h"),
        (timedelta(days=366), "366d"),
    ],
)
def test_a_length_of_time_is_spelled_as_a_fleet_file_has_it(length: timedelta, text: str) -> None:
    assert periods.spell(length) == text


@given(strategies.instants())
def test_a_whole_second_is_the_next_one_and_never_an_earlier_one(instant: datetime) -> None:
    """keeps S11: the wire has no fractions, and rounding must not shorten a notice."""
    whole = periods.whole_second(instant)

    assert whole.microsecond == 0
    assert timedelta() <= whole - instant < timedelta(seconds=1)
    assert periods.whole_second(whole) == whole


@given(strategies.events())
def test_every_impact_has_an_expected_duration_and_a_longer_limit(event: Event) -> None:
    expected = periods.expected_duration(event)

    assert timedelta() < expected < Periods().limit(event)
    assert event.duration is None or event.duration == expected


@given(strategies.events())
def test_a_longer_impact_may_take_longer(event: Event) -> None:
    rules = Periods()
    usual = rules.limit(replace(event, duration=None))

    assert rules.limit(replace(event, duration=NINE_SECONDS)) == usual + NINE_SECONDS


@pytest.mark.parametrize("name", ["margin", "recovery", "postpone_max"])
def test_no_period_is_negative(name: str) -> None:
    assert name in {field.name for field in fields(Periods)}
    with pytest.raises(AssertionError, match="negative"):
        Periods(**{name: -timedelta(seconds=1)})


def test_an_ended_event_is_remembered_for_a_day_at_least() -> None:
    with pytest.raises(AssertionError, match="a day"):
        Periods(remember=timedelta(hours=23))
