"""Hosts where nobody is to be placed: durable, on record, and known to every service."""

from __future__ import annotations

import pytest

from forewarn.core.journal import What
from forewarn.core.names import HostName
from forewarn.errors import Conflict
from forewarn.ports.store import Record
from forewarn.service.drains import CONFLICTS_MAX, Drains
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import Fault, FaultyStore
from forewarn.testing.worlds import OPERATOR, World
from forewarn.wire import drain_records

HOST_A = HostName("Host-A")


class Depot:
    """Drains over a store that can be told to fail."""

    def __init__(self) -> None:
        blank = World()
        self.store = FaultyStore(MemoryStore(blank.clock))
        self.world = World(clock=blank.clock, store=self.store)
        self.drains = self.world.parts.drains

    def another(self) -> World:
        """Another service over the same store, or the same one after a restart."""
        world = World(clock=self.world.clock, store=self.store)
        world.parts.load()
        return world


def test_a_drained_host_is_known_after_a_restart_and_on_record() -> None:
    depot = Depot()

    made = depot.drains.drain(HOST_A, OPERATOR)

    assert depot.drains.is_drained("HOST-a")
    assert depot.another().parts.drains.all() == (made,)
    (entry,) = depot.world.journal()
    assert (entry.what, entry.actor, entry.note) == (What.DRAINED, OPERATOR, "host Host-A")


def test_what_is_drained_already_is_no_news() -> None:
    depot = Depot()
    made = depot.drains.drain(HOST_A, OPERATOR)

    again = depot.drains.drain(HostName("host-a"), OPERATOR)
    depot.drains.undrain(HOST_A, OPERATOR)
    depot.drains.undrain(HOST_A, OPERATOR)

    assert again == made
    assert not depot.drains.is_drained("host-a")
    assert depot.drains.all() == ()
    assert [entry.what for entry in depot.world.journal()] == [What.DRAINED, What.UNDRAINED]


def test_services_hear_of_each_others_drains() -> None:
    depot = Depot()
    other = depot.another().parts

    depot.drains.drain(HOST_A, OPERATOR)
    other.feed.follow(100)
    assert other.drains.is_drained("host-a")

    depot.drains.undrain(HOST_A, OPERATOR)
    other.feed.follow(100)
    assert not other.drains.is_drained("host-a")


def test_what_was_heard_late_does_not_undo_what_is_known() -> None:
    depot = Depot()
    made = depot.drains.drain(HOST_A, OPERATOR)
    depot.drains.undrain(HOST_A, OPERATOR)

    depot.drains.hear(Record(drain_records.key(HOST_A), 1, drain_records.dump(made)))

    assert not depot.drains.is_drained("host-a")


def test_who_loses_every_race_says_so() -> None:
    depot = Depot()
    depot.store.spoil(*[Fault.CONFLICT] * CONFLICTS_MAX)

    with pytest.raises(Conflict):
        depot.drains.drain(HOST_A, OPERATOR)
    assert isinstance(depot.drains, Drains)


def test_who_loses_a_race_tries_again() -> None:
    depot = Depot()
    depot.store.spoil(Fault.CONFLICT)

    depot.drains.drain(HOST_A, OPERATOR)

    assert depot.another().parts.drains.is_drained("host-a")
