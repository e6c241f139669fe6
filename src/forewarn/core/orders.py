"""What a fabric is asked to do, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from forewarn.core import periods
from forewarn.core.events import Event, EventType
from forewarn.core.names import EventId, MachineName, ScopeId


@dataclass(frozen=True, slots=True)
class Order:
    """One event's impact on one machine. Event and machine together are its identity."""

    event: EventId
    scope: ScopeId
    machine: MachineName
    impact: EventType
    # How long the impact is expected to take, e.g. how long to freeze.
    duration: timedelta


class Progress(Enum):
    """How far an order has come."""

    UNKNOWN = "unknown"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Report:
    """What a fabric says about an order; a failure says why."""

    progress: Progress
    detail: str = ""


def unfinished_orders(scope: ScopeId, event: Event) -> tuple[Order, ...]:
    """One order per machine whose impact is not over, always in the same sequence."""
    duration = periods.expected_duration(event)
    return tuple(
        Order(event.id, scope, machine, event.type, duration) for machine in event.unfinished
    )
