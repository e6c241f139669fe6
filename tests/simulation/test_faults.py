"""A store that fails when told to, and is a store like any other until then."""

from __future__ import annotations

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.errors import OutcomeUnknown, Unavailable
from forewarn.ports.store import CommitId, Cursor, Store, Write
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import Fault, FaultyStore
from forewarn.testing.store_contract import StoreContract
from forewarn.testing.worlds import NOON


class TestFaultyStore(StoreContract):
    @pytest.fixture
    def clock(self) -> SimulatedClock:
        return SimulatedClock(NOON)

    @pytest.fixture
    def store(self, clock: SimulatedClock) -> Store:
        return FaultyStore(MemoryStore(clock))


@pytest.mark.parametrize(
    ("fault", "error", "takes_effect"),
    [
        (Fault.AWAY, Unavailable, False),
        (Fault.LOST_BEFORE, OutcomeUnknown, False),
        (Fault.LOST_AFTER, OutcomeUnknown, True),
    ],
)
def test_a_spoiled_commit_fails_as_it_was_told_to(
    fault: Fault, error: type[Exception], *, takes_effect: bool
) -> None:
    store = FaultyStore(MemoryStore(SimulatedClock(NOON)))
    store.spoil(fault)

    with pytest.raises(error):
        store.commit(CommitId("c1"), [Write("a", 0, b"1")], [])

    assert bool(store.changes(Cursor(""), 10)) is takes_effect
    assert store.commit(CommitId("c1"), [Write("a", 0, b"1")], []) == {"a": 1}


def test_a_store_that_was_healed_fails_no_more() -> None:
    store = FaultyStore(MemoryStore(SimulatedClock(NOON)))
    store.spoil(Fault.AWAY)
    store.overtake(lambda: store.commit(CommitId("rival"), [Write("a", 0, b"2")], []))

    store.heal()

    assert store.commit(CommitId("c1"), [Write("a", 0, b"1")], []) == {"a": 1}
