"""What each impact takes, step by step; which machines are fit for it, and what they are meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from forewarn.core.events import EventType
from forewarn.core.orders import Order
from forewarn.errors import Refused
from forewarn.fabrics.libvirt.census import Lodger
from forewarn.fabrics.libvirt.descriptions import describe
from forewarn.fabrics.libvirt.dockets import Docket, Step
from forewarn.fabrics.libvirt.surveys import Resident, Sight, State

PLANS: Final[Mapping[EventType, tuple[Step, ...]]] = {
    EventType.FREEZE: (Step.PAUSE, Step.RESUME),
    EventType.REBOOT: (Step.STOP, Step.START),
    EventType.REDEPLOY: (
        Step.MEASURE,
        Step.STOP,
        Step.DISCARD,
        # The source forgets before the target starts: a machine never runs twice.
        Step.DEFINE,
        Step.UNDEFINE,
        Step.RENEW,
        Step.START,
    ),
    # A preempted machine may be started again some day, with empty disks.
    EventType.PREEMPT: (Step.MEASURE, Step.DESTROY, Step.RENEW),
    EventType.TERMINATE: (Step.DESTROY, Step.DISCARD, Step.UNDEFINE),
    EventType.POWER_OFF: (Step.STOP,),
    EventType.DEALLOCATE: (Step.MEASURE, Step.STOP, Step.RENEW),
    EventType.START: (Step.START,),
}
MIGRATION: Final = (Step.MIGRATE,)
RETREAT: Final = (Step.RETREAT, Step.RENEW, Step.START)

STOPPING: Final = frozenset({Step.STOP, Step.DESTROY})
# Not to be taken while it runs where it was: its disks are touched, or it is started elsewhere.
WHILE_OFF: Final = frozenset(
    {Step.DISCARD, Step.DEFINE, Step.UNDEFINE, Step.RENEW, Step.FILL, Step.START}
)
# Where its being gone from where it was might be taken for its being off.
WATCHFUL: Final = STOPPING | WHILE_OFF | {Step.MEASURE, Step.RETREAT}


def inherit(docket: Docket, other: Docket) -> Docket:
    """An order that overtakes another, with what that leaves to it: a machine down, or without disks."""
    steps = docket.steps
    is_going_down = Step.START in other.steps and other.steps[0] is not Step.MEASURE
    if is_going_down and docket.impact is EventType.FREEZE:
        # There is nobody to be frozen.
        docket = replace(docket, target=None)
        steps = PLANS[EventType.REBOOT]
    if other.volumes and Step.START in steps and Step.RENEW not in steps:
        at = steps.index(Step.START)
        steps = (*steps[:at], Step.FILL, *steps[at:])
    return replace(docket, steps=steps, volumes=other.volumes)


def in_hand(docket: Docket, resident: Resident | None) -> Resident:
    """A domain that an order has in its hands: what it was when the order came."""
    if resident is not None and resident.is_active:
        return resident
    state = State.OFF if docket.number is None else State.RUNNING
    sight = Sight(state, docket.number, docket.is_persistent)
    if resident is not None:
        return replace(resident, sight=sight)
    return Resident(describe(docket.xml), sight, docket.xml, docket.starts_with_host)


def refuse_unfit(order: Order, lodger: Lodger) -> None:
    """Refuse what cannot be done to a machine as it is."""
    name, state = order.machine, lodger.resident.sight.state
    host = lodger.machine.host
    if order.impact is EventType.START:
        if state is not State.OFF:
            raise Refused(f"{name} runs already on {host}")
    elif order.impact in (EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY):
        if state is State.OFF:
            raise Refused(f"{name} is off on {host}: it cannot undergo {order.impact.value}")
        if state is State.PAUSED and order.impact is EventType.FREEZE:
            raise Refused(f"{name} is paused already on {host}: resume it first")
