"""What people and guests ask for, and what they are told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.events import Audience, Cause, Event, EventSource, EventStatus, EventType, Result
from forewarn.core.journal import Role, What
from forewarn.core.scopes import AutoApproval, Enabling
from forewarn.core.wishes import IfNotTold, Wish
from forewarn.errors import (
    IllegalTransition,
    Malformed,
    Refused,
    Unavailable,
    Unknown,
    UnknownEvent,
)
from forewarn.service.desk import is_unannounced
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import Fault, FaultyStore
from forewarn.testing.worlds import NOON, OPERATOR, WEB, World

MINUTE = timedelta(minutes=1)
ASKING = replace(WEB, enabling=Enabling.ON_REQUEST)
OTHER = replace(
    WEB,
    resource_group="rg2",
    machines=tuple(
        replace(machine, addresses=(f"10.0.1.1{number}",))
        for number, machine in enumerate(WEB.machines)
    ),
)


def freeze(*machines: str) -> Wish:
    return Wish(type=EventType.FREEZE, machines=machines)


# -- announcing --------------------------------------------------------------------------


def test_a_wish_is_answered_with_its_events_once_they_are_durable() -> None:
    """keeps S18, S20."""
    world = World(WEB)

    placed = world.desk.announce(freeze("web-0", "web-1", "web-3"), (), OPERATOR)

    assert [p.event.machines for p in placed] == [("web-0", "web-3"), ("web-1",)]
    assert all(p.ledger.scope == WEB for p in placed)
    stored = world.parts.books.load(WEB.id)
    assert stored.events == tuple(p.event for p in placed)


def test_a_host_stands_for_its_machines_in_every_scope() -> None:
    """keeps S14, S20."""
    world = World(WEB, OTHER)

    placed = world.desk.announce(freeze(), ("host-0",), OPERATOR)

    assert [(p.ledger.scope.id, p.event.machines) for p in placed] == [
        ("rg1/web", ("web-0", "web-3")),
        ("rg2/web", ("web-0", "web-3")),
    ]


def test_a_machine_named_twice_is_meant_once() -> None:
    world = World(WEB)

    (placed,) = world.desk.announce(freeze("web-0", "rg1/WEB-0"), ("host-0",), OPERATOR)

    assert placed.event.machines == ("web-0", "web-3")


def test_a_wish_for_nothing_is_malformed() -> None:
    with pytest.raises(Malformed, match="at least one"):
        World(WEB).desk.announce(freeze(), (), OPERATOR)


@pytest.mark.parametrize(("machines", "hosts"), [(("web-9",), ()), ((), ("host-9",))])
def test_a_wish_for_something_unknown_is_refused(
    machines: tuple[str, ...], hosts: tuple[str, ...]
) -> None:
    with pytest.raises(Unknown):
        World(WEB).desk.announce(freeze(*machines), hosts, OPERATOR)


def test_a_wish_that_one_scope_refuses_is_announced_to_none() -> None:
    world = World(WEB, replace(OTHER, enabling=Enabling.ON_REQUEST))

    with pytest.raises(Refused, match="rg2/web is not enabled"):
        world.desk.announce(freeze(), ("host-0",), OPERATOR)

    assert world.desk.events() == ()


def test_an_announcement_that_is_overtaken_makes_each_event_once() -> None:
    store = FaultyStore(MemoryStore(World().clock))
    world = World(WEB, store=store)
    rival = World(store=store)
    store.overtake(lambda: rival.desk.announce(freeze("web-1"), (), OPERATOR))

    (placed,) = world.desk.announce(freeze("web-0"), (), OPERATOR)

    assert placed.event.machines == ("web-0",)
    assert [e.machines for e in placed.ledger.events] == [("web-1",), ("web-0",)]


def test_while_nobody_listens_an_operation_runs_at_once_if_that_was_asked_for() -> None:
    """keeps S13."""
    world = World(ASKING)
    wish = replace(freeze("web-0"), if_not_told=IfNotTold.RUN_UNANNOUNCED)

    (placed,) = world.desk.announce(wish, (), OPERATOR)

    assert is_unannounced(placed.event)
    assert placed.event.status is EventStatus.STARTED
    world.settle()
    assert [impact.order.machine for impact in world.fabric.impacts] == ["web-0"]
    assert world.document(WEB.id).notices == ()
    assert world.document(WEB.id).incarnation == 1


def test_a_user_operation_may_be_approved_by_policy() -> None:
    """keeps S16: it is shown, and it is Started at once."""
    world = World(replace(WEB, auto_approve=(AutoApproval.USER_REBOOT,)))

    event = world.announce(EventType.REBOOT, "web-0", source=EventSource.USER)

    assert event.status is EventStatus.STARTED
    assert event.approval is not None
    assert event.approval.role == Role.POLICY.value
    assert [notice.status for notice in world.document(WEB.id).notices] == [EventStatus.STARTED]


def test_user_operations_have_a_limit_at_one_time() -> None:
    """keeps S19."""
    world = World(replace(WEB, user_operations_max=1))
    first = world.announce(EventType.REBOOT, "web-0", source=EventSource.USER)

    with pytest.raises(Refused, match="allows 1 user operations"):
        world.announce(EventType.REBOOT, "web-1", source=EventSource.USER)

    world.desk.cancel(first.id, OPERATOR)
    world.announce(EventType.REBOOT, "web-1", source=EventSource.USER)


# -- approving ---------------------------------------------------------------------------


def test_any_machine_of_the_scope_may_approve_for_all_of_them() -> None:
    """keeps S16."""
    world = World(WEB)
    event = world.announce(EventType.REBOOT, "web-0", "web-3")

    world.approve("10.0.0.12", event.id)

    started = world.event(event.id)
    assert started.status is EventStatus.STARTED
    assert started.approval is not None
    assert (started.approval.by, started.approval.address) == ("web-2", "10.0.0.12")
    assert {impact.order.machine for impact in world.fabric.impacts} == {"web-0", "web-3"}


def test_ids_are_approved_however_they_are_spelled() -> None:
    world = World(WEB)
    event = world.announce(EventType.REBOOT, "web-0")

    world.approve("10.0.0.10", f"{{{event.id.lower()}}}")

    assert world.event(event.id).status is EventStatus.STARTED


def test_the_first_approval_is_the_one_on_record() -> None:
    """keeps N6."""
    world = World(WEB)
    event = world.announce(EventType.REBOOT, "web-0")
    world.desk.approve_as_guest(world.caller("10.0.0.11"), [event.id])

    world.approve("10.0.0.10", event.id, event.id)

    approval = world.event(event.id).approval
    assert approval is not None
    assert approval.by == "web-1"
    assert [e.what for e in world.journal()].count(What.APPROVED) == 1


def test_a_late_approval_is_accepted_and_changes_nothing() -> None:
    """keeps S16: an id that the scope had within the last day is understood."""
    world = World(WEB)
    event = world.announce(EventType.REBOOT, "web-0")
    world.advance(15 * MINUTE + timedelta(seconds=2))
    started = world.event(event.id)
    assert started.status is EventStatus.STARTED
    before = world.document(WEB.id)

    world.approve("10.0.0.10", event.id)

    assert world.event(event.id) == started
    assert world.document(WEB.id) == before
    world.advance(timedelta(hours=23))
    ended = world.event(event.id)
    assert ended.status is EventStatus.COMPLETED
    world.approve("10.0.0.10", event.id)
    assert world.event(event.id) == ended


def test_one_unknown_id_and_none_is_approved() -> None:
    """keeps S16."""
    world = World(WEB)
    event = world.announce(EventType.REBOOT, "web-0")

    with pytest.raises(UnknownEvent, match="no event NOBODY"):
        world.approve("10.0.0.10", event.id, "NOBODY")

    assert world.event(event.id).approval is None


def test_events_of_other_scopes_are_unknown() -> None:
    """keeps S14."""
    world = World(WEB, OTHER)
    (placed,) = world.desk.announce(freeze("rg2/web-0"), (), OPERATOR)

    with pytest.raises(UnknownEvent):
        world.approve("10.0.0.10", placed.event.id)

    assert world.event(placed.event.id).approval is None


def test_an_approval_is_not_news() -> None:
    """keeps S9."""
    world = World(WEB)
    event = world.announce(EventType.REBOOT, "web-0")
    before = world.document(WEB.id)

    world.desk.approve_as_guest(world.caller("10.0.0.10"), [event.id])

    assert world.document(WEB.id) == before


def test_an_approval_the_store_did_not_take_is_not_acknowledged() -> None:
    world = World()
    store = FaultyStore(MemoryStore(world.clock))
    world = World(WEB, clock=world.clock, store=store)
    event = world.announce(EventType.REBOOT, "web-0")
    store.spoil(Fault.AWAY)

    with pytest.raises(Unavailable):
        world.approve("10.0.0.10", event.id)

    assert world.event(event.id).approval is None


def test_several_are_approved_from_outside_together_or_not_at_all() -> None:
    """keeps N10: approval from outside the VM."""
    world = World(WEB)
    events = [world.announce(EventType.FREEZE, machine) for machine in ("web-0", "web-1")]
    ids = [event.id for event in events]

    with pytest.raises(UnknownEvent):
        world.desk.approve_together(WEB.id, [*ids, "nobody's"], OPERATOR)
    assert [world.event(event_id).approval for event_id in ids] == [None, None]
    world.desk.approve_together(WEB.id, ids, OPERATOR)

    assert all(world.event(event_id).approval for event_id in ids)


def test_an_operator_may_approve_from_outside() -> None:
    world = World(WEB)
    event = world.announce(EventType.REBOOT, "web-0")

    placed = world.desk.approve(event.id, OPERATOR)

    assert placed.event.approval is not None
    assert placed.event.approval.role == "operator"
    with pytest.raises(UnknownEvent):
        world.desk.approve("NOBODY", OPERATOR)


# -- enabling ----------------------------------------------------------------------------


def test_the_first_request_enables_the_scope() -> None:
    """keeps S13."""
    world = World(ASKING)
    caller = world.caller("10.0.0.10")
    assert not world.desk.posting(caller).is_enabled
    with pytest.raises(Refused, match="not enabled"):
        world.announce(EventType.FREEZE, "web-0")

    assert world.desk.hear(caller)
    world.desk.attend(caller)

    assert world.desk.posting(caller).is_enabled
    assert world.announce(EventType.FREEZE, "web-1").audience is Audience.GUESTS
    enabled = next(entry for entry in world.journal() if entry.what is What.ENABLED)
    assert (enabled.actor.name, enabled.actor.address) == ("web-0", "10.0.0.10")


def test_enabling_is_not_news() -> None:
    """keeps S9."""
    world = World(ASKING)
    before = world.document(WEB.id)

    world.desk.attend(world.caller("10.0.0.10"))

    assert world.document(WEB.id) == before


def test_being_heard_is_committed_once_an_hour_at_most() -> None:
    world = World(ASKING)
    caller = world.caller("10.0.0.10")
    world.desk.attend(caller)

    assert not world.desk.hear(caller)

    world.clock.advance(timedelta(hours=1))
    assert world.desk.hear(caller)
    world.desk.attend(caller)
    assert not world.desk.hear(caller)
    assert [e.what for e in world.journal()].count(What.ENABLED) == 1


def test_a_scope_that_is_always_enabled_need_not_be_heard() -> None:
    world = World(WEB)

    assert not world.desk.hear(world.caller("10.0.0.10"))


def test_an_approval_enables_too() -> None:
    """keeps S13: a day of silence touches no event that was announced before."""
    world = World(ASKING)
    caller = world.caller("10.0.0.10")
    world.desk.attend(caller)
    (placed,) = world.desk.announce(
        replace(freeze("web-0"), notice=timedelta(hours=30)), (), OPERATOR
    )
    world.advance(timedelta(hours=24))
    assert not world.desk.posting(caller).is_enabled
    assert [notice.id for notice in world.document(WEB.id).notices] == [placed.event.id]

    world.approve("10.0.0.10", placed.event.id)

    assert world.desk.posting(caller).is_enabled
    assert world.event(placed.event.id).status is EventStatus.STARTED
    assert world.desk.posting(caller).ledger.heard_at == NOON + timedelta(hours=24)


def test_a_refused_approval_neither_enables_nor_breaks_the_silence() -> None:
    """keeps S13."""
    world = World(ASKING)
    caller = world.caller("10.0.0.10")

    with pytest.raises(UnknownEvent):
        world.desk.approve_as_guest(caller, ["NOBODY"])
    assert not world.desk.posting(caller).is_enabled

    world.desk.attend(caller)
    world.settle()
    world.advance(timedelta(hours=23))
    with pytest.raises(UnknownEvent):
        world.desk.approve_as_guest(caller, ["NOBODY"])
    world.advance(timedelta(hours=1))
    assert not world.desk.posting(caller).is_enabled


# -- cancel, postpone, resolve -----------------------------------------------------------


def test_a_canceled_event_leaves_the_document_and_never_starts() -> None:
    """keeps S8, N5."""
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")

    placed = world.desk.cancel(event.id, OPERATOR)

    assert placed.event.status is EventStatus.CANCELED
    assert world.document(WEB.id).notices == ()
    world.advance(timedelta(hours=1))
    assert not world.fabric.impacts
    with pytest.raises(IllegalTransition):
        world.desk.cancel(event.id, OPERATOR)


@pytest.mark.parametrize(
    "by", [timedelta(hours=1), NOON + timedelta(hours=1, minutes=15, seconds=2)]
)
def test_an_event_is_postponed_by_a_while_or_to_an_instant(by: timedelta) -> None:
    """keeps N5, N6: every NotBefore shown is on record."""
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    before = world.document(WEB.id)

    placed = world.desk.postpone(event.id, by, OPERATOR)

    assert placed.event.not_before == event.not_before + timedelta(hours=1)
    assert placed.event.earlier == (event.not_before,)
    assert world.document(WEB.id).incarnation == before.incarnation + 1
    world.advance(timedelta(hours=1))
    assert world.event(event.id).status is EventStatus.SCHEDULED


@pytest.mark.parametrize(
    "by", [-MINUTE, timedelta(), timedelta.min, timedelta.max, 25 * 60 * MINUTE]
)
def test_an_event_is_moved_later_only_and_a_day_at_most(by: timedelta) -> None:
    """keeps N5."""
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")

    with pytest.raises(Refused):
        world.desk.postpone(event.id, by, OPERATOR)

    assert world.event(event.id) == event


@pytest.mark.parametrize("result", [Result.DONE, Result.FAILED])
def test_an_operators_word_ends_a_started_event(result: Result) -> None:
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    world.approve("10.0.0.10", event.id)

    placed = world.desk.resolve(event.id, result, OPERATOR)

    assert placed.event.status is EventStatus.COMPLETED
    assert [outcome.result for outcome in placed.event.outcomes] == [result]
    assert world.document(WEB.id).notices == ()
    with pytest.raises(IllegalTransition):
        world.desk.resolve(event.id, result, OPERATOR)


# -- looking up --------------------------------------------------------------------------


def test_events_of_all_scopes_are_listed_oldest_first() -> None:
    """keeps S23."""
    world = World(WEB, OTHER)
    later: list[Event] = []
    for name in ("rg2/web-0", "rg1/web-0"):
        world.clock.advance(MINUTE)
        (placed,) = world.desk.announce(freeze(name), (), OPERATOR)
        later.append(placed.event)

    listed = world.desk.events()

    assert [p.event for p in listed] == later
    assert [p.ledger.scope.id for p in listed] == ["rg2/web", "rg1/web"]


def test_an_event_nobody_announced_is_unknown() -> None:
    with pytest.raises(UnknownEvent):
        World(WEB).desk.event("NOBODY")


def test_a_hardware_failure_is_started_and_shown_at_once() -> None:
    """keeps S11: no notice can be given, and none is pretended."""
    world = World(WEB)
    running = world.announce(EventType.REBOOT, "web-0", "web-3")
    world.approve("10.0.0.10", running.id)
    failure = Wish(type=EventType.REDEPLOY, machines=("web-0",), cause=Cause.HARDWARE_FAILURE)

    (placed,) = world.desk.announce(failure, (), OPERATOR)

    assert placed.event.status is EventStatus.STARTED
    overtaken = world.event(running.id)
    assert overtaken.status is EventStatus.STARTED
    assert [(o.machine, o.result) for o in overtaken.outcomes] == [("web-0", Result.OVERTAKEN)]
    shown = [(n.id, n.status) for n in world.document(WEB.id).notices]
    assert shown == [(running.id, EventStatus.STARTED), (placed.event.id, EventStatus.STARTED)]
