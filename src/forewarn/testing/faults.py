"""Doors in front of a store that let things go wrong: commits that fail, and deaths at any call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from typing import TypeVar

from forewarn.errors import Conflict, OutcomeUnknown, Unavailable
from forewarn.ports.store import Change, CommitId, Cursor, Lease, Record, Store, Write

_Answer = TypeVar("_Answer")


class Fault(Enum):
    """What goes wrong with a commit."""

    # It is refused at the door: nothing is written.
    AWAY = "away"
    # It does not arrive, and nobody can tell.
    LOST_BEFORE = "lost before"
    # It takes effect, and the answer does not arrive.
    LOST_AFTER = "lost after"
    # It is told that somebody else was faster.
    CONFLICT = "conflict"


class StoreDoor:
    """Passes everything on to a store. Whoever stands in a door changes what goes through it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, keys: Sequence[str]) -> Mapping[str, Record]:
        self._enter()
        return self._leave(self._store.get(keys))

    def scan(self, prefix: str, after: str, limit: int) -> Sequence[Record]:
        self._enter()
        return self._leave(self._store.scan(prefix, after, limit))

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        self._enter()
        return self._leave(self._store.commit(commit_id, writes, journal, lease))

    def changes(self, after: Cursor, limit: int, wait: timedelta = timedelta()) -> Sequence[Change]:
        self._enter()
        return self._leave(self._store.changes(after, limit, wait))

    def head(self) -> Cursor:
        self._enter()
        return self._leave(self._store.head())

    def acquire(self, name: str, owner: str, ttl: timedelta) -> Lease | None:
        self._enter()
        return self._leave(self._store.acquire(name, owner, ttl))

    def prune(self, before: Cursor) -> int:
        self._enter()
        return self._leave(self._store.prune(before))

    def _enter(self) -> None:
        """Whatever happens before any call."""

    def _leave(self, answer: _Answer) -> _Answer:
        """Whatever happens after any call, which had this answer."""
        return answer


class FaultyStore(StoreDoor):
    """Passes everything on to a store, except what it was told to spoil."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._faults: deque[Fault] = deque()
        self._rivals: deque[Callable[[], object]] = deque()
        self.is_away = False
        # Every commit that was asked for, in order, spoiled or not.
        self.asked: list[CommitId] = []

    def spoil(self, *faults: Fault) -> None:
        """Let the next commits fail like this, one after another."""
        self._faults.extend(faults)

    def overtake(self, *rivals: Callable[[], object]) -> None:
        """Before each of the next commits, let somebody else be faster."""
        self._rivals.extend(rivals)

    def heal(self) -> None:
        """Let nothing fail any more."""
        self._faults.clear()
        self._rivals.clear()

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        self._enter()
        is_repeated = commit_id in self.asked
        self.asked.append(commit_id)
        if self._rivals:
            self._rivals.popleft()()
        fault = self._faults.popleft() if self._faults else None
        if fault is Fault.AWAY:
            raise Unavailable("the store is away")
        if fault is Fault.LOST_BEFORE:
            raise OutcomeUnknown("the connection broke")
        # Of a commit that may have taken effect, no store says this.
        if fault is Fault.CONFLICT and writes and not is_repeated:
            raise Conflict([write.key for write in writes])
        versions = self._store.commit(commit_id, writes, journal, lease)
        if fault is Fault.LOST_AFTER:
            raise OutcomeUnknown("the connection broke")
        return versions

    def _enter(self) -> None:
        if self.is_away:
            raise Unavailable("the store is away")
