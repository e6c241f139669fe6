"""A whole emulator inside this process: real sockets, and a clock that moves only when told.

Its parts are those of `forewarn emulate --clock manual`, put together without the control plane:
whoever is in the same process needs no HTTP to announce an event. Guests do, and get it.

Theory: the event loop that answers guests has a thread of its own, so that code under test may block,
or have a loop itself. What time brings is done in the thread that lets it pass; the conductor's own
thread is for what guests bring about while nobody looks, such as the start of what they approved.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final, Self, TypeVar

from forewarn.clocks import PacedClock
from forewarn.config.fleets import FleetFile
from forewarn.core.events import Event
from forewarn.core.journal import SERVICE
from forewarn.core.scopes import Origin
from forewarn.errors import UnknownEvent
from forewarn.fabrics.simulated import SimulatedFabric
from forewarn.identities.addresses import AddressBook
from forewarn.service.books import Writers
from forewarn.web import listeners
from forewarn.web.counters import Counters
from forewarn.web.door import Door
from forewarn.web.limits import Limits
from forewarn.web.listeners import Bound, Listener
from forewarn.web.server import MetadataServer
from forewarn.wiring.assembly import Assembly, assemble
from forewarn.wiring.emulation import HOST, EmulatedGround
from forewarn.wiring.grounds import Footing
from forewarn.wiring.lanes import Lanes
from forewarn.wiring.renewal import tell_guests
from forewarn.wiring.timekeeping import Timekeeper
from forewarn.wiring.watching import WatchedStore
from forewarn.wiring.working import Workers

# Longer than any answer takes; a guest that does not read is cut off then.
GRACE: Final = timedelta(seconds=1)
# Where guests find the metadata service on Azure, in a network of their own.
REAL_HOST: Final = "169.254.169.254"
REAL_PORT: Final = 80

_LOG: Final = logging.getLogger("forewarn.testing")

T = TypeVar("T")


class ServedWorld:
    """A service over a fleet, at work for as long as the `with` lasts."""

    def __init__(self, fleet: FleetFile, *, seed: int | None = None) -> None:
        self.machines: Final = fleet.machine_names
        self._crashed = False
        with ExitStack() as stack:
            footing = EmulatedGround(token="", speed=0.0, seed=seed).footing(stack, None)
            bound = listeners.bind([Listener(HOST, 0, machine) for machine in self.machines])
            for place in bound:
                stack.callback(place.socket.close)
            self.places: Final = dict(zip(self.machines, bound, strict=True))
            store = WatchedStore(footing.store)
            self.assembly: Final = self._assemble(fleet, footing, store)
            assert isinstance(footing.clock, PacedClock), "see EmulatedGround"
            assert footing.visitors is not None, "see EmulatedGround"
            self.clock: Final = footing.clock
            self.visitors: Final = footing.visitors
            assert footing.faults is not None, "see EmulatedGround"
            self.faults: Final = footing.faults
            self._loop = asyncio.new_event_loop()
            stack.callback(self._loop.close)
            self._stack = stack.pop_all()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="forewarn-world", daemon=True
        )
        self._workers = Workers(self.assembly, store, _LOG, self._crash, footing.speed)
        self._server = MetadataServer(
            self.assembly.desk,
            self.assembly.identities,
            self.assembly.board,
            limits=Limits(),
            counters=Counters(),
            clock=self.clock,
            subscription_id=fleet.subscription_id,
            log=_LOG,
            visitors=self.visitors,
            faults=self.faults,
        )
        self.time: Final = Timekeeper(
            self.clock,
            self._workers,
            self.assembly.desk,
            self.assembly.store,
            partial(tell_guests, self._loop, self._server),
        )

    def _assemble(self, fleet: FleetFile, footing: Footing, store: WatchedStore) -> Assembly:
        book = AddressBook()
        for machine, place in self.places.items():
            book.pin(place.name, machine)
            book.pin(_real_name(machine), machine)
        assembly = assemble(
            clock=footing.clock,
            ids=footing.ids,
            store=store,
            fabric=SimulatedFabric(footing.clock),
            identities=book,
            # Nothing passes between an announcement and its being readable: 15 minutes are 15.
            rules=replace(fleet.periods, margin=timedelta()),
            turn=threading.RLock(),
            lane=Lanes(),
            declaring=threading.Lock(),
            writers=Writers.ONE,
        )
        assembly.registrar.apply(fleet.declarations, Origin.FILE, SERVICE)
        return assembly

    # -- beginning and end -------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._thread.start()
        self._stack.callback(self._end_loop)
        try:
            self._do(self._server.serve(tuple(self.places.values())))
            self._stack.callback(self._stop_serving)
            self._workers.start_conducting()
            self._stack.callback(self._workers.stop)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        assert not self._crashed, "a worker crashed: see the log"

    def at_the_end(self, step: Callable[[], object]) -> None:
        """Have something done when the world ends, before anything of it does."""
        self._stack.callback(step)

    def _stop_serving(self) -> None:
        self._do(self._server.stop(GRACE))

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _crash(self) -> None:
        self._crashed = True

    # -- what is going on --------------------------------------------------------------------

    def event(self, event_id: str) -> Event:
        """An event as it is now, however long ago it ended. Raises: UnknownEvent."""
        try:
            return self.assembly.desk.event(event_id).event
        except UnknownEvent:
            return self.assembly.journals.event(event_id)[1]

    def settled(self, event_id: str) -> Event:
        """The same, after all that is due was done."""
        self.time.settle()
        return self.event(event_id)

    # -- guests in networks of their own -----------------------------------------------------

    def real_place(self, machine: str, descriptor: int) -> Bound:
        """A listening socket of another network, where whoever comes in is that machine."""
        listening = listeners.adopt(descriptor)
        return Bound(_real_name(machine), REAL_HOST, REAL_PORT, machine, listening)

    def open(self, place: Bound) -> Door:
        """Answer there too, from now on."""

        async def open_() -> Door:
            return self._server.open(place)

        return self._do(open_())

    def shut(self, door: Door) -> None:
        """Answer nobody there any more."""

        async def close() -> None:
            door.close()

        self._do(close())

    def _do(self, step: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(step, self._loop).result()


def _real_name(machine: str) -> str:
    # Each machine has an address of this spelling, in its own network.
    return f"{listeners.spell(REAL_HOST, REAL_PORT)} of {machine}"
