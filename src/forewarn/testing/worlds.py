"""A whole service in one handful, over a clock that moves only when told. No threads, no sockets."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Final

from forewarn.clocks import SimulatedClock
from forewarn.core.documents import Document
from forewarn.core.events import Event, EventSource, EventType
from forewarn.core.journal import Actor, Entry, Role
from forewarn.core.names import HostName, MachineName, ScopeId
from forewarn.core.periods import Periods
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import Enabling, Machine, Origin, Scope, ScopeKind
from forewarn.core.wishes import Wish
from forewarn.fabrics.simulated import SimulatedFabric
from forewarn.identities.addresses import AddressBook
from forewarn.ids import RandomIds, SeededIds
from forewarn.ports.identities import Caller
from forewarn.ports.ids import Ids
from forewarn.ports.store import Cursor, Store
from forewarn.service.conductor import Turn
from forewarn.service.journals import Filter
from forewarn.stores.memory import MemoryStore
from forewarn.wiring.assembly import Assembly, assemble

NOON: Final = datetime(2030, 1, 1, 12, tzinfo=UTC)
OPERATOR: Final = Actor(Role.OPERATOR, "operator", "127.0.0.1")
TURNS_MAX: Final = 1000

# An availability set that most stories can be told of: web-0 and web-3 can be acted on together.
WEB: Final = Scope(
    name="web",
    resource_group="rg1",
    kind=ScopeKind.AVAILABILITY_SET,
    update_domains=3,
    enabling=Enabling.ALWAYS,
    terminate_notice=timedelta(minutes=5),
    machines=tuple(
        Machine(
            name=MachineName(f"web-{number}"),
            addresses=(f"10.0.0.1{number}",),
            host=HostName(f"host-{number % 3}"),
            update_domain=number % 3,
        )
        for number in range(4)
    ),
)


class World:
    """A service over simulated ports. `settle` lets it do what is due; `advance` lets time pass."""

    def __init__(
        self,
        *scopes: Scope,
        clock: SimulatedClock | None = None,
        store: Store | None = None,
        fabric: SimulatedFabric | None = None,
        ids: Ids | None = None,
        rules: Periods | None = None,
        turn: AbstractContextManager[object] | None = None,
    ) -> None:
        self.clock = clock or SimulatedClock(NOON)
        self.store: Store = store or MemoryStore(self.clock)
        self.fabric = fabric or SimulatedFabric(self.clock)
        self.parts: Assembly = assemble(
            clock=self.clock,
            # Over a store that others write to as well, the names must be new ones.
            ids=ids or (SeededIds(1) if store is None else RandomIds()),
            store=self.store,
            fabric=self.fabric,
            identities=AddressBook(),
            rules=rules or Periods(),
            turn=turn,
        )
        self.desk = self.parts.desk
        self.conductor = self.parts.conductor
        self.parts.load()
        if scopes:
            self.declare(*scopes)

    def declare(self, *scopes: Scope, origin: Origin = Origin.FILE) -> tuple[str, ...]:
        """Let a source declare these scopes; every machine has the update domain it says."""
        return self.parts.registrar.apply(
            [Declaration(s, frozenset(m.name for m in s.machines)) for s in scopes],
            origin,
            OPERATOR,
        )

    def settle(self) -> Turn:
        """Let the conductor do all that is due now."""
        for _ in range(TURNS_MAX):
            turn = self.conductor.turn()
            if turn.next_wake is None or turn.next_wake > self.clock.now():
                return turn
        raise AssertionError(f"the conductor did not come to rest in {TURNS_MAX} turns")

    def advance(self, by: timedelta) -> None:
        """Let time pass, with the conductor waking whenever it wants to."""
        until = self.clock.now() + by
        while True:
            wake = self.settle().next_wake
            if wake is None or wake > until:
                break
            self.clock.advance(wake - self.clock.now())
        self.clock.advance(until - self.clock.now())
        self.settle()

    def announce(
        self, type_: EventType, *machines: str, source: EventSource = EventSource.PLATFORM
    ) -> Event:
        """Announce an event on these machines, which must come out as one, and settle."""
        wish = Wish(type=type_, machines=machines, source=source)
        (placed,) = self.desk.announce(wish, (), OPERATOR)
        self.settle()
        return self.event(placed.event.id)

    def caller(self, address: str) -> Caller:
        """The machine that speaks from an address."""
        caller = self.parts.identities.identify("", address)
        assert caller is not None, f"nobody has the address {address}"
        return caller

    def approve(self, address: str, *event_ids: str) -> None:
        """Approve as the guest that speaks from an address, and settle."""
        self.desk.approve_as_guest(self.caller(address), event_ids)
        self.settle()

    def event(self, event_id: str) -> Event:
        """The event as the ledger has it now."""
        return self.desk.event(event_id).event

    def document(self, scope: ScopeId) -> Document:
        """What the scope's machines read now."""
        posting = self.parts.board.posting(scope)
        assert posting is not None, f"no scope {scope} was declared"
        return posting.document

    def journal(self) -> Sequence[Entry]:
        """Every journal entry, oldest first."""
        page = self.parts.journals.page(Cursor(""), 1_000_000, Filter())
        return [line.entry for line in page.lines]
