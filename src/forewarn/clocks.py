"""The clocks: the machine's own, and those that go as they are told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final


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


class PacedClock:
    """A clock with a pace of its own: 60 makes an hour of a minute, 0 stands still until told.

    Its hands are never set: what it shows and what has passed always agree.
    """

    def __init__(
        self, start: datetime, speed: float, real_seconds: Callable[[], float] = time.monotonic
    ) -> None:
        assert speed >= 0, "time does not go back"
        self.speed: Final = speed
        self._start = start
        self._real_seconds = real_seconds
        self._began = real_seconds()
        # What was advanced by; guarded, as several threads may advance.
        self._advanced = timedelta()
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self._start + self.elapsed()

    def elapsed(self) -> timedelta:
        went = (self._real_seconds() - self._began) * self.speed if self.speed else 0.0
        return timedelta(seconds=went) + self._advanced

    def advance(self, by: timedelta) -> None:
        """Let time pass at once."""
        assert by >= timedelta(), "time does not go back"
        with self._lock:
            self._advanced += by

    def advance_to(self, instant: datetime) -> None:
        """Let time pass up to an instant; one that has passed already changes nothing."""
        with self._lock:
            self._advanced += max(instant - self.now(), timedelta())
