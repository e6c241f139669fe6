"""Who was heard when, on a clock that does not jump.

Kept in memory only: after a start, every scope has its full time of silence again.
"""

from __future__ import annotations

from datetime import timedelta

from forewarn.core.names import ScopeId
from forewarn.ports.clock import Clock


class Attendance:
    """Remembers for each scope when one of its machines last asked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.elapsed()
        self._heard: dict[ScopeId, timedelta] = {}

    def hear(self, scope: ScopeId) -> None:
        """A machine of the scope asked just now."""
        self._heard[scope] = self._clock.elapsed()

    def silent_for(self, scope: ScopeId) -> timedelta:
        """How long the scope has been silent while somebody listened."""
        return self._clock.elapsed() - self._heard.get(scope, self._since)
