"""The clocks: the machine's own, and one that moves only when it is told to."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def elapsed(self) -> timedelta:
        return timedelta(seconds=time.monotonic())


class SimulatedClock:
    """A clock for tests and simulations: `advance` lets time pass, `jump` only sets the hands."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._elapsed = timedelta()

    def now(self) -> datetime:
        return self._now

    def elapsed(self) -> timedelta:
        return self._elapsed

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        assert by >= timedelta(), "time does not go back; `jump` sets the hands"
        self._now += by
        self._elapsed += by

    def jump(self, by: timedelta) -> None:
        """Set the hands, as an administrator or a time server would; no time passes."""
        self._now += by
