"""The agent keeps its promises in thousands of stories: whatever hooks do, whatever events do, wherever it dies."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

import coverage
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forewarn.agent.hooks import Phase
from forewarn.agent.rules import Approve, Condition, OnFailure, Rule, WithoutHooks
from forewarn.testing.agent_plans import (
    MACHINES,
    NAME,
    Act,
    Announce,
    ApproveElsewhere,
    Break,
    Cancel,
    Die,
    Gather,
    HookPlan,
    Jam,
    Pass,
    Plan,
    Postpone,
    Spoil,
)
from forewarn.testing.agent_stories import TYPES, tell
from forewarn.testing.plain_azure import Knowing
from forewarn.testing.simulated_runs import Manner, Obedience
from forewarn.web.faults import FaultKind

# In all; more by the environment, as in FOREWARN_AGENT_STORIES=20000.
STORIES: Final = int(os.environ.get("FOREWARN_AGENT_STORIES", "1200"))
PLAIN_SHARE: Final = 3

POLICIES: Final = {
    "never": Rule(approve=Approve.NEVER),
    "always": Rule(approve=Approve.ALWAYS),
    "after hooks, hold": Rule(),
    "after hooks, approve": Rule(on_failure=OnFailure.APPROVE),
    "after hooks, alert": Rule(on_failure=OnFailure.ALERT),
    "hold without hooks": Rule(without_hooks=WithoutHooks.HOLD),
    "leader": Rule(only=(Condition.LEADER,)),
    "peers ready": Rule(only=(Condition.PEERS_READY,)),
    "not last": Rule(only=(Condition.NOT_LAST,), on_failure=OnFailure.APPROVE),
    "all conditions": Rule(approve=Approve.ALWAYS, only=tuple(Condition)),
    "no hooks at all": Rule(run_hooks=False),
}


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


@st.composite
def manners(draw: st.DrawFn) -> Manner:
    takes = draw(st.sampled_from([0, 0, 3, 20, 45, 100_000]))
    code = draw(st.sampled_from([0, 0, 0, 70, 70, 1]))
    return Manner(code, seconds(takes), draw(st.sampled_from(Obedience)))


hook_plans = st.builds(
    HookPlan, manners(), st.sampled_from([None, None, seconds(2), seconds(30), seconds(600)])
)
lengths = st.sampled_from([seconds(one) for one in (0, 1, 4, 9, 28, 31, 61, 299, 301, 898, 905)])
downs = st.sampled_from([seconds(one) for one in (0, 0, 2, 10, 40, 900)])
whom = st.sampled_from(
    [(NAME,), (NAME,), (NAME,), MACHINES, MACHINES[:2], MACHINES[1:], ("web_0",), ("web_2",)]
)
numbers = st.integers(0, 3)
faults = st.sampled_from(
    [
        FaultKind.THROTTLED,
        FaultKind.GONE,
        FaultKind.BROKEN,
        FaultKind.AWAY,
        FaultKind.EMPTY,
        FaultKind.RESET,
        FaultKind.TRUNCATED,
        FaultKind.SLOW,
        FaultKind.SLOW_FIRST,
        FaultKind.INCARNATION_RESTART,
    ]
)


def acts(type_: str, *, is_rude: bool) -> st.SearchStrategy[Act]:
    """What may happen; mostly around events of one type."""
    types = st.sampled_from([type_, type_, *TYPES])
    rudeness: list[st.SearchStrategy[Act]] = [st.builds(Spoil, faults, st.integers(1, 3))]
    return st.one_of(
        st.builds(Pass, lengths),
        st.builds(Pass, lengths),
        st.builds(Announce, types, whom),
        st.builds(Die, st.integers(0, 12), downs, st.booleans()),
        st.builds(Die, st.integers(0, 12), downs, st.booleans()),
        st.builds(Cancel, numbers),
        st.builds(Postpone, numbers, st.sampled_from([seconds(20), seconds(600)])),
        st.builds(ApproveElsewhere, numbers),
        st.builds(Gather, st.booleans(), st.booleans()),
        st.builds(Break),
        st.builds(Jam, st.integers(1, 4)),
        *(rudeness * 3 if is_rude else []),
    )


@st.composite
def plans(draw: st.DrawFn, type_: str, rule: Rule, *, is_rude: bool = False) -> Plan:
    hooks = {
        phase: tuple(draw(st.lists(hook_plans, max_size=most)))
        for phase, most in ((Phase.PREPARE, 3), (Phase.STARTED, 2), (Phase.UNDO, 2))
    }
    told = draw(st.lists(acts(type_, is_rude=is_rude), max_size=14))
    return Plan(
        acts=(Announce(type_, draw(whom)), *told),
        rule=rule,
        hooks=hooks,
        undo_waits=draw(st.sampled_from([True, True, False])),
        impact=draw(st.sampled_from([None, seconds(5), seconds(30)])),
    )


@contextmanager
def a_directory() -> Iterator[Path]:
    """One that costs nothing to sync, where there is such."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


@pytest.fixture(autouse=True)
def unmeasured() -> Iterator[None]:
    """To measure coverage takes three times as long, and thousands of stories cover nothing new."""
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.stop()
    yield
    if measuring is not None:
        measuring.start()


def told(stories: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    suppressed = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=stories, suppress_health_check=suppressed)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("type_", TYPES)
def test_the_promises_hold_whatever_happens(type_: str, policy: str) -> None:
    """Keeps S22: hooks run as promised, undo exactly once, approval only when promised."""

    @told(1 + STORIES // (len(POLICIES) * len(TYPES)))
    @given(plan=plans(type_, POLICIES[policy]))
    def stories(plan: Plan) -> None:
        with a_directory() as directory:
            tell(plan, directory)

    stories()
