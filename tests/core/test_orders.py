"""What a fabric is asked to do."""

from __future__ import annotations

from hypothesis import given

from forewarn.core import periods
from forewarn.core.events import Event
from forewarn.core.names import ScopeId
from forewarn.core.orders import Order, unfinished_orders
from forewarn.testing import strategies

SCOPE = ScopeId("rg1/web")


@given(strategies.events())
def test_there_is_one_order_for_every_machine_that_is_not_through(event: Event) -> None:
    duration = periods.expected_duration(event)

    assert unfinished_orders(SCOPE, event) == tuple(
        Order(event.id, SCOPE, machine, event.type, duration)
        for machine in event.machines
        if machine not in {outcome.machine for outcome in event.outcomes}
    )
