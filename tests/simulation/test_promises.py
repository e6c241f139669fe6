"""The promises hold in any story, and a service that breaks one is found out."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from tests.simulation.broken import (
    CarelessStore,
    EagerConductor,
    HastyConductor,
    LazyConductor,
    MuteStore,
    StuckStore,
    TwofoldFabric,
)

from forewarn.service.conductor import Conductor
from forewarn.testing.faults import StoreDoor
from forewarn.testing.stories import Story

STEPS = 50
# To find something is enough; the shortest story that shows it is for people.
HUNT = settings(
    stateful_step_count=STEPS,
    max_examples=200,
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    phases=[Phase.generate],
)


def try_stories(machine: type[Story], tried: settings, folder: Path) -> None:
    def begin() -> RuleBasedStateMachine:
        return machine(folder)

    # Any callable will do, whatever the annotation says.
    run_state_machine_as_test(cast(type[RuleBasedStateMachine], begin), settings=tried)


def test_the_promises_hold_in_any_story(tmp_path: Path) -> None:
    """keeps S7, S8, S9, S11, S13, S14, S15, S16, S17, S19, S20, S21, S23, N5, N6."""
    try_stories(Story, settings(stateful_step_count=STEPS), tmp_path)


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (HastyConductor, "S11|S17"),
        (EagerConductor, "S17: nobody approved it"),
        (LazyConductor, "S1[67]: .* (nothing happens|come to rest)"),
        (StuckStore, "S[79]"),
        (CarelessStore, "S9|S16|S23|S8|N6"),
        (MuteStore, "S23"),
    ],
)
def test_a_rule_broken_on_purpose_is_caught(broken: type, promise: str, tmp_path: Path) -> None:
    class Broken(Story):
        store_type = broken if issubclass(broken, StoreDoor) else StoreDoor
        conductor_type = broken if issubclass(broken, Conductor) else Conductor

    with pytest.raises(AssertionError, match=promise):
        try_stories(Broken, HUNT, tmp_path)


def test_an_impact_that_happens_twice_is_caught(tmp_path: Path) -> None:
    class Broken(Story):
        fabric_type = TwofoldFabric

    with pytest.raises(AssertionError, match="S10: carried out twice"):
        try_stories(Broken, HUNT, tmp_path)
