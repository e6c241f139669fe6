"""The fleet, in step with its sources."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.core.events import EventStatus, EventType
from forewarn.core.journal import What
from forewarn.core.names import HostName, MachineName
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import Machine, Origin, Presence, Scope
from forewarn.errors import Conflict, Refused
from forewarn.ports.store import Cursor
from forewarn.service.registrar import ATTEMPTS_MAX, SCOPES_PER_COMMIT
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import FaultyStore
from forewarn.testing.worlds import NOON, OPERATOR, WEB, World

DB = Scope(name="db", machines=(Machine(name=MachineName("db"), addresses=("10.0.2.1",)),))


def names(world: World, scope: Scope = WEB) -> list[str]:
    return [machine.name for machine in world.parts.books.load(scope.id).scope.machines]


def commits(world: World) -> int:
    return len(world.store.changes(Cursor(""), 100_000))


def test_what_a_source_declares_is_there_and_known() -> None:
    """keeps S14."""
    world = World()

    told = world.declare(WEB, DB)

    assert told == (
        "rg1/web: added web-0, added web-1, added web-2, added web-3",
        "default/db: added db",
    )
    assert names(world) == ["web-0", "web-1", "web-2", "web-3"]
    assert world.caller("10.0.2.1").scope == DB.id
    assert world.document(WEB.id).notices == ()


def test_declaring_the_same_again_changes_nothing() -> None:
    world = World(WEB, DB)
    before = commits(world)

    assert world.declare(WEB, DB) == ()

    assert commits(world) == before


def test_an_empty_scope_is_opened_without_a_word() -> None:
    world = World()

    assert world.declare(Scope(name="later")) == ()

    assert world.parts.directory.scopes() == ("default/later",)


def test_changes_are_told_a_line_each() -> None:
    world = World(WEB, DB)
    moved = replace(WEB.machines[0], host=HostName("host-9"))
    added = Machine(name=MachineName("web-4"), addresses=("10.0.0.14",))
    changed = replace(WEB, location="west", machines=(moved, *WEB.machines[2:], added))

    told = world.declare(changed, DB)

    assert told == (
        "rg1/web: added web-4, removed web-1, changed web-0, changed the scope's settings",
    )
    assert names(world) == ["web-0", "web-2", "web-3", "web-4"]
    entry = world.journal()[-1]
    assert (entry.what, entry.actor) == (What.ROSTER, OPERATOR)


def test_update_domains_are_assigned_where_none_is_given() -> None:
    """keeps S15."""
    world = World()
    machines = tuple(Machine(name=MachineName(f"m{number}")) for number in range(5))
    scope = Scope(name="set", machines=machines, update_domains=3)

    world.parts.registrar.apply([Declaration(scope)], Origin.FILE, OPERATOR)

    stored = world.parts.books.load(scope.id).scope
    assert [machine.update_domain for machine in stored.machines] == [0, 1, 2, 0, 1]


def test_a_source_changes_and_removes_only_its_own() -> None:
    world = World(WEB)
    more = Machine(name=MachineName("web-9"), addresses=("10.0.0.19",))
    world.declare(replace(WEB, machines=(more,)), origin=Origin.API)
    assert names(world) == ["web-0", "web-1", "web-2", "web-3", "web-9"]

    world.declare(replace(WEB, machines=WEB.machines[:1]))
    assert names(world) == ["web-0", "web-9"]

    world.declare(origin=Origin.API)
    assert names(world) == ["web-0"]


def test_a_machine_of_two_sources_is_refused_and_nothing_is_committed() -> None:
    world = World(WEB)
    before = commits(world)

    with pytest.raises(Refused, match="declared by the file and by the api"):
        world.declare(DB, replace(WEB, machines=WEB.machines[:1]), origin=Origin.API)

    assert commits(world) == before
    assert world.parts.directory.scopes() == (WEB.id,)


def test_a_file_may_put_whom_a_census_found_into_another_scope() -> None:
    world = World()
    found = Machine(name=MachineName("web-0"), addresses=("10.0.0.10",), vm_id="one")
    world.declare(Scope(name="web-0", machines=(found,)), DB, origin=Origin.CENSUS)

    told = world.declare(Scope(name="set", machines=(found,)))

    assert told == ("default/set: added web-0", "default/web-0: removed web-0")
    assert world.caller("10.0.0.10").scope == "default/set"
    assert names(world, DB) == ["db"]


@pytest.mark.parametrize("origin", Origin)
def test_an_address_of_two_machines_is_refused_and_nothing_is_committed(origin: Origin) -> None:
    world = World(WEB)
    before = commits(world)
    thief = replace(DB, machines=(replace(DB.machines[0], addresses=("10.0.0.11",)),))
    declared = (WEB, thief) if origin is Origin.FILE else (thief,)

    with pytest.raises(Refused, match=f"web-1 of .*the file.* db of .*the {origin.value}"):
        world.declare(*declared, origin=origin)

    assert commits(world) == before


def test_the_address_of_a_deleted_machine_is_free() -> None:
    world = World(WEB)
    event = world.announce(EventType.TERMINATE, "web-1")
    world.approve("10.0.0.10", event.id)
    world.advance(timedelta(minutes=1))
    heir = replace(DB, machines=(replace(DB.machines[0], addresses=("10.0.0.11",)),))

    world.declare(WEB, heir)

    assert world.caller("10.0.0.11").machine == "db"
    deleted = world.parts.books.load(WEB.id).scope.machine("web-1")
    assert deleted is not None
    assert deleted.presence is Presence.DELETED


def test_an_address_may_move_from_one_scope_to_another() -> None:
    world = World(WEB, DB)
    heir = replace(DB, machines=(replace(DB.machines[0], addresses=("10.0.0.13",)),))

    world.declare(replace(WEB, machines=WEB.machines[:3]), heir)

    assert world.caller("10.0.0.13").machine == "db"


def test_a_scope_that_is_taken_out_leaves_nobody_known_and_nothing_planned() -> None:
    world = World(WEB, DB)
    event = world.announce(EventType.FREEZE, "web-0", "web-3")

    told = world.declare(DB)

    assert told[0].startswith("rg1/web: removed web-0")
    assert names(world) == []
    assert world.parts.identities.identify("", "10.0.0.10") is None
    assert world.event(event.id).status is EventStatus.CANCELED


def test_a_scope_that_comes_back_goes_on_counting() -> None:
    """keeps S9: an incarnation is never used again."""
    world = World(WEB)
    world.announce(EventType.FREEZE, "web-0")
    world.declare()
    left_at = world.document(WEB.id).incarnation

    world.declare(WEB)
    world.announce(EventType.FREEZE, "web-0")

    assert left_at == 3
    assert world.document(WEB.id).incarnation == left_at + 1


def test_what_somebody_else_declares_at_the_same_time_is_no_hindrance() -> None:
    clock = SimulatedClock(NOON)
    store = FaultyStore(MemoryStore(clock))
    world = World(clock=clock, store=store)
    rival = World(clock=clock, store=store)
    store.overtake(lambda: rival.declare(WEB))

    world.declare(replace(WEB, location="west"), DB)

    assert names(world, DB) == ["db"]
    assert world.parts.books.load(WEB.id).scope.location == "west"


def test_after_many_attempts_the_caller_is_told() -> None:
    clock = SimulatedClock(NOON)
    store = FaultyStore(MemoryStore(clock))
    world = World(clock=clock, store=store)
    rival = World(clock=clock, store=store)
    scopes = [replace(DB, name=f"s{n}", machines=()) for n in range(ATTEMPTS_MAX + 1)]
    for number in range(1, ATTEMPTS_MAX + 1):
        # Each time another scope is there already; the rival's own commit passes through as well.
        store.overtake(partial(rival.declare, *scopes[:number]), lambda: None)

    with pytest.raises(Conflict):
        world.declare(*scopes)


def test_a_large_fleet_is_committed_in_portions() -> None:
    scopes = [replace(DB, name=f"s{n:04}", machines=()) for n in range(SCOPES_PER_COMMIT + 1)]
    world = World(*scopes)
    assert commits(world) == 2

    world.declare(*(replace(scope, location="west") for scope in scopes))

    assert commits(world) == 4
    assert {ledger.scope.location for ledger in world.parts.books.all()} == {"west"}
