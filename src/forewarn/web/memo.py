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
from typing import Final, Generic, TypeVar

from forewarn.web.limits import Limits
from forewarn.web.metadata import Decision

_DecidedT = TypeVar("_DecidedT")
_HEAD_END: Final = b"\r\n\r\n"


class Memo(Generic[_DecidedT]):
    """Remembers decisions within limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._decisions: dict[bytes, _DecidedT] = {}
        self._brought: dict[Hashable, deque[bytes]] = {}
        # Bound once: it is called for every request.
        self.recall = self._decisions.get

    def __len__(self) -> int:
        return len(self._decisions)

    def remember(self, sent: bytes, decision: _DecidedT, *, by: Hashable) -> None:
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


class Heads:
    """Remembers decisions about requests with a body, by the exact bytes of the head alone.

    A head says how long its body is. So what arrived at once, and is a known head with just as
    many bytes behind it, is one request: the parser, which was asked before, would say the same.
    """

    def __init__(self, limits: Limits) -> None:
        self._memo: Memo[tuple[Decision, int]] = Memo(limits)

    def recall(self, data: bytes) -> tuple[Decision, bytes] | None:
        """What was decided about the head of this request, and its body."""
        end = data.find(_HEAD_END) + len(_HEAD_END)
        known = self._memo.recall(data[:end])
        if known is None or known[1] != len(data) - end:
            return None
        return known[0], data[end:]

    def remember(self, data: bytes, body: bytes, decision: Decision, *, by: Hashable) -> None:
        """Keep what was decided about a request that says how long its body is."""
        end = len(data) - len(body)
        # h11 also takes heads that end otherwise; nobody sends those.
        if data.find(_HEAD_END) + len(_HEAD_END) == end:
            self._memo.remember(data[:end], (decision, len(body)), by=by)
