"""The threads of a service, and how they end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from datetime import timedelta

from forewarn.clocks import SimulatedClock
from forewarn.core.periods import Periods
from forewarn.fabrics.simulated import SimulatedFabric
from forewarn.identities.addresses import AddressBook
from forewarn.ids import SeededIds
from forewarn.ports.store import Change, Cursor
from forewarn.stores.memory import MemoryStore
from forewarn.testing.worlds import NOON
from forewarn.wiring.assembly import assemble
from forewarn.wiring.watching import WatchedStore
from forewarn.wiring.working import Workers


class AskedStore(MemoryStore):
    """A store that remembers how long it was to wait for changes."""

    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__(clock)
        self.waits: list[timedelta] = []
        self.is_asked = threading.Event()

    def changes(self, after: Cursor, limit: int, wait: timedelta = timedelta()) -> Sequence[Change]:
        self.waits.append(wait)
        self.is_asked.set()
        return super().changes(after, limit, wait)


def test_nobody_waits_where_the_end_cannot_be_heard() -> None:
    """A store that waits for changes cannot be told that the service is to stop."""
    clock = SimulatedClock(NOON)
    asked = AskedStore(clock)
    store = WatchedStore(asked)
    assembly = assemble(
        clock=clock,
        ids=SeededIds(1),
        store=store,
        fabric=SimulatedFabric(clock),
        identities=AddressBook(),
        rules=Periods(),
    )
    workers = Workers(assembly, store, logging.getLogger(__name__), lambda: None)
    workers.start()
    assert asked.is_asked.wait(10)

    workers.stop()

    assert set(asked.waits) == {timedelta()}
