"""The true minimum: notice counts from the moment an event could be read."""

from __future__ import annotations

from datetime import datetime

from forewarn.core import events, ledgers, periods, spacing
from forewarn.core.events import Event, EventStatus
from forewarn.core.journal import SERVICE, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.periods import Periods
from forewarn.core.values import replace


def unpublished(ledger: Ledger) -> tuple[Event, ...]:
    """The events shown to guests of which nobody has written down that they are readable."""
    return tuple(e for e in ledgers.visible(ledger.events) if e.readable_at is None)


def publish(ledger: Ledger, now: datetime, rules: Periods) -> Decision:
    """Write down that the ledger's document is readable now.

    If publishing took longer than the margin, NotBefore is moved later first, so that the
    promised notice is a true minimum.
    """
    decision = Decision(ledger)
    for event in unpublished(ledger):
        readable = replace(event, readable_at=now)
        step = ledgers.note(decision.ledger, What.READABLE, SERVICE, now, readable)
        decision = ledgers.then(decision, step)
        earliest = periods.whole_second(now + event.notice)
        if event.status is EventStatus.SCHEDULED and event.not_before < earliest:
            to = spacing.not_before(decision.ledger, replace(readable, not_before=earliest), rules)
            moved = events.postpone(readable, to=to)
            text = f"publishing took long: from {event.not_before:%FT%TZ} to {to:%FT%TZ}"
            step = ledgers.note(decision.ledger, What.MOVED, SERVICE, now, moved, text)
            decision = ledgers.then(decision, step)
    return decision
