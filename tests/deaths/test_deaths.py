"""A real service under load, killed without warning thirty times."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from forewarn.testing.deaths import die_often, story

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

KILLS = 30


def test_whatever_was_answered_holds_after_thirty_deaths(tmp_path: Path) -> None:
    """Keeps S8, S9, S11, S16, S17, S23, N6.

    No acknowledged approval, announcement, cancel or postponement is lost; nothing starts early;
    no incarnation is reused or goes back; nothing returns; the journal has each step once.
    """
    seed = os.urandom(4).hex()
    print("seed", seed)  # noqa: T201 - shown when it fails

    figures = die_often(tmp_path, kills=KILLS, seed=seed)

    print(figures)  # noqa: T201 - ditto
    assert not figures.breaches, story(figures)
    assert figures.kills == KILLS
    # A crowd that asks for little would prove little.
    assert min(figures.approvals, figures.announcements) > 100
    assert min(figures.in_doubt, figures.started_by_notice) > 0
