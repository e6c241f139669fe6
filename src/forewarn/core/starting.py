"""When a due event starts, what holds it, and when it is over.

Rule: Started is committed before any order is given, so that no impact is ever hidden from the
guests; whatever follows can be repeated.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from forewarn.core import events, ledgers, periods, presences, scopes
from forewarn.core.events import (
    Approval,
    Audience,
    Event,
    EventSource,
    EventStatus,
    EventType,
    Outcome,
    Result,
)
from forewarn.core.journal import SERVICE, Actor, Role, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import EventId, MachineName
from forewarn.core.periods import Periods
from forewarn.core.scopes import Presence, Scope
from forewarn.core.values import replace
from forewarn.errors import IllegalTransition, Refused, UnknownEvent

MAINTENANCE_TYPES = (EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY)
# What is promised for a certain time and cannot be moved.
UNMOVABLE_TYPES = (EventType.PREEMPT, EventType.TERMINATE)
ALL_DOWN = Actor(Role.POLICY, "all-instances-down")


def is_maintenance(event: Event) -> bool:
    """Whether the event is platform maintenance, which takes one update domain at a time."""
    return event.source is EventSource.PLATFORM and event.type in MAINTENANCE_TYPES


def recovery(scope: Scope, rules: Periods) -> timedelta:
    """How long the scope rests between maintenance of two update domains."""
    return rules.recovery if scope.recovery is None else scope.recovery


def remembered(scope: Scope, rules: Periods) -> timedelta:
    """How long an ended event stays in the ledger: late approvals and recovery look back at it."""
    return max(rules.remember, recovery(scope, rules))


def hold(ledger: Ledger, event: Event, now: datetime, rules: Periods) -> str:
    """What keeps a due event from starting, in words; "" if nothing does."""
    for other in ledger.open_events:
        if other.status is not EventStatus.STARTED:
            continue
        shared = [machine for machine in event.machines if machine in other.machines]
        if shared:
            return f"{other.type.value} {other.id} is started on {shared[0]}"
        if is_maintenance(event) and event.update_domain != other.update_domain:
            return (
                f"{other.type.value} {other.id} is started in update domain {other.update_domain}"
            )
    rested = rested_at(ledger, event, rules)
    if rested is not None and now < rested:
        return f"the scope recovers from maintenance of another update domain until {rested:%FT%TZ}"
    return ""


def rested_at(ledger: Ledger, event: Event, rules: Periods) -> datetime | None:
    """When the scope has recovered from other update domains' maintenance, as far as it is over."""
    ends = [
        other.ended_at
        for other in ledger.events
        if other.ended_at is not None
        and other.status is EventStatus.COMPLETED
        and is_maintenance(event)
        and is_maintenance(other)
        and event.update_domain != other.update_domain
    ]
    return max(ends) + recovery(ledger.scope, rules) if ends else None


def start_if_free(ledger: Ledger, event_id: EventId, now: datetime, rules: Periods) -> Decision:
    """Start a due event if nothing holds it; else write down what does."""
    event = ledger.event(event_id)
    if not events.is_due(event, now):
        return Decision(ledger)
    holding = hold(ledger, event, now, rules)
    if not holding:
        started = events.start(event, now=now)
        return ledgers.note(ledger, What.STARTED, SERVICE, now, started, _why_started(event))
    return hold_back(ledger, event, holding, now)


def hold_back(ledger: Ledger, event: Event, holding: str, now: datetime) -> Decision:
    """Write down what keeps a due event from starting, each time it is another thing."""
    if holding == event.hold:
        return Decision(ledger)
    held = replace(event, hold=holding)
    return ledgers.note(ledger, What.HELD, SERVICE, now, held, holding)


def _why_started(event: Event) -> str:
    if event.audience is Audience.OPERATORS:
        return "unannounced"
    return "notice ran out" if event.approval is None else "approved"


def approve(ledger: Ledger, ids: tuple[str, ...], actor: Actor, now: datetime) -> Decision:
    """Approve events on behalf of all their machines: all of these ids, or none.

    Repeated and late approvals are accepted and change nothing. An operation that guests are not
    told of is unknown to them.

    Raises: UnknownEvent, Refused.
    """
    decision = Decision(ledger)
    for event_id in ids:
        event = decision.ledger.event(event_id)
        if event.audience is Audience.OPERATORS:
            if actor.role is Role.GUEST:
                raise UnknownEvent(event_id)
            raise Refused(f"event {event.id} is unannounced: it waits for nobody's approval")
        approval = Approval(actor.name, actor.role.value, actor.address, now)
        approved = events.approve(event, approval)
        if approved is not event:
            decision = ledgers.then(
                decision, ledgers.note(decision.ledger, What.APPROVED, actor, now, approved)
            )
    return decision


def is_approved_if_all_down(ledger: Ledger, event: Event) -> bool:
    """Whether an event waits for machines none of which runs, and its owner wants no waiting then."""
    waits = event.status is EventStatus.SCHEDULED and event.approval is None
    is_owners_will = ledger.scope.owner.all_instances_down
    is_told = event.audience is Audience.GUESTS
    return waits and is_told and is_owners_will and scopes.is_all_down(ledger.scope)


def approve_if_all_down(ledger: Ledger, now: datetime) -> Decision:
    """Approve by policy what nobody is there to approve."""
    waiting = [e.id for e in ledger.events if is_approved_if_all_down(ledger, e)]
    return approve(ledger, tuple(waiting), ALL_DOWN, now)


def cancel(ledger: Ledger, event_id: str, actor: Actor, now: datetime, why: str = "") -> Decision:
    """Call an event off before it has started. Raises: UnknownEvent, IllegalTransition."""
    canceled = events.cancel(ledger.event(event_id), now=now)
    return ledgers.note(ledger, What.CANCELED, actor, now, canceled, why)


def postpone(
    ledger: Ledger, event_id: str, to: datetime, actor: Actor, now: datetime, rules: Periods
) -> Decision:
    """Move an event's NotBefore later, within limits. Raises: UnknownEvent, Refused."""
    event = ledger.event(event_id)
    if event.type in UNMOVABLE_TYPES:
        raise Refused(f"a {event.type.value} cannot be postponed")
    if event.audience is Audience.OPERATORS:
        raise Refused(f"event {event.id} is unannounced: it has no notice to lengthen")
    if event.status is EventStatus.SCHEDULED and event.approval is not None:
        raise Refused(f"event {event.id} was approved by {event.approval.by}: it will start soon")
    if event.status is not EventStatus.SCHEDULED:
        raise IllegalTransition(event.id, event.status.value, "postpone")
    to = periods.whole_second(to)
    if to <= now:
        raise Refused(f"{to:%FT%TZ} has passed: give a time to come")
    if to <= event.not_before:
        raise Refused(
            f"event {event.id} is due at {event.not_before:%FT%TZ} already: an event can only be "
            "moved later; approving it starts it earlier"
        )
    latest = event.first_not_before + rules.postpone_max
    if to > latest:
        raise Refused(f"event {event.id} can be postponed until {latest:%FT%TZ} at most")
    text = f"from {event.not_before:%FT%TZ} to {to:%FT%TZ}"
    return ledgers.note(ledger, What.POSTPONED, actor, now, events.postpone(event, to=to), text)


def conclude_and_maybe_complete(event: Event, outcome: Outcome, now: datetime) -> Event:
    """Note an order's outcome; the event ends with its last order."""
    concluded = events.conclude(event, outcome)
    if concluded.unfinished:
        return concluded
    return events.complete(concluded, now=now)


def report(ledger: Ledger, event_id: EventId, outcome: Outcome, actor: Actor) -> Decision:
    """Note what became of an order: the event may end, and the machine's presence change."""
    event = conclude_and_maybe_complete(ledger.event(event_id), outcome, outcome.at)
    what = What.REPORTED if event.is_open else What.COMPLETED
    text = f"{outcome.machine}: {outcome.result.value}"
    if outcome.detail:
        text += f", {outcome.detail}"
    decision = ledgers.note(ledger, what, actor, outcome.at, event, text)
    if outcome.result is Result.DONE and event.type in presences.AFTER:
        after = presences.AFTER[event.type]
        changed = change_presence(decision.ledger, outcome.machine, after, outcome.at)
        decision = ledgers.then(decision, changed)
    return decision


def time_out(ledger: Ledger, event_id: EventId, machine: MachineName, now: datetime) -> Decision:
    """Raise the alarm about an order that takes too long; the event goes on."""
    event = ledger.event(event_id)
    outcome = Outcome(machine, Result.TIMED_OUT, now)
    text = f"{machine}: not over in time; see to it, then `forewarn resolve {event.id}`"
    return ledgers.note(ledger, What.TIMED_OUT, SERVICE, now, events.conclude(event, outcome), text)


def resolve(ledger: Ledger, event_id: str, result: Result, actor: Actor, now: datetime) -> Decision:
    """End a started event by an operator's word. Raises: UnknownEvent, IllegalTransition."""
    event = ledger.event(event_id)
    if event.status is not EventStatus.STARTED:
        raise IllegalTransition(event.id, event.status.value, "resolve")
    text = f"as {result.value} by {actor.name}"
    decision = ledgers.note(ledger, What.RESOLVED, actor, now, event, text)
    for machine in event.unfinished:
        outcome = Outcome(machine, result, now, f"resolved by {actor.name}")
        decision = ledgers.then(decision, report(decision.ledger, event.id, outcome, actor))
    return decision


def change_presence(
    ledger: Ledger, machine: MachineName, presence: Presence, now: datetime
) -> Decision:
    """A machine is gone, or back: it leaves every scheduled event that no longer concerns it."""
    machines = tuple(
        replace(m, presence=presence) if m.name == machine else m for m in ledger.scope.machines
    )
    scope = replace(ledger.scope, machines=machines)
    text = f"{machine} is {presence.value}"
    decision = ledgers.note(replace(ledger, scope=scope), What.ROSTER, SERVICE, now, None, text)
    return ledgers.then(decision, leave_scheduled(decision.ledger, machine, now, presence))


def leave_scheduled(
    ledger: Ledger, machine: MachineName, now: datetime, presence: Presence = Presence.DELETED
) -> Decision:
    """Take a machine out of the events that have not started and cannot concern it any more.

    An event that is left without machines is off.
    """
    decision = Decision(ledger)
    why = f"{machine} is gone" if presence is Presence.DELETED else f"{machine} is {presence.value}"
    for event in ledger.events:
        if event.status is not EventStatus.SCHEDULED or machine not in event.machines:
            continue
        if presences.is_concerned(event.type, presence):
            continue
        rest = tuple(name for name in event.machines if name != machine)
        if rest:
            narrowed = replace(event, machines=rest)
            step = ledgers.note(decision.ledger, What.NARROWED, SERVICE, now, narrowed, why)
        else:
            step = cancel(decision.ledger, event.id, SERVICE, now, why)
        decision = ledgers.then(decision, step)
    return decision
