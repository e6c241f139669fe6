"""What the guests' endpoint counts; whoever publishes the numbers reads them here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """Plain numbers, written by the endpoint's thread alone and read by any."""

    # By route and status.
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
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
