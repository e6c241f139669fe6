"""What was decided about requests, by their exact bytes.

A guest sends the same bytes every second, and what follows from bytes alone need be decided only
once. Who is calling, and what is true now, is never remembered here.

Theory: the entries are shared by all callers, but each caller pays for those that it brought, and
may have a few: a guest that never sends the same bytes twice pushes out its own entries and
nobody else's. If very many callers do so, the memo is emptied, and everybody pays for one parse.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

from forewarn.web.limits import Limits
from forewarn.web.metadata import Decision


class Memo:
    """Remembers decisions within limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._decisions: dict[bytes, Decision] = {}
        self._brought: dict[Hashable, deque[bytes]] = {}
        # Bound once: it is called for every request.
        self.recall = self._decisions.get

    def __len__(self) -> int:
        return len(self._decisions)

    def remember(self, sent: bytes, decision: Decision, *, by: Hashable) -> None:
        """Keep what was decided about these bytes, at the expense of the caller."""
        if len(sent) > self._limits.memo_key_bytes_max or sent in self._decisions:
            return
        if len(self._decisions) >= self._limits.memo_entries_max:
            self._decisions.clear()
            self._brought.clear()
        brought = self._brought.setdefault(by, deque())
        if len(brought) >= self._limits.memo_entries_per_caller_max:
            self._decisions.pop(brought.popleft(), None)
        brought.append(sent)
        self._decisions[sent] = decision
