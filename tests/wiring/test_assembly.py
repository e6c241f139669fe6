"""The parts, put together: who is told of what, and in which order."""

from __future__ import annotations

from dataclasses import replace

from forewarn.clocks import SimulatedClock
from forewarn.core.events import EventType
from forewarn.core.names import Revision, ScopeId
from forewarn.core.periods import Periods
from forewarn.core.scopes import Enabling, Scope
from forewarn.fabrics.simulated import SimulatedFabric
from forewarn.identities.addresses import AddressBook
from forewarn.ids import SeededIds
from forewarn.stores.memory import MemoryStore
from forewarn.testing.worlds import NOON, WEB, World
from forewarn.wiring.assembly import assemble


class CountingBook(AddressBook):
    """An address book that counts how often a roster is enrolled."""

    def __init__(self) -> None:
        super().__init__()
        self.enrolled: list[ScopeId] = []

    def enroll(self, scope: Scope) -> None:
        self.enrolled.append(scope.id)
        super().enroll(scope)


def test_a_new_assembly_knows_what_the_store_has() -> None:
    before = World(WEB)
    event = before.announce(EventType.FREEZE, "web-0")
    book = CountingBook()
    assembly = assemble(
        clock=before.clock,
        ids=SeededIds(2),
        store=before.store,
        fabric=before.fabric,
        identities=book,
        rules=Periods(),
    )
    assert assembly.board.posting(WEB.id) is None

    assert assembly.load() == 1

    posting = assembly.board.posting(WEB.id)
    assert posting is not None
    assert [notice.id for notice in posting.document.notices] == [event.id]
    assert assembly.directory.event(event.id) == WEB.id
    assert book.owner("10.0.0.10") is not None
    assert assembly.conductor.turn().next_wake == event.not_before


def test_an_empty_store_is_no_trouble() -> None:
    clock = SimulatedClock(NOON)
    assembly = assemble(
        clock=clock,
        ids=SeededIds(1),
        store=MemoryStore(clock),
        fabric=SimulatedFabric(clock),
        identities=AddressBook(),
        rules=Periods(),
    )

    assert assembly.load() == 0
    assert assembly.conductor.turn().next_wake is None


def test_a_ledger_told_again_or_late_changes_nothing() -> None:
    world = World(WEB)
    world.announce(EventType.FREEZE, "web-0")
    ledger = world.parts.books.load(WEB.id)
    shown = world.parts.board.posting(WEB.id)
    wake = world.settle().next_wake

    world.parts.told(ledger)
    world.parts.told(replace(ledger, events=(), revision=Revision(1)))

    assert world.parts.board.posting(WEB.id) is shown
    assert world.conductor.turn().next_wake == wake


def test_a_roster_is_enrolled_when_it_changes_and_only_then() -> None:
    world = World(WEB)
    book = CountingBook()
    assembly = assemble(
        clock=world.clock,
        ids=SeededIds(2),
        store=world.store,
        fabric=world.fabric,
        identities=book,
        rules=Periods(),
    )
    assembly.load()

    world.announce(EventType.FREEZE, "web-0")
    world.declare(replace(WEB, enabling=Enabling.ON_REQUEST))
    assembly.feed.follow(100)
    assert book.enrolled == [WEB.id]

    world.declare(replace(WEB, machines=WEB.machines[:2]))
    assembly.feed.follow(100)
    assert book.enrolled == [WEB.id] * 2
    assert book.owner("10.0.0.12") is None


def test_whoever_is_known_can_be_answered() -> None:
    """Identities come last: a caller that is known has a document already."""
    world = World()

    class Asking(CountingBook):
        def enroll(self, scope: Scope) -> None:
            super().enroll(scope)
            caller = self.identify("", "10.0.0.10")
            assert caller is not None
            assert assembly.desk.posting(caller).scope == scope

    book = Asking()
    assembly = assemble(
        clock=world.clock,
        ids=SeededIds(2),
        store=world.store,
        fabric=world.fabric,
        identities=book,
        rules=Periods(),
    )
    world.declare(WEB)

    assembly.feed.follow(100)

    assert book.enrolled == [WEB.id]
