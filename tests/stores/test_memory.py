"""MemoryStore keeps what every store promises."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.ports.store import Store
from forewarn.stores.memory import MemoryStore
from forewarn.testing.store_contract import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def clock(self) -> SimulatedClock:
        return SimulatedClock(datetime(2030, 1, 1, 12, tzinfo=UTC))

    @pytest.fixture
    def store(self, clock: SimulatedClock) -> Store:
        return MemoryStore(clock)
