"""Operations: begun with their events, ended by them, remembered for as long as the journal."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.core.events import EventSource, EventStatus, EventType, Result
from forewarn.core.journal import Actor, Role
from forewarn.core.operations import Operation, OperationStatus
from forewarn.core.wishes import IfNotTold, Wish
from forewarn.errors import Refused, Unknown
from forewarn.service import operations as service
from forewarn.service.operations import Errand
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import Fault, FaultyStore
from forewarn.testing.worlds import NOON, OPERATOR, WEB, World
from forewarn.wire import operations as wire

OLGA = Actor(Role.OWNER, "olga", "127.0.0.1")
ERRAND = Errand(verb="restart", resource="/vm/web-0", group="rg1", actor=OLGA)
DAY = timedelta(days=1)


def restart(*machines: str) -> Wish:
    return Wish(
        type=EventType.REBOOT,
        source=EventSource.USER,
        machines=tuple(f"rg1/web/{machine}" for machine in machines or ("web-0",)),
        if_not_told=IfNotTold.RUN_UNANNOUNCED,
    )


@pytest.fixture
def world() -> World:
    return World(replace(WEB, user_operations_max=3))


def finish(world: World, operation: Operation) -> None:
    """Let the guests approve all of it, and the machines come back."""
    world.approve("10.0.0.10", *operation.event_ids)
    world.advance(timedelta(minutes=5))


def restarted(world: World) -> World:
    """The service that is started next, over the same store."""
    return World(clock=world.clock, store=world.store, fabric=world.fabric)


def test_an_operation_lasts_as_long_as_its_event(world: World) -> None:
    """keeps S18: restarting a VM schedules a Reboot, and is over when that is."""
    begun = world.parts.operations.announce(ERRAND, restart())
    (event,) = (world.event(event_id) for event_id in begun.event_ids)
    assert (event.type, event.status) == (EventType.REBOOT, EventStatus.SCHEDULED)
    assert (begun.principal, begun.scope, begun.started_at) == (
        "olga",
        "rg1/web",
        event.announced_at,
    )

    assert world.parts.operations.find(begun.id) == begun
    finish(world, begun)

    found = world.parts.operations.find(begun.id.upper())
    assert found.status is OperationStatus.SUCCEEDED
    assert found.ending is not None
    assert found.ending.at == world.event(event.id).ended_at


def test_an_operation_follows_every_event_that_it_takes(world: World) -> None:
    begun = world.parts.operations.announce(ERRAND, restart("web-0", "web-1"))
    assert len(begun.event_ids) == 2

    world.approve("10.0.0.10", begun.event_ids[0])
    world.advance(timedelta(minutes=5))
    assert world.parts.operations.find(begun.id).status is OperationStatus.IN_PROGRESS
    world.approve("10.0.0.10", begun.event_ids[1])
    world.advance(timedelta(minutes=5))

    assert world.parts.operations.find(begun.id).status is OperationStatus.SUCCEEDED


def test_an_operation_and_its_event_are_committed_together(world: World) -> None:
    before = world.store.head()

    begun = world.parts.operations.announce(ERRAND, restart())

    (change,) = world.store.changes(before, 10)
    assert {touch.key for touch in change.touched} == {"ledger/rg1/web", f"operation/{begun.id}"}


def test_what_is_refused_leaves_no_operation(world: World) -> None:
    """keeps S19: the operation beyond the limit is refused."""
    for _ in range(3):
        world.parts.operations.announce(ERRAND, restart())

    with pytest.raises(Refused, match="allows 3 user operations"):
        world.parts.operations.announce(ERRAND, restart())

    assert len(world.store.scan(wire.OPERATION_PREFIX, "", 10)) == 3


def test_operations_survive_a_restart(world: World) -> None:
    begun = world.parts.operations.announce(ERRAND, restart())
    over = world.parts.operations.follow(ERRAND, WEB.id, ())

    after = restarted(world)
    assert after.parts.operations.find(begun.id) == begun
    assert after.parts.operations.find(over.id) == over
    finish(after, begun)

    assert restarted(after).parts.operations.find(begun.id).status is OperationStatus.SUCCEEDED


def test_an_operation_fails_as_its_event_does(world: World) -> None:
    begun = world.parts.operations.announce(ERRAND, restart())
    world.approve("10.0.0.10", *begun.event_ids)
    world.desk.resolve(begun.event_ids[0], Result.FAILED, OPERATOR)

    found = world.parts.operations.find(begun.id)

    assert found.ending is not None
    assert (found.status, found.ending.code) == (OperationStatus.FAILED, "OperationFailed")
    assert "web-0" in found.ending.message


def test_an_operation_is_canceled_by_its_owner(world: World) -> None:
    """keeps N5: who asked for it may call it off."""
    begun = world.parts.operations.announce(ERRAND, restart())

    world.desk.cancel(begun.event_ids[0], OLGA)

    assert world.parts.operations.find(begun.id).status is OperationStatus.CANCELED


def test_what_is_so_already_is_over_at_once(world: World) -> None:
    wish = replace(restart(), type=EventType.START)

    begun = world.parts.operations.announce(replace(ERRAND, verb="start"), wish)

    assert (begun.event_ids, begun.status) == ((), OperationStatus.SUCCEEDED)
    assert world.parts.operations.find(begun.id) == begun


def test_events_that_are_there_already_can_be_followed(world: World) -> None:
    event = world.announce(EventType.REBOOT, "web-1", source=EventSource.USER)

    joined = world.parts.operations.announce(ERRAND, restart(), (event.id,))
    followed = world.parts.operations.follow(ERRAND, WEB.id, (event.id,))

    assert joined.event_ids[0] == event.id
    assert len(joined.event_ids) == 2
    assert followed.event_ids == (event.id,)
    world.desk.cancel(event.id, OLGA)
    assert world.parts.operations.find(followed.id).status is OperationStatus.CANCELED
    assert world.parts.operations.find(joined.id).status is OperationStatus.IN_PROGRESS


def test_what_is_pending_is_approved_and_followed(world: World) -> None:
    """keeps N10: an approval from outside the VM."""
    event = world.announce(EventType.FREEZE, "web-0")
    errand = replace(ERRAND, verb="performMaintenance")

    begun = world.parts.operations.approve(
        errand, WEB.id, lambda ledger: [event.id for event in ledger.open_events]
    )

    approval = world.event(event.id).approval
    assert approval is not None
    assert (approval.by, approval.role) == ("olga", "owner")
    world.advance(timedelta(minutes=5))
    assert world.parts.operations.find(begun.id).status is OperationStatus.SUCCEEDED


def test_nothing_pending_is_over_at_once(world: World) -> None:
    begun = world.parts.operations.approve(ERRAND, WEB.id, lambda _: ())

    assert begun.status is OperationStatus.SUCCEEDED
    assert world.parts.operations.find(begun.id) == begun


def test_an_operation_that_nobody_began_is_unknown(world: World) -> None:
    with pytest.raises(Unknown, match="no operation"):
        world.parts.operations.find("00000000-0000-0000-0000-000000000000")


# -- longer than the ledger remembers ---------------------------------------------------------


def test_the_journal_knows_what_the_ledger_has_forgotten(world: World) -> None:
    begun = world.parts.operations.announce(ERRAND, restart())
    finish(world, begun)
    world.advance(3 * DAY)
    assert world.parts.books.load(WEB.id).find(begun.event_ids[0]) is None

    assert world.parts.operations.find(begun.id).status is OperationStatus.SUCCEEDED


def test_a_long_journal_is_read_to_its_end(world: World) -> None:
    begun = world.parts.operations.announce(ERRAND, restart())
    finish(world, begun)
    world.advance(3 * DAY)
    for _ in range(service.PAGE):
        world.parts.books.journalize(world.journal()[0])

    assert world.parts.operations.find(begun.id).status is OperationStatus.SUCCEEDED


def test_how_an_operation_ended_is_kept_when_it_was_found_out(world: World) -> None:
    begun = world.parts.operations.announce(ERRAND, restart())
    finish(world, begun)
    world.parts.operations.find(begun.id)
    world.advance(3 * DAY)
    world.parts.journals.prune(world.clock.now(), OPERATOR)

    assert world.parts.operations.find(begun.id).status is OperationStatus.SUCCEEDED


def test_what_even_the_journal_has_forgotten_is_no_success(world: World) -> None:
    begun = world.parts.operations.announce(ERRAND, restart())
    finish(world, begun)
    world.advance(3 * DAY)
    world.parts.journals.prune(world.clock.now(), OPERATOR)

    found = world.parts.operations.find(begun.id)

    assert found.ending is not None
    assert found.ending.code == "OperationOutcomeUnknown"


@pytest.mark.parametrize("fault", [Fault.AWAY, Fault.LOST_BEFORE, Fault.LOST_AFTER, Fault.CONFLICT])
def test_a_store_that_cannot_be_written_keeps_nobody_from_the_truth(fault: Fault) -> None:
    store = FaultyStore(MemoryStore(SimulatedClock(NOON)))
    world = World(WEB, store=store)
    begun = world.parts.operations.announce(ERRAND, restart())
    finish(world, begun)

    store.spoil(fault)
    found = world.parts.operations.find(begun.id)

    assert found.status is OperationStatus.SUCCEEDED
    assert world.parts.operations.find(begun.id) == found


def test_an_operation_whose_commit_was_in_doubt_is_begun_once() -> None:
    store = FaultyStore(MemoryStore(SimulatedClock(NOON)))
    world = World(WEB, store=store)

    store.spoil(Fault.LOST_AFTER, Fault.LOST_BEFORE)
    begun = world.parts.operations.announce(ERRAND, restart())

    assert world.parts.operations.find(begun.id) == begun
    assert len(world.desk.events()) == 1


# -- pruned with the journal -------------------------------------------------------------------


def test_operations_are_forgotten_with_the_journal(world: World) -> None:
    over = world.parts.operations.announce(ERRAND, restart())
    finish(world, over)
    world.advance(DAY)
    before = world.clock.now()
    recent = world.parts.operations.follow(ERRAND, WEB.id, ())
    open_one = world.parts.operations.announce(ERRAND, restart("web-1"))

    assert world.parts.operations.prune(before) == 1
    assert world.parts.operations.prune(before) == 0

    assert world.parts.operations.find(recent.id) == recent
    assert world.parts.operations.find(open_one.id) == open_one
    with pytest.raises(Unknown):
        world.parts.operations.find(over.id)


def test_many_operations_are_pruned_page_by_page(world: World) -> None:
    for _ in range(service.PAGE + 1):
        world.parts.operations.follow(ERRAND, WEB.id, ())

    assert world.parts.operations.prune(world.clock.now() + DAY) == service.PAGE + 1
    assert not world.store.scan(wire.OPERATION_PREFIX, "", 1)
