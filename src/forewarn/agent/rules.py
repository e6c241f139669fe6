"""Rules: for which events hooks are run, and when an event is approved. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final

from forewarn.client.documents import Event


class Approve(Enum):
    """When an event is approved."""

    # It starts at its NotBefore, or when another approves it.
    NEVER = "never"
    # As soon as it is seen; hooks run beside.
    ALWAYS = "always"
    # Once the hooks of `prepare` are over.
    AFTER_HOOKS = "after-hooks"


class Condition(Enum):
    """What must hold besides for an approval."""

    # This VM is the first of the event's.
    LEADER = "leader"
    # Every other VM of the event has made ready, too.
    PEERS_READY = "peers-ready"
    # Somebody healthy is left, whom the event does not hit.
    NOT_LAST = "not-last"


class OnFailure(Enum):
    """What a hook that failed means for the approval."""

    HOLD = "hold"
    APPROVE = "approve"
    # As hold, and somebody is told.
    ALERT = "alert"


class WithoutHooks(Enum):
    """Whether an event that no hook is for is approved."""

    APPROVE = "approve"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Rule:
    """Which events it is for, and what becomes of those. Empty means any."""

    types: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    # Patterns, such as web-*, of this VM's name.
    names: tuple[str, ...] = ()
    duration_min: timedelta | None = None
    duration_max: timedelta | None = None

    approve: Approve = Approve.AFTER_HOOKS
    only: tuple[Condition, ...] = ()
    on_failure: OnFailure = OnFailure.HOLD
    without_hooks: WithoutHooks = WithoutHooks.APPROVE
    run_hooks: bool = True


# Where no rule of the file is for an event.
USUAL: Final = Rule()


def chosen(rules: Sequence[Rule], event: Event, name: str) -> tuple[int | None, Rule]:
    """The first rule that is for an event, and its number, from 1; the usual one has none."""
    for number, rule in enumerate(rules, start=1):
        if mismatch(rule, event, name) is None:
            return number, rule
    return None, USUAL


def mismatch(rule: Rule, event: Event, name: str) -> str | None:
    """Why a rule is not for an event; None if it is."""
    if not _is_among(event.type, rule.types):
        return f"it is for {_listed(rule.types)}, and this is a {event.type}"
    if not _is_among(event.source, rule.sources):
        return f"it is for events of {_listed(rule.sources)}, and this is of {event.source or 'nobody'}"
    if rule.names and not any(fnmatchcase(name.casefold(), one.casefold()) for one in rule.names):
        return f"it is for VMs named {_listed(rule.names)}, and this is {name}"
    return _wrong_length(rule, event.duration)


def _wrong_length(rule: Rule, duration: timedelta | None) -> str | None:
    if rule.duration_min is None and rule.duration_max is None:
        return None
    if duration is None:
        return "it is for a known duration, and nobody knows this one's"
    if rule.duration_min is not None and duration < rule.duration_min:
        return f"it is for {rule.duration_min} or more, and this takes {duration}"
    if rule.duration_max is not None and duration > rule.duration_max:
        return f"it is for {rule.duration_max} at most, and this takes {duration}"
    return None


def _is_among(value: str, allowed: tuple[str, ...]) -> bool:
    return not allowed or value.casefold() in (one.casefold() for one in allowed)


def _listed(values: tuple[str, ...]) -> str:
    return " or ".join(values)


class Readiness(Enum):
    """How far the hooks of `prepare` have come."""

    UNDER_WAY = "under way"
    READY = "ready"
    FAILED = "failed"
    # There is none for this event.
    WITHOUT = "without hooks"


@dataclass(frozen=True, slots=True)
class Peers:
    """What is known of the others, by name in lower case."""

    # Those who said that they are ready for the event.
    ready: frozenset[str] = frozenset()
    # Members that the event does not hit, and that said they are well.
    healthy: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to approve now, and why; `asks` if it depends on what others say."""

    approves: bool
    why: str
    asks: bool = False


def judge(rule: Rule, event: Event, name: str, readiness: Readiness, peers: Peers) -> Verdict:
    """Whether an event that has not started is to be approved now."""
    held = _held_by_hooks(rule, readiness)
    if held is not None:
        return Verdict(approves=False, why=held)
    for condition in rule.only:
        unmet = _unmet(condition, event, name, peers)
        if unmet is not None:
            return Verdict(approves=False, why=unmet, asks=condition is not Condition.LEADER)
    return Verdict(approves=True, why=_WHY[rule.approve, readiness])


def _held_by_hooks(rule: Rule, readiness: Readiness) -> str | None:
    match rule.approve, readiness:
        case (Approve.NEVER, _):
            return "the rule approves never"
        case (Approve.ALWAYS, _):
            return None
        case (_, Readiness.UNDER_WAY):
            return "the hooks are not over"
        case (_, Readiness.FAILED) if rule.on_failure is not OnFailure.APPROVE:
            return "a hook failed"
        case (_, Readiness.WITHOUT) if rule.without_hooks is WithoutHooks.HOLD:
            return "there is no hook for it, and the rule holds such events"
        case _:
            return None


_WHY: Final = {
    **{(Approve.ALWAYS, readiness): "the rule approves always" for readiness in Readiness},
    (Approve.AFTER_HOOKS, Readiness.READY): "the hooks are over, and it is ready",
    (Approve.AFTER_HOOKS, Readiness.FAILED): "a hook failed, and the rule approves all the same",
    (Approve.AFTER_HOOKS, Readiness.WITHOUT): "there is no hook for it",
}


def _unmet(condition: Condition, event: Event, name: str, peers: Peers) -> str | None:
    match condition:
        case Condition.LEADER:
            leader = event.resources[0] if event.resources else ""
            return None if _same(leader, name) else f"{leader} approves, the first of its VMs"
        case Condition.PEERS_READY:
            others = (one for one in event.resources if not _same(one, name))
            unready = [one for one in others if one.casefold() not in peers.ready]
            return f"waits until {', '.join(unready)} made ready" if unready else None
        case Condition.NOT_LAST:
            return None if peers.healthy else "no other member is known to be healthy"


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()
