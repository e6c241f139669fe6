"""Instants and lengths of time, from and for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from forewarn.cli.phrases import (
    away,
    parse_instant,
    seconds,
    span,
    spell,
    when,
    when_from,
    when_short,
)
from forewarn.errors import Malformed

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        (timedelta(), "0s"),
        (timedelta(milliseconds=250), "0.25s"),
        (timedelta(seconds=59.9), "59s"),
        (timedelta(minutes=14, seconds=58), "14m 58s"),
        (timedelta(hours=1), "1h"),
        (timedelta(hours=1, seconds=5), "1h"),
        (timedelta(days=7), "7d"),
        (timedelta(days=6, hours=23, minutes=59), "6d 23h"),
    ],
)
def test_a_length_of_time_has_its_two_largest_units(duration: timedelta, words: str) -> None:
    assert span(duration) == words


def test_a_distance_is_ahead_or_behind() -> None:
    assert away(timedelta(minutes=1)) == "in 1m"
    assert away(-timedelta(minutes=1)) == "1m ago"
    assert away(timedelta(milliseconds=3)) == "now"


def test_times_are_shown_in_utc() -> None:
    assert when("2026-11-16T13:00:00+01:00") == "2026-11-16 12:00:00Z"
    assert when(None) == ""
    assert when_from("2026-11-16T12:15:00Z", NOON) == "2026-11-16 12:15:00Z (in 15m)"
    assert when_from(None, NOON) == ""


def test_where_room_is_short_a_day_that_is_near_goes_without_saying() -> None:
    assert when_short("2026-11-16T12:15:02Z", NOON) == "12:15:02Z (in 15m)"
    assert when_short("2026-11-16T11:59:30Z", NOON) == "11:59:30Z (30s ago)"
    assert when_short("2026-11-23T12:00:02Z", NOON) == "2026-11-23 12:00Z (in 7d)"
    assert when_short(None, NOON) == ""


def test_a_day_is_its_first_moment() -> None:
    assert spell(parse_instant("2026-10-01")) == "2026-10-01T00:00:00Z"
    assert parse_instant(" 2026-11-16T13:00:00+01:00 ") == NOON


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "2026-11-16T09:00:00"])
def test_a_time_that_could_mean_several_instants_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        parse_instant(text)


def test_whole_seconds_are_whole_numbers() -> None:
    assert str(seconds(timedelta(minutes=20))) == "1200"
    assert seconds(timedelta(seconds=1.5)) == 1.5
