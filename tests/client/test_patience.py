"""How long a client waits, and for what."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.client.patience import Pace, answer_patience, retry_delay

PACE = Pace()
MANY = st.integers(1, 10**9)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def test_a_server_is_left_alone_longer_each_time_but_never_for_long() -> None:
    delays = [retry_delay(PACE, failures) for failures in range(1, 8)]

    assert delays == [seconds(s) for s in (0.5, 1, 2, 4, 5, 5, 5)]


@pytest.mark.parametrize(
    ("said", "delay"),
    [
        ("3", 3),
        (" 20 ", 20),
        ("0", 0.5),
        ("999999999", 60),
        ("-1", 0.5),
        ("", 0.5),
        ("Wed, 21 Oct 2030 07:28:00 GMT", 0.5),
        ("\u0663", 0.5),
    ],
)
def test_a_server_may_ask_to_be_left_alone(said: str, delay: float) -> None:
    assert retry_delay(PACE, 1, said) == seconds(delay)


def test_the_first_answer_may_take_two_minutes() -> None:
    assert answer_patience(PACE, 0, has_read=False) > timedelta(minutes=2)


def test_patience_grows_with_each_answer_that_did_not_come() -> None:
    found = [answer_patience(PACE, timeouts, has_read=True) for timeouts in range(6)]

    assert found == [seconds(s) for s in (10, 20, 40, 80, 130, 130)]


@given(MANY)
def test_however_often_it_failed_there_is_a_next_time(failures: int) -> None:
    assert retry_delay(PACE, failures) <= PACE.retry_max
    assert answer_patience(PACE, failures, has_read=True) <= PACE.first_answer
