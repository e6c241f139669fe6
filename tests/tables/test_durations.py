"""Durations as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.errors import Malformed
from forewarn.tables.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("5m", timedelta(minutes=5)),
        ("90s", timedelta(seconds=90)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("2d", timedelta(days=2)),
        ("1d2h3m4s", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("0s", timedelta()),
        ("0.5s", timedelta(milliseconds=500)),
        (" 5m ", timedelta(minutes=5)),
        ("3650d", timedelta(days=3650)),
        ("PT5M", timedelta(minutes=5)),
        ("PT1H30M", timedelta(hours=1, minutes=30)),
        ("P2D", timedelta(days=2)),
        ("P1DT12H", timedelta(days=1, hours=12)),
        ("PT9.5S", timedelta(seconds=9.5)),
    ],
)
def test_a_duration_is_read_as_people_write_it(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "m",
        "5 m",
        "5min",
        "30m1h",
        "-5m",
        "+5m",
        "1e3s",
        "5M",
        "\u0665m",
        "1.5h",
        "5m\n5m",
        "P",
        "PT",
        "P5M",
        "P1DT",
        "pt5m",
        "PT5m",
        "P1W",
        "PT1H30",
    ],
)
def test_anything_else_is_refused_with_the_forms_that_are_not(text: str) -> None:
    with pytest.raises(Malformed, match=r'is not a duration: write it like "90s", "5m"'):
        parse_duration(text)


@pytest.mark.parametrize("text", ["3650d1s", "999999999999d", "P999999999999DT999999999999H"])
def test_a_duration_beyond_all_plans_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match="is too long: give at most 3650d"):
        parse_duration(text)


@given(st.text())
def test_whatever_is_written_is_a_duration_or_malformed(text: str) -> None:
    try:
        duration = parse_duration(text)
    except Malformed:
        return
    assert timedelta() <= duration <= timedelta(days=3650)
