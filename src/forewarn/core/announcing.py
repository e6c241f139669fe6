"""From a wish to events in a ledger: what is refused, how much notice is given, what starts now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from forewarn.core import (
    events,
    ledgers,
    periods,
    presences,
    scopes,
    spacing,
    starting,
    wishes,
)
from forewarn.core.events import (
    ANNOUNCED_TYPES,
    Audience,
    Cause,
    Event,
    EventSource,
    EventStatus,
    EventType,
    Outcome,
    Result,
)
from forewarn.core.journal import SERVICE, Actor, Role, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import EventId
from forewarn.core.periods import Periods, spell
from forewarn.core.scopes import AutoApproval, Scope, ScopeKind
from forewarn.core.wishes import IfNotTold, Wish
from forewarn.errors import Refused

_AUTO_APPROVAL = {
    EventType.REBOOT: AutoApproval.USER_REBOOT,
    EventType.REDEPLOY: AutoApproval.USER_REDEPLOY,
}


@dataclass(frozen=True, slots=True)
class Announced:
    """What came of a wish: the decision, and the events it made, as they are now."""

    decision: Decision
    event_ids: tuple[EventId, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self.decision.ledger.event(event_id) for event_id in self.event_ids)


def announce(
    ledger: Ledger,
    wish: Wish,
    *,
    now: datetime,
    new_id: Callable[[], EventId],
    rules: Periods,
    actor: Actor,
) -> Announced:
    """Put the events that a wish needs before the scope, and start those that need no waiting.

    No event is made for machines that are already as they shall be.

    Raises: Unknown, Refused.
    """
    scope = ledger.scope
    _check_cause(wish)
    _check_periods(wish)
    targets = wishes.targets(scope, wish)
    _refuse_uncertain(ledger, wish)
    groups = wishes.groups(targets)
    audience = _audience(ledger, wish)
    notice = _notice(scope, wish, audience)
    _check_user_operations(ledger, wish, len(groups))
    decision = Decision(ledger)
    event_ids: list[EventId] = []
    for group in groups:
        event = Event(
            id=new_id(),
            type=wish.type,
            source=wish.source,
            cause=wish.cause,
            audience=audience,
            machines=tuple(machine.name for machine in group),
            update_domain=group[0].update_domain,
            description=wishes.description(wish),
            duration=wish.duration,
            announced_by=actor.name,
            announced_at=now,
            notice=notice,
            not_before=periods.whole_second(now + notice + rules.margin),
        )
        event_ids.append(event.id)
        decision = ledgers.then(decision, _enter(decision.ledger, event, now, rules, actor))
    return Announced(decision, tuple(event_ids))


def _enter(ledger: Ledger, event: Event, now: datetime, rules: Periods, actor: Actor) -> Decision:
    """Write one event down; start it at once where nothing and nobody is waited for."""
    if event.cause is Cause.HARDWARE_FAILURE:
        return _strike(ledger, event, now, actor)
    if event.audience is Audience.GUESTS:
        event = replace(event, not_before=spacing.not_before(ledger, event, rules))
    decision = ledgers.note(ledger, What.ANNOUNCED, actor, now, event)
    if _is_auto_approved(ledger.scope, event):
        policy = Actor(Role.POLICY, _AUTO_APPROVAL[event.type].value)
        approved = starting.approve(decision.ledger, (event.id,), policy, now)
        decision = ledgers.then(decision, approved)
    decision = ledgers.then(decision, starting.approve_if_all_down(decision.ledger, now))
    return ledgers.then(decision, starting.start_if_free(decision.ledger, event.id, now, rules))


def _strike(ledger: Ledger, event: Event, now: datetime, actor: Actor) -> Decision:
    """A hardware failure: what runs on those machines is overtaken, and it is Started."""
    decision = Decision(ledger)
    for running in ledger.open_events:
        hit = [machine for machine in running.unfinished if machine in event.machines]
        if running.status is EventStatus.STARTED and hit:
            overtaken = running
            for machine in hit:
                outcome = Outcome(machine, Result.OVERTAKEN, now, f"by event {event.id}")
                overtaken = starting.conclude_and_maybe_complete(overtaken, outcome, now)
            what = What.OVERTAKEN if overtaken.is_open else What.COMPLETED
            text = f"overtaken by the hardware failure {event.id}"
            decision = ledgers.then(
                decision, ledgers.note(decision.ledger, what, SERVICE, now, overtaken, text)
            )
    struck = events.strike(event, now=now)
    return ledgers.then(
        decision,
        ledgers.note(decision.ledger, What.STARTED, actor, now, struck, "hardware failure"),
    )


def _check_cause(wish: Wish) -> None:
    """Not every impact can have every cause."""
    if wish.type is EventType.PREEMPT and wish.source is EventSource.USER:
        raise Refused("a Preempt is the platform's: leave the source out")
    if wish.cause is Cause.MAINTENANCE:
        return
    if wish.source is EventSource.USER or wish.type not in starting.MAINTENANCE_TYPES:
        raise Refused(
            f"a {wish.cause.value} is a Freeze, Reboot or Redeploy by the platform, "
            f"not a {wish.type.value} by the {wish.source.value.lower()}"
        )


def _check_periods(wish: Wish) -> None:
    if wish.notice is not None and wish.notice > periods.ANNOUNCED_AHEAD_MAX:
        raise Refused(
            f"a notice of {spell(wish.notice)} is too long: "
            f"give {spell(periods.ANNOUNCED_AHEAD_MAX)} at most"
        )
    if wish.duration is not None and not timedelta() <= wish.duration <= periods.DURATION_MAX:
        raise Refused(
            f"a duration of {spell(wish.duration)} cannot be: "
            f"give 0s to {spell(periods.DURATION_MAX)}"
        )


def _refuse_uncertain(ledger: Ledger, wish: Wish) -> None:
    """Refuse what depends on how another operation ends: whether the machine will run then.

    One that is going down is not "running already". Hardware asks nobody, and a machine can be
    deleted however that ends.
    """
    if wish.cause is Cause.HARDWARE_FAILURE or wish.type is EventType.TERMINATE:
        return
    names = {name.lower() for name in wish.machines}
    for event in ledger.open_events:
        is_certain = event.status is EventStatus.STARTED or event.audience is Audience.OPERATORS
        changes = event.type in presences.AFTER and is_certain
        shared = [name for name in event.machines if name.lower() in names]
        if changes and shared and presences.POWER_TYPES & {event.type, wish.type}:
            after = presences.AFTER[event.type].value
            raise Refused(
                f"{shared[0]} is about to be {after}, by {event.type.value} {event.id}: "
                "wait until that is over"
            )


def _audience(ledger: Ledger, wish: Wish) -> Audience:
    if wish.type not in ANNOUNCED_TYPES:
        is_told = wish.type is EventType.REIMAGE and ledger.is_enabled
        is_told = is_told and scopes.os_image_notice(ledger.scope) is not None
        return Audience.GUESTS if is_told else Audience.OPERATORS
    reason = _why_not_told(ledger, wish)
    if reason is None:
        return Audience.GUESTS
    # Hardware does not wait until somebody listens.
    if wish.cause is Cause.HARDWARE_FAILURE or wish.if_not_told is IfNotTold.RUN_UNANNOUNCED:
        return Audience.OPERATORS
    raise Refused(f"{reason}give --unannounced to go ahead without notice")


def _why_not_told(ledger: Ledger, wish: Wish) -> str | None:
    """Why guests would not be told, and what mends that; to be followed by another way."""
    scope = ledger.scope
    if not ledger.is_enabled:
        return (
            f"scope {scope.id} is not enabled: none of its VMs has asked for scheduled events "
            'in the last 24 hours; set enabled = "always" in the fleet file, or '
        )
    if wish.type is EventType.TERMINATE and scopes.terminate_notice(scope) is None:
        if scope.kind is not ScopeKind.SCALE_SET:
            return (
                f"scope {scope.id} is of kind {scope.kind.value}, and only VMs of a scale set are "
                "told of a Terminate; "
            )
        if scope.spot:
            return f"scope {scope.id} is a spot scale set, which has no terminate notification; "
        if scope.owner.terminate_notice == scopes.OFF:
            return f"the owner of scope {scope.id} has turned terminate notification off; "
        return (
            f"terminate notification is off for scope {scope.id}: "
            'set terminate_notice = "5m" (up to "15m") on the scale set in the fleet file, or '
        )
    return None


def _notice(scope: Scope, wish: Wish, audience: Audience) -> timedelta:
    """The notice to promise: what was asked for, never less than the minimum."""
    if wish.cause is Cause.HARDWARE_FAILURE and wish.notice is not None:
        raise Refused("a hardware failure gives no notice: leave the notice out")
    if audience is Audience.OPERATORS or wish.cause is Cause.HARDWARE_FAILURE:
        return timedelta()
    minimum = _minimum(scope, wish.type)
    if wish.notice is None:
        if wish.cause is Cause.PREDICTED_FAILURE:
            return max(minimum, periods.PREDICTED_FAILURE_NOTICE)
        return minimum
    if wish.notice < minimum:
        raise Refused(
            f"a notice of {spell(wish.notice)} is below the minimum of {spell(minimum)} "
            f"for {wish.type.value}: "
            "give at least that, or leave the notice out"
        )
    return wish.notice


def _minimum(scope: Scope, event_type: EventType) -> timedelta:
    chosen = {
        EventType.TERMINATE: scopes.terminate_notice(scope),
        EventType.REIMAGE: scopes.os_image_notice(scope),
    }
    minimum = chosen.get(event_type) or periods.MINIMUM_NOTICE.get(event_type)
    assert minimum is not None, "without one nobody is told"
    return minimum


def _check_user_operations(ledger: Ledger, wish: Wish, adding: int) -> None:
    limit = ledger.scope.user_operations_max
    if wish.source is not EventSource.USER or limit is None:
        return
    pending = ledger.user_operations
    if pending + adding > limit:
        raise Refused(
            f"scope {ledger.scope.id} allows {limit} user operations at one time and has {pending}: "
            "wait until some are over, or approve or cancel them"
        )


def _is_auto_approved(scope: Scope, event: Event) -> bool:
    return (
        event.source is EventSource.USER
        and event.audience is Audience.GUESTS
        and _AUTO_APPROVAL.get(event.type) in scopes.auto_approvals(scope)
    )
