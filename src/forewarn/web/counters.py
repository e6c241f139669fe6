"""What the guests' endpoint counts; whoever publishes the numbers reads them here."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from forewarn.web.metadata import SCHEDULED_EVENTS


@dataclass(slots=True)
class Counters:
    """Plain numbers, written by the endpoint's thread alone and read by any."""

    # Documents that the hatch has shown: nearly all answers, so they have a number of their own.
    shown: int = 0
    # Requests from addresses that no machine has.
    strangers: int = 0
    # Requests to start events that were accepted; each may name several.
    approvals: int = 0
    # Attempts to note in the store that a scope asked, which failed.
    attend_failures: int = 0
    # Connections that were refused because their caller, or everybody, had too many.
    throttled: int = 0
    # As of now.
    connections: int = 0
    waiting: int = 0
    _others: defaultdict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))

    @property
    def answers(self) -> dict[tuple[str, int], int]:
        """All answers as of now, by route and status."""
        # A copy in one go: the endpoint goes on counting meanwhile.
        answers = defaultdict(int, self._others)
        if self.shown:
            answers[SCHEDULED_EVENTS, 200] += self.shown
        return answers

    def count(self, route: str, status: int) -> None:
        """Count an answer that took the long way."""
        self._others[route, status] += 1
