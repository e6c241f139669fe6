"""Scopes that are declared one by one, and what their owners do with them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.core.events import Audience, EventSource, EventStatus, EventType, Result
from forewarn.core.ledgers import Ledger
from forewarn.core.names import MachineName, Revision, ScopeId
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import (
    Enabling,
    Machine,
    Origin,
    OwnerPolicies,
    Presence,
    Scope,
    ScopeKind,
)
from forewarn.core.wishes import IfNotTold, Wish
from forewarn.errors import Conflict, Refused, Unknown
from forewarn.fabrics.simulated import Behaviour
from forewarn.ports.store import CommitId, Lease, Record, Write
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import FaultyStore
from forewarn.testing.worlds import NOON, OPERATOR, WEB, World

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
DB = Scope(
    name="db",
    resource_group="rg1",
    machines=(Machine(name=MachineName("db"), addresses=("10.0.2.1",)),),
    enabling=Enabling.ALWAYS,
)
BATCH = Scope(
    name="batch",
    resource_group="rg1",
    kind=ScopeKind.SCALE_SET,
    machines=tuple(
        Machine(name=MachineName(f"batch_{n}"), addresses=(f"10.0.3.{n}",)) for n in (1, 2)
    ),
    enabling=Enabling.ALWAYS,
)


class CountingStore(FaultyStore):
    """Counts how many records were asked for."""

    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__(MemoryStore(clock))
        self.scanned = 0

    def scan(self, prefix: str, after: str, limit: int) -> Sequence[Record]:
        self.scanned += 1
        return super().scan(prefix, after, limit)


class SlowStore(FaultyStore):
    """Takes its time to commit."""

    pause = 0.0

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        threading.Event().wait(self.pause)
        return super().commit(commit_id, writes, journal, lease)


def declare(world: World, scope: Scope, base: int | None = None) -> Ledger:
    revision = None if base is None else Revision(base)
    return world.parts.registrar.declare(Declaration(scope), Origin.API, OPERATOR, revision)


def operate(world: World, verb: EventType, *machines: str) -> tuple[EventStatus, ...]:
    """Do it, wait until it is over, and say how."""
    wish = Wish(
        type=verb,
        source=EventSource.USER,
        machines=machines,
        if_not_told=IfNotTold.RUN_UNANNOUNCED,
    )
    placed = world.desk.announce(wish, (), OPERATOR)
    world.advance(MINUTE)
    return tuple(world.event(p.event.id).status for p in placed)


def presences(world: World, scope: ScopeId) -> dict[str, str]:
    machines = world.parts.books.load(scope).scope.machines
    return {machine.name: machine.presence.value for machine in machines}


# -- declaring ---------------------------------------------------------------------------


def test_a_scope_is_opened_and_known_and_all_others_are_left_alone() -> None:
    world = World(WEB)
    before = world.parts.books.load(WEB.id)

    ledger = declare(world, DB)

    assert (ledger.revision, ledger.scope.origin) == (1, Origin.API)
    assert world.parts.books.load(WEB.id) == before
    assert world.caller("10.0.2.1").machine == "db"


def test_a_scope_is_changed_by_being_declared_again() -> None:
    world = World(WEB)
    declare(world, BATCH)
    added = Machine(name=MachineName("batch_3"), addresses=("10.0.3.3",))

    ledger = declare(world, replace(BATCH, machines=(BATCH.machines[0], added)))

    assert [m.name for m in ledger.scope.machines] == ["batch_1", "batch_3"]
    assert ledger.revision == 2
    assert world.parts.identities.identify("", "10.0.3.2") is None
    assert declare(world, ledger.scope).revision == 2


def test_no_other_ledger_is_read_for_one_scope() -> None:
    clock = SimulatedClock(NOON)
    store = CountingStore(clock)
    world = World(WEB, clock=clock, store=store)
    scanned = store.scanned

    declare(world, DB)

    assert store.scanned == scanned


def test_a_file_that_is_read_again_leaves_what_the_api_declared() -> None:
    world = World(WEB)
    declare(world, DB)
    world.parts.registrar.amend_policies(
        WEB.id, lambda said: replace(said, approve_reboot=True), OPERATOR, lambda _: "{}"
    )

    assert world.declare(WEB) == ()

    assert world.caller("10.0.2.1").machine == "db"
    scope = world.parts.books.load(WEB.id).scope
    assert (scope.owner, scope.kept) == (OwnerPolicies(approve_reboot=True), "{}")


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        (replace(WEB, machines=()), "rg1/web is declared by the file"),
        (
            replace(DB, machines=(replace(DB.machines[0], addresses=("::ffff:10.0.0.11",)),)),
            "10.0.0.11 is the address of web-1 of scope rg1/web and of db of scope rg1/db",
        ),
        (
            replace(
                BATCH, machines=tuple(replace(m, addresses=("10.0.3.9",)) for m in BATCH.machines)
            ),
            "10.0.3.9 is the address of batch_1 .* and of batch_2",
        ),
    ],
)
def test_what_another_source_or_machine_has_is_refused(scope: Scope, words: str) -> None:
    world = World(WEB)

    with pytest.raises(Refused, match=words):
        declare(world, scope)

    assert world.parts.directory.scopes() == (WEB.id,)


def test_who_has_an_address_in_another_group_is_not_told() -> None:
    world = World(WEB)
    thief = replace(DB, resource_group="rg2", machines=WEB.machines[:1])

    with pytest.raises(Refused, match="of a VM of another resource group and of") as refusal:
        declare(world, thief)

    assert "rg1" not in str(refusal.value)


def test_two_who_want_one_address_at_one_time_do_not_both_get_it() -> None:
    clock = SimulatedClock(NOON)
    store = SlowStore(MemoryStore(clock))
    world = World(WEB, clock=clock, store=store)
    registrar = replace(world.parts.registrar, turn=threading.Lock())
    store.pause = 0.1
    wanted = [replace(DB, resource_group=group) for group in ("rg1", "rg2")]

    def attempt(scope: Scope) -> bool:
        try:
            registrar.declare(Declaration(scope), Origin.API, OPERATOR)
        except Refused:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(attempt, wanted)) == [False, True]


def test_nothing_is_withdrawn_that_was_declared_since_somebody_looked() -> None:
    world = World(WEB)
    looked = declare(world, replace(BATCH, machines=()))
    declare(world, BATCH)

    with pytest.raises(Refused, match="changed meanwhile"):
        world.parts.registrar.withdraw(BATCH.id, Origin.API, OPERATOR, looked.revision)

    assert set(presences(world, BATCH.id)) == {"batch_1", "batch_2"}


def test_an_address_may_move_within_a_scope_and_is_free_once_its_machine_is_deleted() -> None:
    world = World()
    declare(world, BATCH)
    one, two = BATCH.machines
    swapped = (replace(one, addresses=two.addresses), replace(two, addresses=one.addresses))

    declare(world, replace(BATCH, machines=swapped))

    assert world.caller("10.0.3.1").machine == "batch_2"
    operate(world, EventType.TERMINATE, "batch_2")
    heir = replace(DB, machines=(replace(DB.machines[0], addresses=("10.0.3.1",)),))
    assert declare(world, heir).revision == 1


def test_whoever_read_another_revision_is_told_to_look_again() -> None:
    world = World()
    with pytest.raises(Conflict, match="ledger/rg1/batch"):
        declare(world, BATCH, base=1)
    assert declare(world, BATCH, base=0).revision == 1

    with pytest.raises(Conflict, match="ledger/rg1/batch"):
        declare(world, replace(BATCH, machines=()), base=0)

    assert declare(world, replace(BATCH, machines=()), base=1).revision == 2


@pytest.mark.parametrize("base", [None, 0])
def test_a_scope_that_somebody_else_opens_at_the_same_time_is_amended(base: int | None) -> None:
    clock = SimulatedClock(NOON)
    store = FaultyStore(MemoryStore(clock))
    world = World(clock=clock, store=store)
    rival = World(clock=clock, store=store)
    store.overtake(partial(declare, rival, replace(BATCH, machines=BATCH.machines[:1])))

    if base is None:
        assert len(declare(world, BATCH).scope.machines) == 2
    else:
        with pytest.raises(Conflict):
            declare(world, BATCH, base)


def test_a_scope_is_withdrawn_and_a_machine_removed_by_who_declared_it() -> None:
    world = World(WEB)
    declare(world, BATCH)
    registrar = world.parts.registrar

    assert len(registrar.remove(BATCH.id, "batch_1", OPERATOR).scope.machines) == 1
    assert registrar.withdraw(BATCH.id, Origin.API, OPERATOR).scope.origin is None

    with pytest.raises(Refused, match="declared by the file"):
        registrar.remove(WEB.id, "web-0", OPERATOR)
    with pytest.raises(Unknown, match="no scope rg1/nowhere"):
        registrar.withdraw(ScopeId("rg1/nowhere"), Origin.API, OPERATOR)


def test_what_is_kept_for_an_owner_is_made_of_what_is_kept_when_it_is_written() -> None:
    """Keeps S19: of two owners at once, neither takes away what the other sent."""
    world = World(WEB)
    registrar = world.parts.registrar
    registrar.keep(WEB.id, "web-1", lambda kept: kept + "a", OPERATOR)
    tries: list[str] = []

    def change(kept: str) -> str:
        tries.append(kept)
        if len(tries) == 1:
            registrar.keep(WEB.id, "web-1", lambda found: found + "b", OPERATOR)
        return kept + "c"

    registrar.keep(WEB.id, "web-1", change, OPERATOR)

    machine = world.parts.books.load(WEB.id).scope.machine("web-1")
    assert machine is not None
    assert machine.kept == "abc"


# -- operating ---------------------------------------------------------------------------


def test_a_machine_is_stopped_started_deallocated_and_deleted_and_guests_read_nothing() -> None:
    world = World()
    declare(world, BATCH)
    told: list[dict[str, str]] = []

    for verb in (EventType.POWER_OFF, EventType.START, EventType.DEALLOCATE, EventType.START):
        assert operate(world, verb, "rg1/batch/batch_1") == (EventStatus.COMPLETED,)
        told.append(presences(world, BATCH.id))

    assert [there["batch_1"] for there in told] == ["stopped", "running", "deallocated", "running"]
    assert {there["batch_2"] for there in told} == {"running"}
    assert world.document(BATCH.id).incarnation == 1
    assert [i.order.impact.value for i in world.fabric.impacts] == [
        "PowerOff",
        "Start",
        "Deallocate",
        "Start",
    ]


def test_what_is_so_already_is_answered_with_no_event() -> None:
    world = World(WEB)

    assert operate(world, EventType.START, "web-0", "web-1") == ()

    assert not world.journal()[1:]
    assert not world.fabric.impacts


def test_what_a_fabric_refuses_has_failed_and_changes_nothing() -> None:
    world = World(WEB)
    world.fabric.behave(MachineName("web-0"), Behaviour.REFUSES)
    wish = Wish(type=EventType.POWER_OFF, machines=("web-0",))

    (placed,) = world.desk.announce(wish, (), OPERATOR)
    world.settle()

    (outcome,) = world.event(placed.event.id).outcomes
    assert (outcome.result, outcome.detail) == (Result.FAILED, "web-0 refuses to poweroff")
    assert presences(world, WEB.id)["web-0"] == "running"


def test_a_deleted_machine_of_the_api_is_declared_anew() -> None:
    world = World()
    declare(world, DB)
    operate(world, EventType.TERMINATE, "db")
    assert presences(world, DB.id) == {"db": "deleted"}

    declare(world, DB)

    assert presences(world, DB.id) == {"db": "running"}
    assert world.caller("10.0.2.1").machine == "db"


def test_when_the_last_machine_goes_down_nobody_is_waited_for() -> None:
    world = World()
    declare(world, BATCH)
    reboot = world.announce(EventType.REBOOT, "batch_1")

    operate(world, EventType.POWER_OFF, "batch_2")
    assert world.event(reboot.id).status is EventStatus.SCHEDULED
    operate(world, EventType.POWER_OFF, "batch_1")

    event = world.event(reboot.id)
    assert event.approval is not None
    assert (event.approval.by, event.approval.role) == ("all-instances-down", "policy")
    assert event.status is EventStatus.STARTED


def test_an_owner_has_the_guests_told_before_a_reimage() -> None:
    world = World()
    declare(world, BATCH)
    world.parts.registrar.amend_policies(
        BATCH.id, lambda said: replace(said, os_image_notice=10 * MINUTE), OPERATOR
    )

    event = world.announce(EventType.REIMAGE, "batch_1", source=EventSource.USER)

    assert (event.audience, event.notice) == (Audience.GUESTS, 10 * MINUTE)
    assert [n.type for n in world.document(BATCH.id).notices] == [EventType.REBOOT]
    world.advance(11 * MINUTE)
    assert world.event(event.id).status is EventStatus.COMPLETED
    assert [i.order.impact for i in world.fabric.impacts] == [EventType.REIMAGE]
    assert presences(world, BATCH.id)["batch_1"] == Presence.RUNNING.value
