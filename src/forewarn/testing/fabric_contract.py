"""What every fabric promises. Subclass, and provide the fixtures that the tests ask for.

fabric      a fabric that knows nothing yet
order       one that it will carry out, on a machine of its own, and which takes a while
refused     one that it refuses
until_over  a function (fabric, order) that lets time pass until the impact must be over
impacts     a function (fabric, order) that counts how often the machine really felt it
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.events import EventType
from forewarn.core.names import EventId
from forewarn.core.orders import Order, Progress
from forewarn.core.rosters import Declaration
from forewarn.errors import Refused
from forewarn.ports.fabric import Fabric

UntilOver = Callable[[Fabric, Order], None]
Impacts = Callable[[Fabric, Order], int]

# Generous, as tests may run on a busy machine; any impact takes longer.
AT_ONCE = timedelta(seconds=1)


class FabricContract:
    def test_an_order_never_begun_is_unknown(self, fabric: Fabric, order: Order) -> None:
        assert fabric.observe(order).progress is Progress.UNKNOWN

    def test_observing_begins_nothing(
        self, fabric: Fabric, order: Order, impacts: Impacts, until_over: UntilOver
    ) -> None:
        fabric.observe(order)

        until_over(fabric, order)
        assert fabric.observe(order).progress is Progress.UNKNOWN
        assert impacts(fabric, order) == 0

    def test_an_order_begun_runs(self, fabric: Fabric, order: Order) -> None:
        fabric.begin(order)

        assert fabric.observe(order).progress is Progress.RUNNING

    def test_an_order_is_done_when_its_time_is_over(
        self, fabric: Fabric, order: Order, impacts: Impacts, until_over: UntilOver
    ) -> None:
        fabric.begin(order)

        until_over(fabric, order)
        assert fabric.observe(order).progress is Progress.DONE
        assert impacts(fabric, order) == 1

    def test_beginning_a_running_order_again_changes_nothing(
        self, fabric: Fabric, order: Order, impacts: Impacts, until_over: UntilOver
    ) -> None:
        fabric.begin(order)
        fabric.begin(order)

        until_over(fabric, order)
        assert fabric.observe(order).progress is Progress.DONE
        assert impacts(fabric, order) == 1

    def test_beginning_an_order_that_is_over_changes_nothing(
        self, fabric: Fabric, order: Order, impacts: Impacts, until_over: UntilOver
    ) -> None:
        fabric.begin(order)
        until_over(fabric, order)

        fabric.begin(order)

        assert fabric.observe(order).progress is Progress.DONE
        assert impacts(fabric, order) == 1

    def test_an_order_begun_by_many_at_once_is_carried_out_once(
        self, fabric: Fabric, order: Order, impacts: Impacts, until_over: UntilOver
    ) -> None:
        """Any number of conductors may run."""
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(fabric.begin, [order] * 64))

        until_over(fabric, order)
        assert fabric.observe(order).progress is Progress.DONE
        assert impacts(fabric, order) == 1

    def test_the_same_machine_in_another_event_is_another_order(
        self, fabric: Fabric, order: Order
    ) -> None:
        another = replace(order, event=EventId(f"{order.event}-another"))

        fabric.begin(order)

        assert fabric.observe(another).progress is Progress.UNKNOWN

    @pytest.mark.parametrize("impact", EventType)
    def test_every_impact_is_carried_out_once_or_refused(
        self,
        fabric: Fabric,
        order: Order,
        impact: EventType,
        impacts: Impacts,
        until_over: UntilOver,
    ) -> None:
        """Whatever machines may undergo can be asked for; a fabric need not be able to do it."""
        asked = replace(order, impact=impact)
        try:
            fabric.begin(asked)
        except Refused:
            expected, felt = Progress.UNKNOWN, 0
        else:
            expected, felt = Progress.DONE, 1

        until_over(fabric, asked)
        assert fabric.observe(asked).progress is expected
        assert impacts(fabric, asked) == felt

    def test_what_is_refused_was_not_begun(
        self, fabric: Fabric, refused: Order, impacts: Impacts, until_over: UntilOver
    ) -> None:
        with pytest.raises(Refused, match=r"\w"):
            fabric.begin(refused)

        until_over(fabric, refused)
        assert fabric.observe(refused).progress is Progress.UNKNOWN
        assert impacts(fabric, refused) == 0

    def test_every_call_returns_at_once(self, fabric: Fabric, order: Order) -> None:
        assert order.duration > AT_ONCE, "an impact that takes no time proves nothing here"

        began = time.monotonic()
        fabric.observe(order)
        fabric.begin(order)
        fabric.observe(order)
        fabric.begin(order)
        fabric.census()

        assert timedelta(seconds=time.monotonic() - began) < AT_ONCE

    def test_a_census_is_a_list_of_declarations_if_there_is_one(self, fabric: Fabric) -> None:
        census = fabric.census()

        assert census is None or all(isinstance(declared, Declaration) for declared in census)
