"""The clocks: what they show and what has passed agree."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from forewarn.clocks import PacedClock, SimulatedClock, SystemClock
from forewarn.ports.clock import Clock

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "clock",
    [SystemClock(), SimulatedClock(NOON), PacedClock(NOON, 0), PacedClock(NOON, 60)],
    ids=["system", "simulated", "standing", "fast"],
)
def test_every_clock_tells_utc_and_never_goes_back(clock: Clock) -> None:
    before, then = clock.elapsed(), clock.now()

    assert then.utcoffset() == timedelta()
    assert clock.elapsed() >= before
    assert clock.now() >= then


def test_a_standing_clock_moves_only_when_it_is_told() -> None:
    real = iter(range(100))
    clock = PacedClock(NOON, 0, lambda: float(next(real)))

    assert clock.now() == NOON
    clock.advance(timedelta(minutes=15))
    assert clock.now() == NOON + timedelta(minutes=15)
    assert clock.elapsed() == timedelta(minutes=15)


def test_a_fast_clock_makes_an_hour_of_a_minute() -> None:
    real = [100.0]
    clock = PacedClock(NOON, 60, lambda: real[0])

    real[0] += 60

    assert clock.now() == NOON + timedelta(hours=1)
    assert clock.elapsed() == timedelta(hours=1)


def test_a_clock_that_goes_by_itself_can_be_advanced_too() -> None:
    real = [100.0]
    clock = PacedClock(NOON, 2, lambda: real[0])

    clock.advance(timedelta(minutes=1))
    real[0] += 5

    assert clock.now() == NOON + timedelta(minutes=1, seconds=10)
    assert clock.now() - NOON == clock.elapsed()


def test_an_instant_that_has_passed_is_not_gone_back_to() -> None:
    clock = PacedClock(NOON, 0)
    clock.advance_to(NOON + timedelta(minutes=5))

    clock.advance_to(NOON)

    assert clock.now() == NOON + timedelta(minutes=5)
