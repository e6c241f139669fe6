"""WatchedStore is a store like any other, and knows whether it can be used."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.errors import Conflict, Damaged, Unavailable
from forewarn.ports.store import CommitId, Cursor, Store, Write
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import Fault, FaultyStore
from forewarn.testing.store_contract import StoreContract
from forewarn.wiring.watching import WatchedStore

WRITE = (Write("a", 0, b"1"),)


def made() -> tuple[FaultyStore, WatchedStore]:
    inner = FaultyStore(MemoryStore(SimulatedClock(datetime(2030, 1, 1, tzinfo=UTC))))
    return inner, WatchedStore(inner)


class TestWatchedStore(StoreContract):
    @pytest.fixture
    def clock(self) -> SimulatedClock:
        return SimulatedClock(datetime(2030, 1, 1, 12, tzinfo=UTC))

    @pytest.fixture
    def store(self, clock: SimulatedClock) -> Store:
        return WatchedStore(MemoryStore(clock))


def test_a_trouble_lasts_until_a_write_succeeds() -> None:
    inner, store = made()
    inner.spoil(Fault.AWAY)

    with pytest.raises(Unavailable):
        store.commit(CommitId("1"), WRITE, ())
    store.get(["a"])
    assert str(store.trouble) == "the store is away", "that it can be read proves nothing"

    store.commit(CommitId("2"), WRITE, ())
    assert store.trouble is None


def test_a_trouble_is_over_when_trying_again_succeeds() -> None:
    inner, store = made()
    inner.is_away = True
    with pytest.raises(Unavailable):
        store.head()
    with pytest.raises(Unavailable):
        store.try_again()

    inner.is_away = False
    store.try_again()

    assert store.trouble is None
    assert store.changes(Cursor(""), 10) == [], "and leaves no trace in the journal"


def test_a_lost_race_is_no_trouble() -> None:
    _, store = made()
    store.commit(CommitId("1"), WRITE, ())

    with pytest.raises(Conflict):
        store.commit(CommitId("2"), WRITE, ())

    assert store.trouble is None


class Moldy(MemoryStore):
    """A store with one record that cannot be read any more."""

    def head(self) -> Cursor:
        raise Damaged("a page is damaged")


def test_damage_does_not_pass() -> None:
    store = WatchedStore(Moldy(SimulatedClock(datetime(2030, 1, 1, tzinfo=UTC))))
    with pytest.raises(Damaged):
        store.head()

    store.try_again()

    assert isinstance(store.trouble, Damaged)
