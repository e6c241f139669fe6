"""Who was heard when, and by whom."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.clocks import SimulatedClock
from forewarn.core.ledgers import Ledger
from forewarn.core.periods import HEARD_EVERY
from forewarn.service.attendance import Attendance, Endpoints
from forewarn.testing.worlds import NOON, WEB

HOUR = timedelta(hours=1)
LEDGER = Ledger(scope=WEB)


def marked(at: datetime) -> Ledger:
    return replace(LEDGER, enabled_at=NOON, heard_at=at)


def test_a_scope_never_heard_is_silent_since_the_start() -> None:
    clock = SimulatedClock(NOON)
    attendance = Attendance(clock)

    clock.advance(HOUR)

    assert attendance.silent_for(LEDGER) == HOUR


def test_hearing_ends_the_silence() -> None:
    clock = SimulatedClock(NOON)
    attendance = Attendance(clock)
    clock.advance(HOUR)

    attendance.hear(WEB.id)
    clock.advance(timedelta(minutes=1))

    assert attendance.silent_for(LEDGER) == timedelta(minutes=1)


def test_setting_the_hands_makes_nobody_silent() -> None:
    """keeps S13."""
    clock = SimulatedClock(NOON)
    attendance = Attendance(clock)

    clock.jump(timedelta(days=300))

    assert attendance.silent_for(LEDGER) == timedelta()


def test_a_mark_from_before_the_start_is_no_news() -> None:
    clock = SimulatedClock(NOON)
    attendance = Attendance(clock)
    attendance.adopt(marked(NOON - HOUR))

    clock.advance(HOUR)

    assert attendance.silent_for(marked(NOON - HOUR)) == HOUR


def test_a_mark_made_here_is_exact() -> None:
    clock = SimulatedClock(NOON)
    attendance = Attendance(clock)
    clock.advance(HOUR)
    attendance.mark(marked(NOON), clock.now())

    clock.advance(HOUR)

    assert attendance.silent_for(marked(NOON + HOUR)) == HOUR


def test_a_mark_that_could_not_be_committed_is_no_news() -> None:
    clock = SimulatedClock(NOON)
    attendance = Attendance(clock)
    clock.advance(HOUR)
    attendance.mark(marked(NOON), clock.now())

    clock.advance(HOUR)

    assert attendance.silent_for(marked(NOON)) == HOUR


def test_a_mark_made_elsewhere_may_be_older_than_the_last_request() -> None:
    clock = SimulatedClock(NOON)
    attendance = Attendance(clock)
    clock.advance(30 * HOUR)

    assert attendance.silent_for(marked(clock.now())) == timedelta()

    clock.advance(HEARD_EVERY)
    assert attendance.silent_for(marked(NOON + 30 * HOUR)) == timedelta()
    clock.advance(HOUR)
    assert attendance.silent_for(marked(NOON + 30 * HOUR)) == HOUR


def test_where_several_listen_others_may_hear_for_an_hour_after_ones_own_mark() -> None:
    """keeps S13: a mark can only lengthen the day, whoever made it."""
    clock = SimulatedClock(NOON)
    attendance = Attendance(clock, Endpoints.SEVERAL)
    attendance.mark(LEDGER, NOON)
    attendance.see(marked(NOON))

    clock.advance(HEARD_EVERY)
    assert attendance.silent_for(marked(NOON)) == timedelta()

    clock.advance(HOUR)
    assert attendance.silent_for(marked(NOON)) == HOUR


def test_where_several_listen_others_may_hear_for_an_hour_after_a_start() -> None:
    """keeps S13."""
    clock = SimulatedClock(NOON)
    attendance = Attendance(clock, Endpoints.SEVERAL)
    attendance.adopt(marked(NOON - HOUR))

    clock.advance(HEARD_EVERY)

    assert attendance.silent_for(marked(NOON - HOUR)) == timedelta()


def test_a_mark_made_elsewhere_is_not_shortened_by_a_request_here() -> None:
    """keeps S13."""
    clock = SimulatedClock(NOON)
    attendance = Attendance(clock)
    attendance.see(marked(NOON))
    clock.advance(HOUR / 2)

    attendance.hear(WEB.id)

    clock.advance(HOUR)
    assert attendance.silent_for(marked(NOON)) == HOUR / 2


def test_a_mark_ages_whatever_the_hands_say() -> None:
    clock = SimulatedClock(NOON)
    attendance = Attendance(clock)
    attendance.see(marked(NOON))

    clock.advance(HOUR / 2)
    clock.jump(-HOUR / 2)

    assert attendance.mark_age(marked(NOON)) == HOUR / 2


def test_a_mark_is_as_old_as_the_hands_said_when_it_was_first_seen() -> None:
    """keeps S13: whoever starts, and then sees the hands set back, does not take it for fresh."""
    clock = SimulatedClock(NOON)
    attendance = Attendance(clock)
    attendance.adopt(marked(NOON - 20 * HOUR))

    clock.jump(-20 * HOUR)

    assert attendance.mark_age(marked(NOON - 20 * HOUR)) == 20 * HOUR


def test_a_mark_never_seen_may_be_of_any_age() -> None:
    attendance = Attendance(SimulatedClock(NOON))

    assert attendance.mark_age(marked(NOON)) == HEARD_EVERY
