"""Cursors of numbered commits: read back what was given out, and nothing else."""

from __future__ import annotations

import pytest

from forewarn.errors import Malformed, Pruned
from forewarn.ports.store import Cursor
from forewarn.stores.cursors import BEGINNING, cursor_at, position_of, resume


@pytest.mark.parametrize("position", [0, 1, 9, 10, 10**17])
def test_a_cursor_is_read_back_as_its_position(position: int) -> None:
    assert position_of(cursor_at(position)) == position


def test_the_beginning_is_position_0() -> None:
    assert cursor_at(0) == BEGINNING == ""


@pytest.mark.parametrize("text", ["-1", "x", " 1", "1 ", "1.0", "٣", "²", "9" * 19, "9" * 5000])
def test_what_is_not_a_cursor_is_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        position_of(Cursor(text))


@pytest.mark.parametrize(("text", "position"), [("", 0), ("4", 4), ("5", 5), ("9", 9)])
def test_a_feed_resumes_where_nothing_would_be_missed(text: str, position: int) -> None:
    assert resume(Cursor(text), oldest=5, newest=9) == position


@pytest.mark.parametrize("text", ["1", "3", "10", "999999999999999999"])
def test_a_feed_does_not_resume_over_a_gap_or_from_another_history(text: str) -> None:
    with pytest.raises(Pruned):
        resume(Cursor(text), oldest=5, newest=9)
