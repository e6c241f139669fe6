"""Hosts, as what runs on them tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.events import EventType
from forewarn.core.hosts import Standing
from forewarn.core.names import HostName, MachineName, ScopeId
from forewarn.core.scopes import Enabling, Machine
from forewarn.errors import Unknown
from forewarn.fabrics.simulated import Behaviour
from forewarn.ports.fabric import Metal
from forewarn.service.board import Board
from forewarn.service.directory import Directory
from forewarn.service.hosts import Hosts
from forewarn.testing.worlds import OPERATOR, WEB, World


class Racks:
    """The hosts of a fabric, of which one is empty, with machines that move live."""

    def standings(self) -> Sequence[Standing]:
        return (Standing(HostName("Host-7"), 512), Standing(HostName("host-0"), None, "no route"))

    def is_moved_live(self, scope: ScopeId, machine: MachineName) -> bool:
        return (scope, machine) == ("rg1/web", "web-3")


ON_HOST_0 = Machine(name=MachineName("db-0"), host=HostName("Host-0"))
DB = replace(WEB, name="db", resource_group="rg2", enabling=Enabling.ALWAYS, machines=(ON_HOST_0,))


def hosts(world: World, metal: Metal | None = None) -> Hosts:
    return Hosts(world.parts.board, world.parts.directory, world.parts.drains, metal)


@pytest.fixture
def world() -> World:
    return World(WEB, DB)


def test_a_host_has_the_machines_of_every_scope_that_run_on_it(world: World) -> None:
    assert [host.name for host in hosts(world).all()] == ["host-0", "host-1", "host-2"]

    host = hosts(world).host("HOST-0")

    assert [(hosted.ledger.scope.id, hosted.machines) for hosted in host.scopes] == [
        ("rg1/web", ("web-0", "web-3")),
        ("rg2/db", ("db-0",)),
    ]
    assert (host.name, host.is_busy) == ("host-0", False)


def test_only_those_whom_it_concerns_are_shown(world: World) -> None:
    mine = hosts(world).host("host-0").within(lambda group: group == "rg2")

    assert [hosted.machines for hosted in mine.scopes] == [("db-0",)]


def test_a_host_is_busy_while_an_impact_is_under_way_there(world: World) -> None:
    world.fabric.behave(MachineName("web-0"), Behaviour.HANGS)
    event = world.announce(EventType.FREEZE, "web-0")
    (announced,) = hosts(world).host("host-0").scopes[0].events
    world.approve("10.0.0.10", event.id)

    busy = [host.name for host in hosts(world).all() if host.is_busy]

    assert announced.id == event.id
    assert busy == ["host-0"]
    assert hosts(world).host("host-1").scopes[0].events == ()


def test_a_machine_that_does_not_run_is_on_no_host(world: World) -> None:
    event = world.announce(EventType.PREEMPT, "web-1")
    world.approve("10.0.0.11", event.id)
    world.advance(timedelta(hours=1))

    with pytest.raises(Unknown, match="no VM runs on a host host-1"):
        hosts(world).host("host-1")


def test_what_is_known_of_by_half_is_not_known_yet(world: World) -> None:
    """The directory is told a moment before the board, in another thread."""
    directory, older = Directory(), Board()
    ledger = world.parts.books.load(WEB.id)
    directory.note(ledger)
    older.post(replace(ledger, scope=replace(WEB, machines=())))

    for board in (Board(), older):
        found = Hosts(board, directory, world.parts.drains)
        with pytest.raises(Unknown, match="look again"):
            found.host("host-0")
        assert found.all() == ()


def test_a_host_that_the_fabric_has_or_that_is_drained_is_there_without_machines(
    world: World,
) -> None:
    world.parts.drains.drain(HostName("Host-8"), OPERATOR)
    world.parts.drains.drain(HostName("host-1"), OPERATOR)

    found = {str(host.name): host for host in hosts(world, Racks()).all()}

    assert list(found) == ["host-0", "host-1", "host-2", "Host-7", "Host-8"]
    assert [host.name for host in found.values() if host.drain] == ["host-1", "Host-8"]
    assert found["host-0"].standing == Standing(HostName("host-0"), None, "no route")
    assert found["Host-7"].scopes == ()


def test_machines_leave_live_where_they_can_and_are_not_told_twice(world: World) -> None:
    """Keeps S20: what a host is drained by."""
    racks = hosts(world, Racks())
    freezing = world.announce(EventType.FREEZE, "web-0")

    assert racks.leaving(racks.host("host-0")) == {
        EventType.REDEPLOY: ("rg1/web/web-0", "rg2/db/db-0"),
        EventType.FREEZE: ("rg1/web/web-3",),
    }
    assert freezing.type is EventType.FREEZE

    world.announce(EventType.REDEPLOY, "web-0")
    world.announce(EventType.FREEZE, "web-3")

    assert racks.leaving(racks.host("host-0")) == {EventType.REDEPLOY: ("rg2/db/db-0",)}
    assert hosts(world).leaving(hosts(world).host("host-0")).keys() == {EventType.REDEPLOY}
