"""Explanations: which rule, which hooks, when it is approved and what is undone, and why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from forewarn.agent.explaining import Question, dump_explanation, explain, headline, told
from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.imagining import Idea, imagined, parse_source, parse_type
from forewarn.agent.rules import Approve, Condition, OnFailure, Rule, WithoutHooks
from forewarn.agent.wording import a, length
from forewarn.client import Event
from forewarn.errors import Malformed

NOW: Final = datetime(2026, 11, 15, 22, 0, tzinfo=UTC)
REBOOT: Final = imagined(
    Idea(type="Reboot", resources=("web-0", "web-1")), event_id="A", name="web-0", now=NOW
)
DRAIN: Final = Hook("10-drain", ("/hooks/10-drain",))
FLUSH: Final = Hook("20-flush", ("sh", "-c", "sync"), timedelta(minutes=2))
HOOKS: Final = {Phase.PREPARE: (DRAIN, FLUSH), Phase.UNDO: (DRAIN,)}
ASKED: Final = Question(event=REBOOT, name="web-0", rules=(), hooks=HOOKS, now=NOW)


def lines(question: Question) -> str:
    return "\n".join(told(explain(question), NOW))


def test_without_rules_the_defaults_count() -> None:
    assert lines(ASKED) == (
        "Reboot A, Scheduled, of Platform, for web-0, web-1, not before 2026-11-15 22:15:00Z (in 15m), "
        "takes an unknown time\n"
        "rule      the file has none: the defaults count\n"
        "prepare   10-drain (may take 14m59s): /hooks/10-drain\n"
        "          20-flush (may take 2m): sh -c sync\n"
        "started   nothing is run: no hook is for it\n"
        "approval  when every hook of prepare has exited with 0 or 70\n"
        "          if one fails: it is held, until its NotBefore or until somebody approves it\n"
        "now       no: the hooks are not over\n"
        "undo      10-drain (may take 10m): /hooks/10-drain\n"
        "          once, when the event is gone, unless every hook before said that it had nothing to do; "
        "it waits until no other event is in hand"
    )


def test_rules_before_the_one_that_counts_are_told_with_their_reason() -> None:
    rules = (
        Rule(types=("Freeze",)),
        Rule(sources=("User",)),
        Rule(names=("db-*",)),
        Rule(duration_max=timedelta(seconds=9)),
        Rule(types=("Reboot",)),
        Rule(),
    )

    explanation = explain(replace(ASKED, rules=rules))

    assert explanation.number == 5
    assert [(one.number, one.why_not) for one in explanation.considered] == [
        (1, "it is for Freeze, and this is a Reboot"),
        (2, "it is for events of User, and this is of Platform"),
        (3, "it is for VMs named db-*, and this is web-0"),
        (4, "it is for a known duration, and nobody knows this one's"),
        (5, None),
    ]
    assert "rule 3    no: it is for VMs named db-*" in lines(replace(ASKED, rules=rules))
    assert "rule 5    it is this one" in lines(replace(ASKED, rules=rules))


def test_where_no_rule_matches_the_defaults_count() -> None:
    explanation = explain(replace(ASKED, rules=(Rule(types=("Freeze",)),)))

    assert explanation.number is None
    assert explanation.rule == Rule()


WHENS: Final = [
    (Rule(approve=Approve.NEVER), ("never: it starts at its NotBefore, or when somebody else",)),
    (Rule(approve=Approve.ALWAYS), ("as soon as it is seen; hooks run beside",)),
    (Rule(approve=Approve.ALWAYS, run_hooks=False), ("as soon as it is seen",)),
    (Rule(on_failure=OnFailure.HOLD), ("when every hook", "if one fails: it is held, until")),
    (Rule(on_failure=OnFailure.APPROVE), ("when every hook", "if one fails: it is approved all")),
    (Rule(on_failure=OnFailure.ALERT), ("when every hook", "if one fails: it is held, and somebody")),
    (Rule(run_hooks=False), ("as soon as it is seen: no hook is for it",)),
    (
        Rule(run_hooks=False, without_hooks=WithoutHooks.HOLD),
        ('never: no hook is for it, and without_hooks = "hold"',),
    ),
    (
        Rule(approve=Approve.ALWAYS, only=(Condition.LEADER, Condition.PEERS_READY)),
        (
            "as soon as it is seen",
            "and only by the first of its VMs, which is web-0",
            "and only when web-1 made ready",
        ),
    ),
    (
        Rule(approve=Approve.ALWAYS, only=(Condition.NOT_LAST,)),
        ("as soon as it is seen", "and only while of web-2, web-3 one is healthy"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "expected"), WHENS)
def test_when_an_event_is_approved_is_told(rule: Rule, expected: tuple[str, ...]) -> None:
    members = ("web-0", "web-1", "web-2", "web-3")

    when = explain(replace(ASKED, rules=(rule,), members=members)).when

    assert len(when) == len(expected), when
    assert all(one.startswith(start) for one, start in zip(when, expected, strict=True)), when


def test_a_follower_is_told_who_leads() -> None:
    question = replace(ASKED, name="web-1", rules=(Rule(only=(Condition.LEADER,)),))

    assert "and only by the first of its VMs, which is web-0, not web-1" in lines(question)


def test_conditions_that_nobody_can_meet_or_break_are_told() -> None:
    alone = replace(REBOOT, resources=("web-0",))
    rule = Rule(only=(Condition.PEERS_READY, Condition.NOT_LAST))

    text = lines(replace(ASKED, event=alone, rules=(rule,), members=("web-0",)))

    assert "and only when its other VMs did, and it has none" in text
    assert "somebody is healthy, and no member is left whom it does not hit" in text


@pytest.mark.parametrize(
    ("rule", "approves", "why"),
    [
        (Rule(approve=Approve.ALWAYS), True, "the rule approves always"),
        (Rule(run_hooks=False), True, "there is no hook for it"),
        (Rule(), False, "the hooks are not over"),
        (Rule(approve=Approve.NEVER), False, "the rule approves never"),
    ],
)
def test_whether_it_is_approved_at_first_sight_is_told(
    rule: Rule,
    approves: bool,  # noqa: FBT001 - a row of a table
    why: str,
) -> None:
    verdict = explain(replace(ASKED, rules=(rule,))).verdict

    assert (verdict.approves, verdict.why) == (approves, why)


def test_an_event_of_neighbors_has_nothing_done() -> None:
    assert lines(replace(ASKED, name="db-0")).endswith(
        "\nnothing is done: it is for web-0, web-1, and this is db-0"
    )


def test_an_event_that_has_started_is_not_approved() -> None:
    started = replace(REBOOT, status="Started", not_before=None, duration=timedelta(seconds=9))

    text = lines(replace(ASKED, event=started))

    assert text.startswith("Reboot A, Started, of Platform, for web-0, web-1, takes 9s\n")
    assert "now       no: it has started" in text


@pytest.mark.parametrize(
    ("hooks", "waits", "expected"),
    [
        ({}, True, "nothing is run: there is nothing to undo"),
        ({Phase.PREPARE: (DRAIN,)}, True, "nothing is run: no hook is for it"),
        (HOOKS, False, "once, when the event is gone, unless every hook before said that it had"),
    ],
)
def test_what_is_undone_is_told(
    hooks: dict[Phase, tuple[Hook, ...]],
    waits: bool,  # noqa: FBT001 - ditto
    expected: str,
) -> None:
    explanation = explain(replace(ASKED, hooks=hooks, undo_waits=waits))

    assert explanation.undo.startswith(expected)
    assert ("waits" in explanation.undo) == (waits and expected.startswith("once"))


def test_programs_are_told_the_same() -> None:
    rule = Rule(types=("Reboot",), only=(Condition.LEADER,))

    content = dump_explanation(explain(replace(ASKED, rules=(Rule(types=("Freeze",)), rule))))

    assert content["rule"] == 2
    assert content["considered"] == [
        {"rule": 1, "why_not": "it is for Freeze, and this is a Reboot"},
        {"rule": 2, "why_not": None},
    ]
    assert content["hooks"] == {
        "prepare": [
            {"hook": "10-drain", "command": ["/hooks/10-drain"], "limit": None},
            {"hook": "20-flush", "command": ["sh", "-c", "sync"], "limit": 120.0},
        ],
        "started": [],
        "undo": [{"hook": "10-drain", "command": ["/hooks/10-drain"], "limit": None}],
    }
    assert (content["approves"], content["why"]) == (False, "the hooks are not over")
    assert (content["approve"], content["only"]) == ("after-hooks", ["leader"])


def test_an_event_that_is_due_says_so() -> None:
    due = Event(id="A", type="Freeze", status="Scheduled", not_before=NOW)

    assert headline(due, NOW) == (
        "Freeze A, Scheduled, for nobody, not before 2026-11-15 22:00:00Z (due), takes an unknown time"
    )


@pytest.mark.parametrize(
    ("event_type", "seconds"),
    [("Freeze", 900), ("Reboot", 900), ("Redeploy", 600), ("Preempt", 30), ("Terminate", 300)],
)
def test_what_is_made_up_has_the_notice_of_its_type(event_type: str, seconds: int) -> None:
    late = NOW + timedelta(microseconds=1)

    event = imagined(Idea(type=event_type), event_id="A", name="web-0", now=late)

    assert event.not_before == NOW + timedelta(seconds=seconds + 1)
    assert event.resources == ("web-0",)


def test_types_and_sources_are_understood_in_any_case() -> None:
    assert parse_type("reboot") == "Reboot"
    assert parse_source("USER") == "User"
    with pytest.raises(Malformed, match=r"'Frieze' is no event type: did you mean Freeze\?"):
        parse_type("Frieze")
    with pytest.raises(Malformed, match=r"'me' is no source: give Platform or User"):
        parse_source("me")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (-5, "0s"), (59.6, "1m"), (5400, "1h30m"), (90_061, "1d1h1m1s")],
)
def test_lengths_are_written_as_the_file_has_them(seconds: float, text: str) -> None:
    assert length(timedelta(seconds=seconds)) == text


def test_nouns_have_their_article() -> None:
    assert (a("Reboot"), a("Upgrade"), a("")) == ("a Reboot", "an Upgrade", "an event")
