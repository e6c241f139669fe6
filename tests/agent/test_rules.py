"""Rules: which one is for an event, and whether it is approved."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.agent.cases_at_hand import EVENT

from forewarn.agent import rules
from forewarn.agent.rules import (
    Approve,
    Condition,
    OnFailure,
    Peers,
    Readiness,
    Rule,
    WithoutHooks,
)

NINE = timedelta(seconds=9)
FREEZE = replace(EVENT, type="Freeze", duration=NINE)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (Rule(), None),
        (Rule(types=("reboot", "FREEZE")), None),
        (Rule(types=("Reboot",)), "it is for Reboot, and this is a Freeze"),
        (Rule(sources=("Platform",)), None),
        (Rule(sources=("User",)), "it is for events of User, and this is of Platform"),
        (Rule(names=("db-*", "WEB-?")), None),
        (Rule(names=("db-*",)), "it is for VMs named db-*, and this is web-1"),
        (Rule(duration_max=NINE, duration_min=NINE), None),
        (Rule(duration_max=timedelta(seconds=8)), "at most, and this takes 0:00:09"),
        (Rule(duration_min=timedelta(seconds=10)), "or more, and this takes 0:00:09"),
    ],
)
def test_a_rule_is_for_an_event_or_says_why_not(rule: Rule, why: str | None) -> None:
    found = rules.mismatch(rule, FREEZE, "web-1")

    if why is None:
        assert found is None
    else:
        assert found is not None
        assert why in found


def test_nobody_knows_whether_an_unknown_duration_is_short() -> None:
    unknown = replace(FREEZE, duration=None, source="")

    assert "nobody knows" in str(rules.mismatch(Rule(duration_max=NINE), unknown, "web-1"))
    assert "this is of nobody" in str(rules.mismatch(Rule(sources=("User",)), unknown, "web-1"))


def test_the_first_rule_that_matches_wins() -> None:
    mine = [Rule(types=("Reboot",)), Rule(approve=Approve.NEVER), Rule(approve=Approve.ALWAYS)]

    assert rules.chosen(mine, FREEZE, "web-1") == (2, mine[1])
    assert rules.chosen(mine[:1], FREEZE, "web-1") == (None, rules.USUAL)


def approves(rule: Rule, readiness: Readiness, peers: Peers | None = None) -> bool:
    return rules.judge(rule, EVENT, "web-1", readiness, peers or Peers()).approves


@pytest.mark.parametrize("readiness", Readiness)
def test_hooks_matter_only_to_rules_that_wait_for_them(readiness: Readiness) -> None:
    assert not approves(Rule(approve=Approve.NEVER), readiness)
    assert approves(Rule(approve=Approve.ALWAYS), readiness)


@pytest.mark.parametrize(
    ("rule", "readiness", "expected"),
    [
        (Rule(), Readiness.UNDER_WAY, False),
        (Rule(), Readiness.READY, True),
        (Rule(), Readiness.WITHOUT, True),
        (Rule(without_hooks=WithoutHooks.HOLD), Readiness.WITHOUT, False),
        (Rule(without_hooks=WithoutHooks.HOLD), Readiness.READY, True),
        (Rule(on_failure=OnFailure.HOLD), Readiness.FAILED, False),
        (Rule(on_failure=OnFailure.ALERT), Readiness.FAILED, False),
        (Rule(on_failure=OnFailure.APPROVE), Readiness.FAILED, True),
        (Rule(on_failure=OnFailure.APPROVE), Readiness.UNDER_WAY, False),
    ],
)
def test_after_hooks_means_after_all_of_them_went_well_or_the_rule_says_otherwise(
    rule: Rule,
    readiness: Readiness,
    expected: bool,  # noqa: FBT001
) -> None:
    assert approves(rule, readiness) is expected


def test_the_leader_is_the_first_of_the_events_vms() -> None:
    rule = Rule(only=(Condition.LEADER,))

    assert not approves(rule, Readiness.READY)
    assert rules.judge(rule, EVENT, "WEB-0", Readiness.READY, Peers()).approves
    nobody = replace(EVENT, resources=())
    assert not rules.judge(rule, nobody, "web-1", Readiness.READY, Peers()).approves


def test_peers_are_ready_when_every_other_vm_of_the_event_is() -> None:
    rule = Rule(only=(Condition.PEERS_READY,))
    event = replace(EVENT, resources=("web-0", "WEB-1", "web-2"))

    some = rules.judge(rule, event, "web-1", Readiness.READY, Peers(ready=frozenset({"web-0"})))
    all_ = Peers(ready=frozenset({"web-0", "web-2"}))

    assert (some.approves, some.asks) == (False, True)
    assert some.why == "waits until web-2 made ready"
    assert rules.judge(rule, event, "web-1", Readiness.READY, all_).approves


def test_the_last_healthy_member_does_not_approve() -> None:
    rule = Rule(only=(Condition.LEADER, Condition.NOT_LAST))
    leader = replace(EVENT, resources=("web-1",))

    last = rules.judge(rule, leader, "web-1", Readiness.READY, Peers())
    other = rules.judge(rule, leader, "web-1", Readiness.READY, Peers(healthy=frozenset({"web-9"})))

    assert (last.approves, last.asks) == (False, True)
    assert other.approves


@pytest.mark.parametrize("approve", [Approve.ALWAYS, Approve.AFTER_HOOKS])
def test_who_is_not_the_leader_asks_nobody(approve: Approve) -> None:
    rule = Rule(approve=approve, only=(Condition.LEADER, Condition.PEERS_READY))

    verdict = rules.judge(rule, EVENT, "web-1", Readiness.READY, Peers())

    assert (verdict.asks, verdict.why) == (False, "web-0 approves, the first of its VMs")


@pytest.mark.parametrize(
    ("rule", "readiness", "why"),
    [
        (Rule(approve=Approve.ALWAYS), Readiness.FAILED, "the rule approves always"),
        (Rule(), Readiness.READY, "the hooks are over, and it is ready"),
        (Rule(), Readiness.WITHOUT, "there is no hook for it"),
        (Rule(), Readiness.FAILED, "a hook failed"),
        (Rule(), Readiness.UNDER_WAY, "the hooks are not over"),
        (
            Rule(on_failure=OnFailure.APPROVE),
            Readiness.FAILED,
            "a hook failed, and the rule approves all the same",
        ),
    ],
)
def test_a_verdict_says_why(rule: Rule, readiness: Readiness, why: str) -> None:
    assert rules.judge(rule, EVENT, "web-1", readiness, Peers()).why == why
