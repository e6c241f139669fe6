"""What the agent would do about an event, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from forewarn.agent import rules
from forewarn.agent.cases import LIMIT, MARGIN
from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.rules import Approve, Condition, OnFailure, Peers, Readiness, Rule, Verdict
from forewarn.agent.rules import WithoutHooks as Without
from forewarn.agent.wording import length
from forewarn.client.documents import Event, dump_event


@dataclass(frozen=True, slots=True)
class Considered:
    """A rule that was looked at, from 1; `why_not` is None of the one that is for the event."""

    number: int
    why_not: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which event, and what else the answer depends on."""

    event: Event
    # This VM's.
    name: str
    rules: Sequence[Rule]
    # What would be run now, if the rule has hooks run.
    hooks: Mapping[Phase, tuple[Hook, ...]]
    now: datetime
    undo_waits: bool = True
    # The service's members, for `not-last`.
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer."""

    event: Event
    name: str
    # Whether this VM is among those that are hit; if not, nothing is done.
    concerns: bool
    considered: tuple[Considered, ...]
    rule: Rule
    hooks: Mapping[Phase, tuple[Hook, ...]] = field(default_factory=dict)
    # How long a hook of `prepare` that has no limit may take, from now.
    left: timedelta | None = None
    # Whether it is approved at first sight; `why` it is, or is not.
    verdict: Verdict
    # When it is approved, in sentences.
    when: tuple[str, ...] = ()
    undo: str = ""

    @property
    def number(self) -> int | None:
        """The rule's number; None of the usual one."""
        return next((one.number for one in self.considered if one.why_not is None), None)


def explain(question: Question) -> Explanation:
    """What would be done about an event."""
    event, name = question.event, question.name
    number, rule = rules.chosen(question.rules, event, name)
    looked_at = question.rules if number is None else question.rules[:number]
    considered = tuple(
        Considered(place, rules.mismatch(one, event, name))
        for place, one in enumerate(looked_at, start=1)
    )
    concerns = event.concerns(name)
    hooks = {
        phase: question.hooks.get(phase, ()) if concerns and rule.run_hooks else ()
        for phase in Phase
    }
    return Explanation(
        event=event,
        name=name,
        concerns=concerns,
        considered=considered,
        rule=rule,
        hooks=hooks,
        left=_left(event, question.now),
        verdict=_verdict(question, rule, hooks),
        when=tuple(_when(question, rule, hooks)) if concerns else (),
        undo=_undo(hooks, waits=question.undo_waits),
    )


def _left(event: Event, now: datetime) -> timedelta | None:
    if event.not_before is None or event.not_before - MARGIN <= now:
        return None
    return event.not_before - MARGIN - now


def _verdict(question: Question, rule: Rule, hooks: Mapping[Phase, tuple[Hook, ...]]) -> Verdict:
    event = question.event
    if not event.concerns(question.name):
        whose = f"it is for {', '.join(event.resources) or 'nobody'}"
        return Verdict(approves=False, why=f"{whose}, and this is {question.name}")
    if event.has_started:
        return Verdict(approves=False, why="it has started")
    readiness = Readiness.UNDER_WAY if hooks[Phase.PREPARE] else Readiness.WITHOUT
    return rules.judge(rule, event, question.name, readiness, Peers())


def _when(question: Question, rule: Rule, hooks: Mapping[Phase, tuple[Hook, ...]]) -> Iterator[str]:
    match rule.approve:
        case Approve.NEVER:
            yield "never: it starts at its NotBefore, or when somebody else approves it"
            return
        case Approve.ALWAYS:
            beside = "; hooks run beside" if hooks[Phase.PREPARE] else ""
            yield f"as soon as it is seen{beside}"
        case Approve.AFTER_HOOKS if hooks[Phase.PREPARE]:
            yield "when every hook of prepare has exited with 0 or 70"
            yield f"if one fails: {_FAILURES[rule.on_failure]}"
        case Approve.AFTER_HOOKS if rule.without_hooks is Without.HOLD:
            yield 'never: no hook is for it, and without_hooks = "hold"'
            return
        case Approve.AFTER_HOOKS:
            yield "as soon as it is seen: no hook is for it"
    for condition in rule.only:
        yield f"and only {_condition(condition, question)}"


_FAILURES: Final[Mapping[OnFailure, str]] = {
    OnFailure.HOLD: "it is held, until its NotBefore or until somebody approves it",
    OnFailure.APPROVE: "it is approved all the same",
    OnFailure.ALERT: "it is held, and somebody is told",
}


def _condition(condition: Condition, question: Question) -> str:
    event, name = question.event, question.name
    mine = name.casefold()
    others = [one for one in event.resources if one.casefold() != mine]
    match condition:
        case Condition.LEADER:
            leader = event.resources[0] if event.resources else "nobody"
            is_me = leader.casefold() == mine
            return f"by the first of its VMs, which is {leader}{'' if is_me else ', not ' + name}"
        case Condition.PEERS_READY:
            asked = f"when {', '.join(others)} made ready" if others else "when its other VMs did"
            return asked if others else f"{asked}, and it has none"
        case Condition.NOT_LAST:
            hit = {one.casefold() for one in (*event.resources, name)}
            left = [one for one in question.members if one.casefold() not in hit]
            who = f"of {', '.join(left)} one" if left else "somebody"
            return f"while {who} is healthy{'' if left else ', and no member is left whom it does not hit'}"


def _undo(hooks: Mapping[Phase, tuple[Hook, ...]], *, waits: bool) -> str:
    if not hooks[Phase.PREPARE] and not hooks[Phase.STARTED]:
        return "nothing is run: there is nothing to undo"
    if not hooks[Phase.UNDO]:
        return "nothing is run: no hook is for it"
    once = "once, when the event is gone, unless every hook before said that it had nothing to do"
    return f"{once}; it waits until no other event is in hand" if waits else once


# -- in words, and as JSON ---------------------------------------------------------------------


def told(explanation: Explanation, now: datetime) -> Iterator[str]:
    """The answer in lines."""
    yield headline(explanation.event, now)
    if not explanation.concerns:
        yield f"nothing is done: {explanation.verdict.why}"
        return
    yield from _told_rules(explanation)
    for phase in (Phase.PREPARE, Phase.STARTED):
        yield from _told_hooks(explanation, phase)
    for number, sentence in enumerate(explanation.when):
        yield f"{'' if number else 'approval':9} {sentence}"
    at_first = "yes" if explanation.verdict.approves else "no"
    yield f"{'now':9} {at_first}: {explanation.verdict.why}"
    if explanation.hooks[Phase.UNDO]:
        yield from _told_hooks(explanation, Phase.UNDO)
        yield f"{'':9} {explanation.undo}"
    else:
        yield f"{'undo':9} {explanation.undo}"


def headline(event: Event, now: datetime | None) -> str:
    """An event in a line; without a time, of one that does not come any more."""
    parts = [f"{event.type} {event.id}", event.status]
    if event.source:
        parts.append(f"of {event.source}")
    parts.append(f"for {', '.join(event.resources) or 'nobody'}")
    if event.not_before is not None and now is not None:
        left = event.not_before - now
        soon = f"in {length(left)}" if left > timedelta() else "due"
        parts.append(f"not before {event.not_before:%Y-%m-%d %H:%M:%SZ} ({soon})")
    taken = "an unknown time" if event.duration is None else length(event.duration)
    return f"{', '.join(parts)}, takes {taken}"


def _told_rules(explanation: Explanation) -> Iterator[str]:
    for one in explanation.considered:
        yield f"{f'rule {one.number}':9} {'it is this one' if one.why_not is None else f'no: {one.why_not}'}"
    if explanation.number is None:
        none = "no rule is for it" if explanation.considered else "the file has none"
        yield f"{'rule':9} {none}: the defaults count"


def _told_hooks(explanation: Explanation, phase: Phase) -> Iterator[str]:
    hooks = explanation.hooks[phase]
    if not hooks:
        why = "no hook is for it" if explanation.rule.run_hooks else "the rule runs no hooks"
        yield f"{phase.value:9} nothing is run: {why}"
    for number, hook in enumerate(hooks):
        limit = hook.limit
        if phase is Phase.PREPARE and explanation.left is not None:
            limit = min(limit or explanation.left, explanation.left)
        may = f"may take {length(limit or LIMIT)}"
        yield f"{'' if number else phase.value:9} {hook.name} ({may}): {' '.join(hook.command)}"


def dump_explanation(explanation: Explanation) -> dict[str, object]:
    """The answer, for programs."""
    rule = explanation.rule
    return {
        "event": dump_event(explanation.event),
        "name": explanation.name,
        "concerns": explanation.concerns,
        "considered": [
            {"rule": one.number, "why_not": one.why_not} for one in explanation.considered
        ],
        "rule": explanation.number,
        "approve": rule.approve.value,
        "only": [one.value for one in rule.only],
        "on_failure": rule.on_failure.value,
        "without_hooks": rule.without_hooks.value,
        "run_hooks": rule.run_hooks,
        "hooks": {
            phase.value: [
                {
                    "hook": hook.name,
                    "command": list(hook.command),
                    "limit": None if hook.limit is None else hook.limit.total_seconds(),
                }
                for hook in explanation.hooks[phase]
            ]
            for phase in Phase
        },
        "approves": explanation.verdict.approves,
        "why": explanation.verdict.why,
        "when": list(explanation.when),
        "undo": explanation.undo,
    }
