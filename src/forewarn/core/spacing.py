"""Keeping update domains apart in time: when maintenance of one may be announced for.

An event would be held anyway while another update domain is down or recovers; announcing it for
a time when it can really start spares guests from draining for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from forewarn.core import periods, starting
from forewarn.core.events import Event, EventStatus
from forewarn.core.ledgers import Ledger
from forewarn.core.periods import Periods


def not_before(ledger: Ledger, event: Event, rules: Periods) -> datetime:
    """The event's NotBefore, or the first instant after it at which nothing is in the way.

    In the way of platform maintenance is that of other update domains, with the recovery that
    has to follow whichever of the two comes first. So what is announced days ahead leaves room for
    what can be over long before.
    """
    if not starting.is_maintenance(event):
        return event.not_before
    recovery = starting.recovery(ledger.scope, rules)
    takes = periods.expected_duration(event) + recovery
    earliest = event.not_before
    for begins, ends in sorted(_elsewhere(ledger, event)):
        if earliest + takes <= begins:
            break
        earliest = max(earliest, periods.whole_second(ends + recovery))
    return earliest


def _elsewhere(ledger: Ledger, event: Event) -> Iterator[tuple[datetime, datetime]]:
    """When maintenance of other update domains begins and ends, as far as one can tell."""
    for other in ledger.events:
        if not starting.is_maintenance(other) or other.update_domain == event.update_domain:
            continue
        if other.status is EventStatus.SCHEDULED:
            yield other.not_before, other.not_before + periods.expected_duration(other)
        elif other.started_at is not None:
            ends = other.ended_at
            if ends is None:
                # One that takes longer than expected is not over yet either.
                expected = other.started_at + periods.expected_duration(other)
                ends = max(expected, event.announced_at)
            yield other.started_at, ends
