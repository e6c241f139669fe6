"""What the promises measure with: their numbers, and which events they speak of.

Written down once more on purpose: they are what was promised, whatever the core says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from forewarn.core.events import Audience, Cause, Event, EventSource, EventStatus, EventType
from forewarn.core.ledgers import Ledger
from forewarn.core.scopes import AutoApproval, Scope
from forewarn.testing.witnesses import Commit, Start, Witness

MINUTE: Final = timedelta(minutes=1)
RECOVERY: Final = 30 * MINUTE
MINIMUM: Final = {
    EventType.FREEZE: 15 * MINUTE,
    EventType.REBOOT: 15 * MINUTE,
    EventType.REDEPLOY: 10 * MINUTE,
    EventType.PREEMPT: timedelta(seconds=30),
    EventType.TERMINATE: 5 * MINUTE,
}
# As guests read times.
RFC1123: Final = "%a, %d %b %Y %H:%M:%S GMT"


def changed(seen: Witness) -> Iterator[tuple[Event | None, Event]]:
    """Every event that a commit changed, before and after."""
    for commit in seen.commits:
        for after in commit.after.events:
            before = commit.before.find(after.id) if commit.before else None
            if before != after:
                yield before, after


def new(commit: Commit) -> Iterator[Event]:
    for event in commit.after.events:
        if commit.before is None or commit.before.find(event.id) is None:
            yield event


def is_told_ahead(event: Event) -> bool:
    return event.audience is Audience.GUESTS and event.cause is not Cause.HARDWARE_FAILURE


def needs_notice(start: Start) -> bool:
    """Whether nobody and nothing allowed the event to start at once."""
    return is_told_ahead(start.event) and start.event.approval is None


def minimum(event: Event, scope: Scope) -> timedelta:
    chosen = {
        EventType.TERMINATE: scope.owner.terminate_notice or scope.terminate_notice,
        EventType.REIMAGE: scope.owner.os_image_notice,
    }
    return max(chosen.get(event.type) or timedelta(), MINIMUM.get(event.type, timedelta()))


def is_auto_approved(event: Event, scope: Scope) -> bool:
    policies = {
        EventType.REBOOT: AutoApproval.USER_REBOOT,
        EventType.REDEPLOY: AutoApproval.USER_REDEPLOY,
    }
    said = {
        EventType.REBOOT: scope.owner.approve_reboot,
        EventType.REDEPLOY: scope.owner.approve_redeploy,
    }.get(event.type)
    declared = policies.get(event.type) in scope.auto_approve
    return event.source is EventSource.USER and (declared if said is None else said)


def latest(shown: Iterable[str]) -> datetime:
    """The latest NotBefore that guests read; what has started shows none."""
    read = [datetime.strptime(f"{text} +0000", f"{RFC1123} %z") for text in shown if text]
    return max(read)


def recovery(scope: Scope) -> timedelta:
    return RECOVERY if scope.recovery is None else scope.recovery


def is_maintenance(event: Event) -> bool:
    kinds = (EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY)
    return event.source is EventSource.PLATFORM and event.type in kinds


def are_apart(one: Event, other: Event) -> bool:
    """Whether both are platform maintenance, of different update domains."""
    are_maintenance = is_maintenance(one) and is_maintenance(other)
    return are_maintenance and one.update_domain != other.update_domain


def may_wait(event: Event, ledger: Ledger, now: datetime) -> bool:
    """Whether something keeps a due event from starting that is allowed to."""
    for other in ledger.events:
        elsewhere = is_maintenance(event) and event.update_domain != other.update_domain
        shared = set(other.machines) & set(event.machines)
        if other.status is EventStatus.STARTED and (elsewhere or shared):
            return True
        if other.status is EventStatus.COMPLETED and are_apart(event, other):
            assert other.ended_at is not None
            if now < other.ended_at + recovery(ledger.scope):
                return True
    return False
