"""The stage: several services over one store and one fabric, in one thread, where a script is played.

Each service has its own board, feed, conductor and desk, as several processes would. It reaches
the store and the fabric through doors of its own, in which it may meet its death, or be kept
waiting while something else happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from forewarn.clocks import SimulatedClock
from forewarn.core.names import Incarnation, ScopeId
from forewarn.core.orders import Order, Report
from forewarn.core.periods import Periods
from forewarn.core.rosters import Declaration
from forewarn.errors import Unavailable
from forewarn.identities.addresses import AddressBook
from forewarn.ids import SeededIds
from forewarn.ports.clock import Clock
from forewarn.ports.fabric import Fabric
from forewarn.ports.store import Store
from forewarn.service.attendance import Endpoints
from forewarn.service.conductor import Conductor
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import FaultyStore, StoreDoor
from forewarn.testing.witnesses import Witness, WitnessedFabric, WitnessedStore
from forewarn.testing.worlds import NOON
from forewarn.wiring.assembly import Assembly, assemble

FEED_PAGE: Final = 1000


class Died(BaseException):
    """A service is dead: nothing that it was about to do happens any more."""


class Fate:
    """What will happen to a service at its coming calls of ports."""

    def __init__(self) -> None:
        self._coming: list[tuple[int, Callable[[], None]]] = []
        self.calls = 0
        self.is_dead = False

    def await_call(self, after: int, happen: Callable[[], None]) -> None:
        """Let something happen in so many calls."""
        self._coming.append((self.calls + after, happen))

    def calm(self) -> None:
        self._coming.clear()

    def die(self) -> None:
        self.is_dead = True

    def meet(self) -> None:
        """A port is called, or has answered. Raises: Died."""
        self.calls += 1
        due = [happen for call, happen in self._coming if call <= self.calls]
        self._coming = [coming for coming in self._coming if coming[0] > self.calls]
        for happen in due:
            happen()
        if self.is_dead:
            raise Died


class FatefulStore(StoreDoor):
    """One service's way to the store."""

    def __init__(self, store: Store, fate: Fate) -> None:
        super().__init__(store)
        self._fate = fate

    def _enter(self) -> None:
        self._fate.meet()

    def _leave(self, answer: object) -> object:  # type: ignore[override]
        self._fate.meet()
        return answer


class FatefulFabric:
    """One service's way to the fabric, which may break, repeat old words, or lose answers."""

    def __init__(self, fabric: Fabric, fate: Fate) -> None:
        self._fabric = fabric
        self._fate = fate
        self.how = "well"
        self._said: dict[Order, Report] = {}

    def begin(self, order: Order) -> None:
        self._reach()
        self._fabric.begin(order)
        self._fate.meet()
        if self.how == "loses":
            raise Unavailable("the fabric did not answer")

    def observe(self, order: Order) -> Report:
        self._reach()
        if self.how == "repeats" and order in self._said:
            # Once: what is said again and again is not a lapse but the truth.
            return self._said.pop(order)
        report = self._said[order] = self._fabric.observe(order)
        self._fate.meet()
        return report

    def move_to(self, fabric: Fabric) -> None:
        """Lead to another fabric from now on."""
        self._fabric = fabric
        self._said.clear()

    def census(self) -> list[Declaration] | None:
        return None

    def _reach(self) -> None:
        self._fate.meet()
        if self.how == "away":
            raise Unavailable("the fabric cannot be reached")


class OwnClock:
    """The clock as one process sees it: its elapsed time begins with itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._born = clock.elapsed()

    def now(self) -> datetime:
        return self._clock.now()

    def elapsed(self) -> timedelta:
        return self._clock.elapsed() - self._born


@dataclass(slots=True)
class Service:
    """One process's worth of a service, and the doors through which it sees the world."""

    name: str
    parts: Assembly
    fate: Fate
    store: FaultyStore
    fabric: FatefulFabric
    # For which document whoever waits was woken last.
    woken: dict[ScopeId, Incarnation] = field(default_factory=dict)
    # One thread conducts and one follows the feed, whatever the others do meanwhile.
    is_working: bool = False
    next_wake: datetime | None = None


@dataclass(frozen=True, slots=True)
class Cast:
    """The parts that services are made of. Whoever wants to see a rule broken breaks one."""

    store: type[StoreDoor] = StoreDoor
    fabric: type[WitnessedFabric] = WitnessedFabric
    conductor: type[Conductor] = Conductor


class Stage:
    """Services that share a clock, a store and a fabric; who lives, and what was seen."""

    def __init__(self, seed: int, services: int, cast: Cast) -> None:
        self._seed = seed
        self._cast = cast
        self.clock = SimulatedClock(NOON)
        self.seen = Witness(self.clock)
        self.store = cast.store(WitnessedStore(MemoryStore(self.clock), self.seen))
        self.fabric = cast.fabric(self.clock, self.seen)
        self.services: list[Service | None] = [None] * services
        self._away: set[int] = set()
        self._births = 0
        self.counts: Counter[str] = Counter()

    def rise(self, number: int) -> None:
        """Start a service, unless it lives. It does not come up while the store is away."""
        if self.services[number] is not None or number in self._away:
            return
        name = f"service {number}"
        fate = Fate()
        store = FaultyStore(FatefulStore(self.store, fate))
        fabric = FatefulFabric(self.fabric, fate)
        self._births += 1
        parts = assemble(
            clock=OwnClock(self.clock),
            ids=SeededIds(self._seed * 10_000 + self._births),
            store=store,
            fabric=fabric,
            identities=AddressBook(),
            rules=Periods(),
            endpoints=Endpoints.ONE if len(self.services) == 1 else Endpoints.SEVERAL,
        )
        if self._cast.conductor is not Conductor:
            own = self._cast.conductor(
                *(parts.clock, parts.books, parts.board, fabric),
                *(parts.desk.attendance, parts.rules),
            )
            parts = replace(parts, conductor=own)
            parts.books.tell(own.note)
        service = Service(name, parts, fate, store, fabric)
        self.seen.open_board(name)
        parts.load()
        for scope in parts.directory.scopes():
            self.seen.look(name, parts.board, scope)
        parts.board.watch(lambda scope: self._wake(service, scope))
        parts.books.tell(lambda ledger: self._look(service, ledger.scope.id))
        self.services[number] = service
        self.seen.listening_since = self.clock.elapsed()
        self.counts["starts"] += 1

    def _wake(self, service: Service, scope: ScopeId) -> None:
        posting = service.parts.board.posting(scope)
        assert posting is not None, "it was posted before it was told"
        service.woken[scope] = posting.document.incarnation

    def _look(self, service: Service, scope: ScopeId) -> None:
        before = self.seen.boards[service.name].get(scope)
        known = service.woken.get(scope, before.document.incarnation if before else None)
        self.seen.look(service.name, service.parts.board, scope, known)

    def attempt(self, number: int, deed: Callable[[Service], None]) -> None:
        """Have a service do something, unless it is dead; it may die of it."""
        service = self.services[number]
        if service is None:
            return
        try:
            deed(service)
        except Died:
            assert service.fate.is_dead, "one's own death"
        if service.fate.is_dead:
            self.bury(number, service)

    def bury(self, number: int, service: Service) -> None:
        """Take a dead service away, with all that it knew."""
        service.fate.die()
        if self.services[number] is service:
            self.services[number] = None
            # Nobody reads there any more; whoever comes up next is held against what was read.
            self.counts["deaths"] += 1

    def part(self, number: int, *, is_away: bool) -> None:
        """Take the store away from a service, or give it back."""
        (self._away.add if is_away else self._away.discard)(number)
        service = self.services[number]
        if service is not None:
            service.store.is_away = is_away

    def forget_orders(self) -> None:
        """Let the fabric forget everything that was ever ordered."""
        self.fabric = self._cast.fabric(self.clock, self.seen)
        self.seen.given.clear()
        for service in self.living():
            service.fabric.move_to(self.fabric)

    def living(self) -> list[Service]:
        return [service for service in self.services if service is not None]

    def work(self, number: int) -> None:
        """Let a service follow the feed and take a few turns."""
        self.attempt(number, self._work)

    def _work(self, service: Service) -> None:
        if service.is_working:
            return
        service.is_working = True
        for _ in range(4):
            with suppress(Unavailable):
                service.parts.feed.follow(FEED_PAGE)
            turn = service.parts.conductor.turn()
            self.counts["turns"] += 1
            service.next_wake = turn.next_wake
            if turn.next_wake is None or turn.next_wake > self.clock.now():
                break
        service.is_working = False

    def next_wake(self) -> datetime | None:
        """When somebody alive wants to look next."""
        wakes = [service.next_wake for service in self.living()]
        return min((wake for wake in wakes if wake is not None), default=None)

    def heal(self) -> None:
        """End all faults, and let the dead rise."""
        for number in range(len(self.services)):
            self.part(number, is_away=False)
            service = self.services[number]
            if service is not None:
                service.store.heal()
                service.fate.calm()
                service.fabric.how = "well"
            self.rise(number)
