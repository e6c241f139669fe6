"""A tally: how many of a client's questions were answered, how soon, and how many were not. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

# The bounds, in seconds, between which answers are counted: those that Prometheus's own clients have.
BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Tally:
    """Since the client was made. What was asked to wait for news is not among the answers."""

    # How many took at most as long as each of the bounds.
    within: tuple[int, ...] = (0,) * len(BOUNDS)
    answered: int = 0
    # What the answers took, in all.
    took: timedelta = timedelta()
    failed: int = 0

    def with_answer(self, took: timedelta) -> Tally:
        """The same and an answer."""
        seconds = took.total_seconds()
        return replace(
            self,
            within=tuple(
                count + (seconds <= bound) for count, bound in zip(self.within, BOUNDS, strict=True)
            ),
            answered=self.answered + 1,
            took=self.took + took,
        )

    def with_failure(self) -> Tally:
        """The same and a question that was not answered, or refused, or not understandably answered."""
        return replace(self, failed=self.failed + 1)
