"""The agent keeps its promises in thousands of stories: whatever hooks do, whatever events do, wherever it dies."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final
from zlib import crc32

import coverage
import pytest
from hypothesis import HealthCheck, given, note, seed, settings
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
    Mute,
    Pass,
    Plan,
    Postpone,
    Spoil,
)
from forewarn.testing.agent_stories import TYPES, tell
from forewarn.testing.agent_witnesses import Witness
from forewarn.testing.plain_azure import Knowing
from forewarn.testing.simulated_runs import Manner, Obedience
from forewarn.web.faults import FaultKind

# In all; more by the environment, as in FOREWARN_AGENT_STORIES=20000.
STORIES: Final = int(os.environ.get("FOREWARN_AGENT_STORIES", "1000"))
# Of which again as many parts before a service that knows no more than Azure's.
PLAIN_SHARE: Final = 5
STEPS_MAX: Final = 200

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
        st.builds(Mute, st.integers(1, 2)),
        *(rudeness * 3 if is_rude else []),
    )


@st.composite
def plans(draw: st.DrawFn, type_: str, rule: Rule, *, is_rude: bool = False) -> Plan:
    counts = {Phase.PREPARE: (1, 2, 1, 3, 0), Phase.STARTED: (1, 0, 2), Phase.UNDO: (1, 2, 1, 0)}
    hooks = {
        phase: tuple(draw(hook_plans) for _ in range(draw(st.sampled_from(numbers))))
        for phase, numbers in counts.items()
    }
    told = draw(st.lists(acts(type_, is_rude=is_rude), min_size=4, max_size=14))
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


def told(test: Callable[[], None], stories: int, *which: str) -> None:
    """Tell so many stories; where those are to be the same each time, others for each parameter."""
    suppressed = [HealthCheck.too_slow, HealthCheck.data_too_large]
    again = settings(max_examples=stories, suppress_health_check=suppressed)(test)
    if settings.default is not None and settings.default.derandomize:
        again = seed(crc32(" ".join(which).encode()))(again)
    again()


def listen(plan: Plan, knowing: Knowing | None = None) -> Witness:
    with a_directory() as directory:
        return tell(plan, directory, knowing)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("type_", TYPES)
def test_the_promises_hold_whatever_happens(type_: str, policy: str) -> None:
    """Keeps S22 and N7: hooks run as promised, undo exactly once, approval only when promised."""

    @given(plan=plans(type_, POLICIES[policy]))
    def story(plan: Plan) -> None:
        note(repr(plan))
        listen(plan)

    told(story, 1 + STORIES // (len(POLICIES) * len(TYPES)), type_, policy)


@pytest.mark.parametrize("knowing", Knowing, ids=lambda knowing: knowing.name)
@pytest.mark.parametrize("type_", TYPES)
def test_the_promises_hold_before_a_rude_service_of_azures_kind(
    type_: str, knowing: Knowing
) -> None:
    """Keeps N7: no long poll, slow first answers, empty ones, 429, 410, 500, resets."""

    @given(
        plan=st.sampled_from(list(POLICIES.values())).flatmap(
            lambda rule: plans(type_, rule, is_rude=True)
        )
    )
    def story(plan: Plan) -> None:
        note(repr(plan))
        listen(plan, knowing)

    told(story, 1 + STORIES // PLAIN_SHARE // (len(Knowing) * len(TYPES)), type_, knowing.name)


def hook(code: int, takes: float, obedience: Obedience = Obedience.ENDS) -> HookPlan:
    return HookPlan(Manner(code, seconds(takes), obedience))


WHOLE: Final = Plan(
    # Another one comes while this one has started.
    acts=(Announce("Reboot", MACHINES), Pass(seconds(10)), Announce("Freeze"), Pass(seconds(9))),
    hooks={
        Phase.PREPARE: (hook(0, 3), hook(70, 0)),
        Phase.STARTED: (hook(0, 2),),
        Phase.UNDO: (hook(0, 3), hook(1, 0)),
    },
)
CALLED_OFF: Final = Plan(
    # Another one comes while this one is being undone.
    acts=(
        Announce("Redeploy"),
        Pass(seconds(4)),
        Cancel(0),
        Pass(seconds(6)),
        Announce("Preempt"),
        Pass(seconds(9)),
    ),
    rule=Rule(on_failure=OnFailure.ALERT),
    hooks={
        Phase.PREPARE: (hook(0, 100_000, Obedience.IGNORES), hook(0, 0)),
        Phase.UNDO: (hook(0, 3),),
    },
)
APPROVED_ELSEWHERE: Final = Plan(
    acts=(Announce("Preempt", MACHINES), Pass(seconds(5)), ApproveElsewhere(0), Pass(seconds(60))),
    hooks={
        Phase.PREPARE: (hook(0, 100_000, Obedience.IGNORES),),
        Phase.STARTED: (hook(0, 3),),
        Phase.UNDO: (hook(0, 3),),
    },
)
IDLE: Final = Plan(
    acts=(Announce("Freeze"), Pass(seconds(1)), Mute(1), Pass(seconds(5))),
    hooks={Phase.PREPARE: (hook(70, 3),), Phase.UNDO: (hook(0, 3),)},
)
HIT: Final = Plan(
    acts=(Announce("Redeploy"), Pass(seconds(20)), Break(), Pass(seconds(30))),
    rule=Rule(approve=Approve.ALWAYS),
    hooks={phase: (hook(0, 3),) for phase in Phase},
    impact=seconds(5),
)


@pytest.mark.parametrize("reboots", [False, True], ids=["agent", "vm"])
@pytest.mark.parametrize(
    "plan",
    [WHOLE, CALLED_OFF, APPROVED_ELSEWHERE, IDLE, HIT],
    ids=["whole", "called off", "approved elsewhere", "idle", "hit"],
)
def test_the_promises_hold_wherever_it_dies(plan: Plan, reboots: bool) -> None:  # noqa: FBT001
    """Keeps N7: a death before and after each single step that the agent takes."""
    steps = 0
    while listen(dying(plan, steps, reboots=reboots)).deaths:
        steps += 1

    assert 10 < steps < STEPS_MAX


def dying(plan: Plan, steps: int, *, reboots: bool) -> Plan:
    return replace(plan, acts=(Die(steps, seconds(1), reboots), *plan.acts))
