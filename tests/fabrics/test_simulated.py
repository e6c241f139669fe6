"""The simulated fabric: the contract, and everything it does when told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.core.events import EventType
from forewarn.core.names import EventId, MachineName, ScopeId
from forewarn.core.orders import Order, Progress, Report
from forewarn.errors import Refused, Unavailable, Unknown
from forewarn.fabrics.simulated import Behaviour, Impact, SimulatedFabric
from forewarn.ports.fabric import Fabric
from forewarn.testing.fabric_contract import FabricContract, Impacts, UntilOver

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
WEB_0 = MachineName("web-0")
WEB_1 = MachineName("web-1")
FREEZE = Order(EventId("E1"), ScopeId("rg1/web"), WEB_0, EventType.FREEZE, timedelta(seconds=9))
RUNNING = Report(Progress.RUNNING)
DONE = Report(Progress.DONE)
UNKNOWN = Report(Progress.UNKNOWN)
MOMENT = timedelta(microseconds=1)


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock(NOON)


@pytest.fixture
def fabric(clock: SimulatedClock) -> SimulatedFabric:
    return SimulatedFabric(clock)


class TestSimulatedFabric(FabricContract):
    @pytest.fixture
    def order(self) -> Order:
        return FREEZE

    @pytest.fixture
    def refused(self, fabric: SimulatedFabric) -> Order:
        fabric.behave(WEB_1, Behaviour.REFUSES)
        return replace(FREEZE, machine=WEB_1)

    @pytest.fixture
    def until_over(self, clock: SimulatedClock) -> UntilOver:
        def pass_time(_: Fabric, order: Order) -> None:
            clock.advance(order.duration)

        return pass_time

    @pytest.fixture
    def impacts(self) -> Impacts:
        def count(fabric: Fabric, order: Order) -> int:
            assert isinstance(fabric, SimulatedFabric)
            return [impact.order for impact in fabric.impacts].count(order)

        return count


def test_an_order_takes_as_long_as_it_says(fabric: SimulatedFabric, clock: SimulatedClock) -> None:
    fabric.begin(FREEZE)

    clock.advance(FREEZE.duration - MOMENT)
    assert fabric.observe(FREEZE) == RUNNING

    clock.advance(MOMENT)
    assert fabric.observe(FREEZE) == DONE


def test_a_hurried_fabric_takes_as_long_as_it_was_told(clock: SimulatedClock) -> None:
    fabric = SimulatedFabric(clock, takes=timedelta(seconds=1))
    fabric.begin(FREEZE)

    clock.advance(timedelta(seconds=1) - MOMENT)
    assert fabric.observe(FREEZE) == RUNNING

    clock.advance(MOMENT)
    assert fabric.observe(FREEZE) == DONE


def test_what_is_said_of_one_machine_and_impact_is_said_of_no_other(
    fabric: SimulatedFabric, clock: SimulatedClock
) -> None:
    other = replace(FREEZE, machine=WEB_1)
    reboot = replace(FREEZE, event=EventId("another"), impact=EventType.REBOOT)
    fabric.take(FREEZE.machine, FREEZE.impact, timedelta(minutes=5))
    for order in (FREEZE, other, reboot):
        fabric.begin(order)

    clock.advance(timedelta(minutes=5) - MOMENT)
    assert [fabric.observe(order) for order in (FREEZE, other, reboot)] == [RUNNING, DONE, DONE]

    clock.advance(MOMENT)
    assert fabric.observe(FREEZE) == DONE


def test_a_clock_that_jumps_ends_nothing(fabric: SimulatedFabric, clock: SimulatedClock) -> None:
    fabric.begin(FREEZE)

    clock.jump(timedelta(days=1))

    assert fabric.observe(FREEZE) == RUNNING


def test_impacts_tell_what_began_and_when(fabric: SimulatedFabric, clock: SimulatedClock) -> None:
    other = replace(FREEZE, machine=WEB_1)

    fabric.begin(FREEZE)
    clock.advance(timedelta(minutes=1))
    fabric.begin(other)
    fabric.begin(FREEZE)

    assert fabric.impacts == [
        Impact(FREEZE, NOON),
        Impact(other, NOON + timedelta(minutes=1)),
    ]


def test_a_machine_that_fails_takes_its_time_first(
    fabric: SimulatedFabric, clock: SimulatedClock
) -> None:
    fabric.behave(WEB_0, Behaviour.FAILS)
    fabric.begin(FREEZE)
    assert fabric.observe(FREEZE) == RUNNING

    clock.advance(FREEZE.duration)

    assert fabric.observe(FREEZE) == Report(Progress.FAILED, "web-0 was told to fail")


def test_a_machine_that_hangs_is_over_when_it_obeys_again(
    fabric: SimulatedFabric, clock: SimulatedClock
) -> None:
    fabric.behave(WEB_0, Behaviour.HANGS)
    fabric.begin(FREEZE)
    clock.advance(timedelta(days=1))
    assert fabric.observe(FREEZE) == RUNNING

    fabric.behave(WEB_0, Behaviour.OBEYS)

    assert fabric.observe(FREEZE) == DONE


def test_a_refusal_names_the_machine_and_the_impact(fabric: SimulatedFabric) -> None:
    fabric.behave(WEB_0, Behaviour.REFUSES)

    with pytest.raises(Refused, match="web-0 refuses to freeze"):
        fabric.begin(FREEZE)


def test_a_machine_may_refuse_what_comes_and_still_end_what_runs(
    fabric: SimulatedFabric, clock: SimulatedClock
) -> None:
    fabric.begin(FREEZE)
    fabric.behave(WEB_0, Behaviour.REFUSES)

    fabric.begin(FREEZE)
    clock.advance(FREEZE.duration)

    assert fabric.observe(FREEZE) == DONE


@pytest.mark.parametrize("passed", [timedelta(), FREEZE.duration])
def test_a_forgotten_order_is_unknown_and_its_impact_happens_again(
    fabric: SimulatedFabric, clock: SimulatedClock, passed: timedelta
) -> None:
    fabric.behave(WEB_0, Behaviour.FORGETS)
    assert fabric.observe(FREEZE) == UNKNOWN
    fabric.begin(FREEZE)
    clock.advance(passed)

    assert fabric.observe(FREEZE) == UNKNOWN
    fabric.begin(FREEZE)

    assert fabric.observe(FREEZE) == RUNNING
    assert [impact.order for impact in fabric.impacts] == [FREEZE, FREEZE]


def test_an_unreachable_machine_says_nothing_and_others_do(
    fabric: SimulatedFabric, clock: SimulatedClock
) -> None:
    fabric.begin(FREEZE)
    fabric.behave(WEB_0, Behaviour.UNREACHABLE)

    with pytest.raises(Unavailable, match="web-0 cannot be reached"):
        fabric.observe(FREEZE)
    with pytest.raises(Unavailable):
        fabric.begin(FREEZE)
    assert fabric.observe(replace(FREEZE, machine=WEB_1)) == UNKNOWN

    clock.advance(FREEZE.duration)
    fabric.behave(WEB_0, Behaviour.OBEYS)
    assert fabric.observe(FREEZE) == DONE


def test_what_is_over_stays_over_however_its_machine_behaves_later(
    fabric: SimulatedFabric, clock: SimulatedClock
) -> None:
    fabric.begin(FREEZE)
    clock.advance(FREEZE.duration)

    fabric.behave(WEB_0, Behaviour.FAILS)

    assert fabric.observe(FREEZE) == DONE


def test_an_order_can_be_ended_by_hand(fabric: SimulatedFabric) -> None:
    other = replace(FREEZE, machine=WEB_1)
    fabric.behave(WEB_0, Behaviour.HANGS)
    fabric.begin(FREEZE)
    fabric.begin(other)

    fabric.finish(FREEZE.event, WEB_0)
    fabric.fail(FREEZE.event, WEB_1, "disk on fire")

    assert fabric.observe(FREEZE) == DONE
    assert fabric.observe(other) == Report(Progress.FAILED, "disk on fire")


def test_an_order_ends_once(fabric: SimulatedFabric) -> None:
    fabric.begin(FREEZE)
    fabric.finish(FREEZE.event, WEB_0)

    fabric.fail(FREEZE.event, WEB_0)

    assert fabric.observe(FREEZE) == DONE


def test_what_was_never_begun_cannot_be_ended(fabric: SimulatedFabric) -> None:
    with pytest.raises(Unknown, match="no order of event E1 for web-0 was begun"):
        fabric.finish(FREEZE.event, WEB_0)
    with pytest.raises(Unknown):
        fabric.fail(FREEZE.event, WEB_0)


def test_only_the_oldest_ended_orders_are_forgotten(clock: SimulatedClock) -> None:
    """A service that runs for years does not grow; what still runs is never forgotten."""
    fabric = SimulatedFabric(clock, remembered_max=10)
    fabric.behave(WEB_1, Behaviour.HANGS)
    hanging = replace(FREEZE, machine=WEB_1)
    fabric.begin(hanging)
    orders = [replace(FREEZE, event=EventId(f"E{n}")) for n in range(2, 32)]

    # Nobody looks at any of them in the meantime.
    for order in orders:
        fabric.begin(order)
        clock.advance(order.duration)

    assert fabric.observe(hanging) == RUNNING
    assert fabric.observe(orders[-1]) == DONE
    assert fabric.observe(orders[0]) == UNKNOWN
    known = [order for order in orders if fabric.observe(order) == DONE]
    assert known == orders[-len(known) :]
    assert len(fabric.impacts) == 10
