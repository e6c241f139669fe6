"""Two hundred guests at the real address: a quarter of a minute here, `make swarm` for longer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from forewarn.testing.swarm import Tally, swarm

pytestmark = [pytest.mark.end_to_end, pytest.mark.namespaces, pytest.mark.slow]


def test_no_answer_is_lost_or_anothers(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Keeps S1: 200 guests at 169.254.169.254, each told of its own event and no other."""
    tally = swarm(tmp_path, 200, 15)
    # How fast is measured, and shown at the end of the run; how fast this machine is, nobody promised.
    record_property("200 guests at 169.254.169.254", str(tally))

    assert tally.polls == 200 * 15
    assert (tally.lost, tally.wrong) == ({}, [])


def test_a_tally_says_what_became_of_all() -> None:
    tally = Tally(polls=4, seconds=[0.004, 0.002, 0.001, 0.003])

    assert tally.is_clean
    assert str(tally) == (
        "4 polls: 0 lost, 0 wrong; answers took 3.0 ms (median), 4.0 ms (p99), 4.0 ms (longest)"
    )
    tally.lost["TimeoutError"] += 1
    assert not tally.is_clean
    assert str(Tally(polls=1)) == "1 polls, none of them answered"
