"""What the guests' endpoint counts; whoever publishes the numbers reads them here."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """Plain numbers, written by the endpoint's thread alone and read by any."""

    # By route and status.
    # No Counter: adding one to a Counter costs a third of answering a poll.
    answers: defaultdict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
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
