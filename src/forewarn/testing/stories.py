"""Any story of two scopes that Hypothesis can think of, in which the promises hold.

Method: the real desk and conductor over a real SQLite file, a simulated fabric and a clock that only
moves when told. A second desk over the same store gets in between now and then.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
)

from forewarn.clocks import SimulatedClock
from forewarn.core.events import Audience, EventType, Result
from forewarn.core.names import EventId, MachineName
from forewarn.core.scopes import OwnerPolicies, Scope
from forewarn.core.wishes import Wish
from forewarn.errors import Refused, Unavailable, UnknownEvent
from forewarn.fabrics.simulated import Behaviour
from forewarn.ids import SeededIds
from forewarn.service.conductor import Conductor
from forewarn.service.desk import Placed
from forewarn.stores.sqlite import SqliteStore
from forewarn.testing import promises
from forewarn.testing.faults import Fault, FaultyStore, StoreDoor
from forewarn.testing.sample_fleet import PAIR
from forewarn.testing.strategies import EPOCH, owner_policies, spans, wishes_for
from forewarn.testing.witnesses import Witness, WitnessedFabric, WitnessedStore
from forewarn.testing.worlds import OPERATOR, World

SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
_MACHINES: Final = {machine.name: machine for scope in PAIR for machine in scope.machines}
_ADDRESSES: Final = st.sampled_from([a for m in _MACHINES.values() for a in m.addresses])


def _maintenance() -> st.SearchStrategy[Wish]:
    types = st.sampled_from([EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY])
    machines = st.lists(st.sampled_from(sorted(_MACHINES)), min_size=1, max_size=3)
    return st.builds(Wish, type=types, machines=machines.map(_of_one_scope))


def _of_one_scope(names: list[MachineName]) -> tuple[str, ...]:
    return tuple(name for name in names if name[0] == names[0][0])


class Story(RuleBasedStateMachine):
    """Everything that can happen to two scopes, and the promises, which hold all the time."""

    announced: Bundle[EventId] = Bundle("announced")
    # Whoever wants to see a rule broken puts a broken part here.
    store_type: type[StoreDoor] = StoreDoor
    fabric_type: type[WitnessedFabric] = WitnessedFabric
    conductor_type: type[Conductor] = Conductor

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=root))
        self.clock = SimulatedClock(EPOCH)
        self.ids = SeededIds(1)
        self.seen = Witness(self.clock)
        self.fabric = self.fabric_type(self.clock, self.seen)
        self._open()
        self.world.declare(*PAIR)
        self.poll("10.0.1.10")

    def _open(self) -> None:
        self.file = SqliteStore(self.folder / "forewarn.db", self.clock)
        shared = self.store_type(WitnessedStore(self.file, self.seen))
        self.store = FaultyStore(shared)
        self.seen.open_board("story")
        self.world = World(clock=self.clock, store=self.store, fabric=self.fabric, ids=self.ids)
        self.rival = World(clock=self.clock, store=shared, fabric=self.fabric, ids=self.ids)
        parts = self.world.parts
        if self.conductor_type is not Conductor:
            self.world.conductor = self.conductor_type(
                *(parts.clock, parts.books, parts.board, parts.fabric),
                *(parts.desk.attendance, parts.rules),
            )
            parts.books.tell(self.world.conductor.note)
        parts.books.tell(lambda ledger: self.seen.look("story", parts.board, ledger.scope.id))
        self.seen.listening_since = self.clock.elapsed()

    def teardown(self) -> None:
        self.file.close()
        shutil.rmtree(self.folder)

    @invariant()
    def the_promises_hold(self) -> None:
        promises.check(self.seen)

    # -- what happens --------------------------------------------------------------------

    @rule(target=announced, wish=st.sampled_from(PAIR).flatmap(wishes_for))
    def announce(self, wish: Wish) -> MultipleResults[EventId]:
        return self._announce(wish)

    @rule(target=announced, wish=_maintenance())
    def announce_maintenance(self, wish: Wish) -> MultipleResults[EventId]:
        """What is announced most often, and refused least."""
        return self._announce(wish)

    @rule(target=announced, wish=_maintenance(), delay=spans(HOUR))
    def announce_and_publish_late(self, wish: Wish, delay: timedelta) -> MultipleResults[EventId]:
        return self._announce(wish, delay)

    @rule(event_id=announced, address=_ADDRESSES)
    def approve(self, event_id: EventId, address: str) -> None:
        self._approve(self.world, event_id, address)
        self._settle()

    @rule(event_id=announced, by=spans(2 * HOUR, SECOND), address=_ADDRESSES)
    def approve_while_somebody_postpones(
        self, event_id: EventId, by: timedelta, address: str
    ) -> None:
        """Between the other's reading and writing: one of them must decide again."""
        self.rival.parts.feed.follow(1000)
        self.store.overtake(lambda: self._approve(self.rival, event_id, address))
        with suppress(Refused, Unavailable):
            self.world.desk.postpone(event_id, by, OPERATOR)
        self._settle()

    @rule(event_id=announced)
    def approve_as_the_first_machine_named(self, event_id: EventId) -> None:
        for ledger in self.seen.committed.values():
            event = ledger.find(event_id)
            if event is not None:
                self._approve(self.world, event_id, _MACHINES[event.machines[0]].addresses[0])
        self._settle()

    @rule(event_id=announced, address=_ADDRESSES)
    def approve_with_an_unknown_id(self, event_id: EventId, address: str) -> None:
        """S16: then none of them is approved."""
        approvals = self._approvals()
        caller = self.world.parts.identities.identify("", address)
        if caller is not None:
            with suppress(UnknownEvent):
                self.world.desk.approve_as_guest(caller, [event_id, "NOBODY"])
                raise AssertionError("S16: nobody announced NOBODY")
        assert self._approvals() == approvals, "S16: all of them or none"

    @rule(event_id=announced)
    def cancel(self, event_id: EventId) -> None:
        with suppress(Refused, Unavailable):
            self.world.desk.cancel(event_id, OPERATOR)
        self._settle()

    @rule(event_id=announced, by=spans(25 * HOUR))
    def postpone(self, event_id: EventId, by: timedelta) -> None:
        with suppress(Refused, Unavailable):
            self.world.desk.postpone(event_id, by, OPERATOR)
        self._settle()

    @rule(event_id=announced, result=st.sampled_from([Result.DONE, Result.FAILED]))
    def resolve(self, event_id: EventId, result: Result) -> None:
        with suppress(Refused, Unavailable):
            self.world.desk.resolve(event_id, result, OPERATOR)
        self._settle()

    @rule(address=_ADDRESSES)
    def poll(self, address: str) -> None:
        caller = self.world.parts.identities.identify("", address)
        if caller is None:
            return
        self.seen.asked[caller.scope] = self.clock.elapsed()
        with suppress(Unavailable):
            if self.world.desk.hear(caller):
                self.world.desk.attend(caller)
            self.seen.note_hearing(caller.scope, "story")
        self._settle()

    @rule(span=spans(20 * SECOND))
    def wait_a_little(self, span: timedelta) -> None:
        self.world.advance(span)
        self._settle()

    @rule(span=st.sampled_from([2 * MINUTE, 10 * MINUTE, 16 * MINUTE, HOUR, DAY]))
    def be_away_for_long(self, span: timedelta) -> None:
        self.clock.advance(span)
        self._settle()

    @rule()
    def wait_for_what_is_next(self) -> None:
        wake = self.world.settle().next_wake
        if wake is not None:
            self.clock.advance(max(wake - self.clock.now(), timedelta()))
        self._settle()

    @rule(by=st.sampled_from([-DAY, -HOUR, -MINUTE, MINUTE, HOUR, DAY]))
    def set_the_clock(self, by: timedelta) -> None:
        self.seen.note_jump(by)
        self.clock.jump(by)
        self._settle()

    @rule(machine=st.sampled_from(sorted(_MACHINES)), behaviour=st.sampled_from(Behaviour))
    def misbehave(self, machine: MachineName, behaviour: Behaviour) -> None:
        self.fabric.behave(machine, behaviour)
        self._settle()

    @rule(faults=st.lists(st.sampled_from(Fault), min_size=1, max_size=3))
    def let_the_store_stumble(self, faults: list[Fault]) -> None:
        self.seen.is_settled = False
        self.store.spoil(*faults)

    @rule(removed=st.sets(st.sampled_from(sorted(_MACHINES)), max_size=2))
    def change_the_fleet(self, removed: set[MachineName]) -> None:
        scopes = (
            replace(scope, machines=tuple(m for m in scope.machines if m.name not in removed))
            for scope in PAIR
        )
        with suppress(Unavailable):
            self.world.declare(*scopes)
        self._settle()

    @rule(scope=st.sampled_from(PAIR), policies=owner_policies())
    def set_policies(self, scope: Scope, policies: OwnerPolicies) -> None:
        with suppress(Refused, Unavailable):
            self.world.parts.registrar.amend_policies(scope.id, lambda _: policies, OPERATOR)
        self._settle()

    @rule(fabric_remembers=st.booleans())
    def restart(self, *, fabric_remembers: bool) -> None:
        self.file.close()
        if not fabric_remembers:
            self.seen.given.clear()
            self.fabric = self.fabric_type(self.clock, self.seen)
        self._open()
        for scope in self.seen.committed:
            self.seen.look("story", self.world.parts.board, scope)
        self._settle()

    # -- how it happens ------------------------------------------------------------------

    def _settle(self) -> None:
        """Let everything that is due be done, the store being well again in the end."""
        had_setbacks = self._do_what_is_due()
        self.store.heal()
        if had_setbacks:
            self.clock.advance(SECOND)
            self._do_what_is_due()
        self.seen.is_settled = True

    def _do_what_is_due(self) -> bool:
        had_setbacks = False
        for _ in range(100):
            followed = self.world.parts.feed.follow(1000)
            turn = self.world.conductor.turn()
            had_setbacks = had_setbacks or bool(turn.setbacks)
            due = turn.next_wake is not None and turn.next_wake <= self.clock.now()
            if not followed and not due:
                return had_setbacks
        raise AssertionError("S17: the conductor does not come to rest")

    def _announce(self, wish: Wish, delay: timedelta = timedelta()) -> MultipleResults[EventId]:
        placed: tuple[Placed, ...] = ()
        with suppress(Refused, Unavailable):
            placed = self.world.desk.announce(wish, (), OPERATOR)
            self.seen.promised |= {p.event.id for p in placed}
        self.clock.advance(delay)
        self._settle()
        return multiple(*(p.event.id for p in placed))

    def _approve(self, world: World, event_id: EventId, address: str) -> None:
        caller = world.parts.identities.identify("", address)
        if caller is None:
            return
        self.seen.asked[caller.scope] = self.clock.elapsed()
        event = self.seen.committed[caller.scope].find(event_id)
        if event is not None:
            self.seen.attempted.add(event_id)
        try:
            world.desk.approve_as_guest(caller, [event_id])
        except UnknownEvent:
            told = event is not None and event.audience is Audience.GUESTS
            assert not told, "S16: an event of the last day is unknown"
        except Unavailable:
            return
        else:
            assert event is not None, "S14: an event of another scope was approved"
            if world is self.world:
                self.seen.note_hearing(caller.scope, "story")
            self.seen.note_approval(event_id)

    def _approvals(self) -> list[EventId]:
        return [
            event.id
            for ledger in self.seen.committed.values()
            for event in ledger.events
            if event.approval is not None
        ]
