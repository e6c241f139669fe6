"""What must be done to a ledger that comes from a backup, before anybody reads it again.

Between the backup and now, guests may have seen anything. So incarnations leap over all that they
can have seen, no order that was given is given again, and nothing happens without full notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from forewarn.core import events, ledgers, periods, presences, spacing, starting
from forewarn.core.documents import INCARNATION_MAX
from forewarn.core.events import Audience, Event, EventStatus, Outcome, Result
from forewarn.core.journal import Actor, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import EventId, Incarnation
from forewarn.core.periods import Periods
from forewarn.errors import Refused

# A scope's document would have to change this often each second, day and night, to be overtaken.
CHANGES_PER_SECOND_MAX: Final = 10
JUMP_MIN: Final = 1_000_000


class Overdue(Enum):
    """What becomes of events that would have started since the backup."""

    CANCEL = "cancel"
    REANNOUNCE = "reannounce"


def jump(age: timedelta) -> int:
    """How far incarnations leap when a backup of this age is restored."""
    seconds = max(int(age.total_seconds()), 0)
    return JUMP_MIN + CHANGES_PER_SECOND_MAX * seconds


def restore(  # noqa: PLR0913 - the whole context of one decision
    ledger: Ledger,
    *,
    leap: int,
    overdue: Overdue,
    new_id: Callable[[], EventId],
    now: datetime,
    rules: Periods,
    actor: Actor,
) -> Decision:
    """The ledger as it may be served again. Raises: Refused if its numbers are used up."""
    incarnation = ledger.incarnation + leap
    if incarnation > INCARNATION_MAX:
        raise Refused(
            f"scope {ledger.scope.id} would get incarnation {incarnation}, beyond 2^31 - 1: "
            "this backup is too old to be restored safely"
        )
    leapt = replace(ledger, incarnation=Incarnation(incarnation))
    text = f"incarnation {ledger.incarnation} became {incarnation}"
    decision = ledgers.note(leapt, What.RESTORED, actor, now, None, text)
    for event in ledger.open_events:
        if event.status is EventStatus.STARTED:
            step = _give_up(decision.ledger, event, actor, now)
        else:
            # Its id may have come to an end since the backup, and never comes back.
            is_late = events.is_due(event, now) or event.not_before <= now
            why = "overdue after a restore" if is_late else "restored under a new id"
            step = starting.cancel(decision.ledger, event.id, actor, now, why)
            if overdue is Overdue.REANNOUNCE or not is_late:
                again = _again(step.ledger, event, new_id, now, rules, actor)
                step = ledgers.then(step, again)
        decision = ledgers.then(decision, step)
    return decision


def _give_up(ledger: Ledger, event: Event, actor: Actor, now: datetime) -> Decision:
    """End a started event without giving its orders again: they may be over long ago."""
    for machine in event.unfinished:
        event = events.conclude(event, Outcome(machine, Result.LOST, now, "restored from backup"))
    ended = events.complete(event, now=now)
    text = "outcome unknown: restored from a backup"
    return ledgers.note(ledger, What.COMPLETED, actor, now, ended, text)


def _again(
    ledger: Ledger,
    event: Event,
    new_id: Callable[[], EventId],
    now: datetime,
    rules: Periods,
    actor: Actor,
) -> Decision:
    """Announce the event anew, under a new id and with its full notice, to those still there."""
    there = {
        machine.name
        for machine in ledger.scope.machines
        if presences.is_concerned(event.type, machine.presence)
    }
    machines = tuple(name for name in event.machines if name in there)
    if event.audience is Audience.OPERATORS or not machines:
        return Decision(ledger)
    again = replace(
        event,
        id=new_id(),
        machines=machines,
        announced_by=actor.name,
        announced_at=now,
        not_before=max(event.not_before, periods.whole_second(now + event.notice + rules.margin)),
        earlier=(),
        readable_at=None,
        approval=None,
        hold="",
    )
    again = replace(again, not_before=spacing.not_before(ledger, again, rules))
    text = f"in the place of {event.id}, after a restore"
    return ledgers.note(ledger, What.ANNOUNCED, actor, now, again, text)
