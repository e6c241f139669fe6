"""When to look at a ledger again: the next instant at which time alone changes something."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime
from typing import Final

from forewarn.core import events, starting
from forewarn.core.events import Audience, Event, EventStatus, Result
from forewarn.core.ledgers import Decision, Ledger, forgettable, then
from forewarn.core.names import EventId, MachineName
from forewarn.core.periods import Periods
from forewarn.core.values import replace

UNSERVED: Final = "the clock was set forward: its notice has not really passed"


def wake(ledger: Ledger, now: datetime, rules: Periods) -> datetime | None:
    """The next instant at which something must be done; `now` if there is something already."""
    instants = [
        instant
        for event in ledger.events
        if (instant := _wake_of(ledger, event, now, rules)) is not None
    ]
    return max(now, min(instants)) if instants else None


def _wake_of(ledger: Ledger, event: Event, now: datetime, rules: Periods) -> datetime | None:
    if event.is_open and event.audience is Audience.GUESTS and event.readable_at is None:
        return now
    if event.status is EventStatus.SCHEDULED:
        return _wake_of_scheduled(ledger, event, now, rules)
    if event.status is EventStatus.STARTED:
        # The fabric is asked at once; how often again is the conductor's affair.
        return now
    assert event.ended_at is not None, "an ended event knows since when"
    return event.ended_at + starting.remembered(ledger.scope, rules)


def _wake_of_scheduled(
    ledger: Ledger, event: Event, now: datetime, rules: Periods
) -> datetime | None:
    if starting.is_approved_if_all_down(ledger, event):
        return now
    if not events.is_due(event, now):
        return event.not_before
    holding = starting.hold(ledger, event, now, rules)
    if not holding or holding != event.hold:
        return now
    rested = starting.rested_at(ledger, event, rules)
    # Held by another event: its end is a change of the ledger, not a matter of time.
    return rested if rested is not None and rested > now else None


def overdue(ledger: Ledger, now: datetime, rules: Periods) -> tuple[tuple[Event, MachineName], ...]:
    """The orders that take too long and of which no alarm was raised yet."""
    late: list[tuple[Event, MachineName]] = []
    for event in ledger.events:
        if event.status is not EventStatus.STARTED:
            continue
        assert event.started_at is not None, "a started event knows since when"
        if now >= event.started_at + rules.limit(event):
            alarmed = {o.machine for o in event.outcomes if o.result is Result.TIMED_OUT}
            late.extend((event, m) for m in event.unfinished if m not in alarmed)
    return tuple(late)


def start_due(
    ledger: Ledger, now: datetime, rules: Periods, unserved: Container[EventId] = ()
) -> Decision:
    """Start every due event that nothing holds, oldest first; what nobody can approve is due.

    `unserved` are events whose notice has not really passed, whatever the time of day says:
    the clock was set forward. Only an approval starts those.
    """
    decision = starting.approve_if_all_down(ledger, now)
    for event in decision.ledger.events:
        if not events.is_due(event, now):
            continue
        if event.approval is None and event.id in unserved:
            # What other conductors say holds it stands: two of them must not take turns.
            if not event.hold:
                step = starting.hold_back(decision.ledger, event, UNSERVED, now)
                decision = then(decision, step)
            continue
        step = starting.start_if_free(decision.ledger, event.id, now, rules)
        decision = then(decision, step)
    return decision


def forget(ledger: Ledger, now: datetime, rules: Periods) -> Decision:
    """Drop the events that ended long ago; the journal still has them."""
    if not any(event.ended_at for event in ledger.events):
        return Decision(ledger)
    gone = set(forgettable(ledger, now - starting.remembered(ledger.scope, rules)))
    if not gone:
        return Decision(ledger)
    kept = tuple(event for event in ledger.events if event.id not in gone)
    return Decision(replace(ledger, events=kept))
