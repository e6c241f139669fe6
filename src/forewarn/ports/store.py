"""Where records live: versioned bytes under keys, and the journal of what was committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NewType, Protocol

CommitId = NewType("CommitId", str)
# Opaque: only a store can read it. "" stands before the first commit.
Cursor = NewType("Cursor", str)


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept under a key. A deleted record has no value; its version survives."""

    key: str
    version: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Write:
    """A new value for a key, if its version is still `expected`. 0 means: must never have existed."""

    key: str
    expected: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Lease:
    """A right that one owner holds for a while. The fence grows with every new owner."""

    name: str
    owner: str
    fence: int


@dataclass(frozen=True, slots=True)
class Touch:
    """A key that a commit wrote, and the version it got."""

    key: str
    version: int


@dataclass(frozen=True, slots=True)
class Change:
    """One commit, as the feed tells it."""

    cursor: Cursor
    commit_id: CommitId
    touched: tuple[Touch, ...]
    journal: tuple[bytes, ...]


class Store(Protocol):
    """Keeps records, replaces several at once or none, and tells everyone what changed.

    Every method may be called from any thread. Every implementation passes
    `forewarn.testing.store_contract`; what that suite does not check is not promised.
    """

    def get(self, keys: Sequence[str]) -> Mapping[str, Record]:
        """The latest committed records; version 0 without value for a key never written.

        Linearizable: it sees every commit that returned before the call.

        Raises: Unavailable.
        """
        ...

    def scan(self, prefix: str, after: str, limit: int) -> Sequence[Record]:
        """One page of the records that have a value, in the order of their keys (code points).

        Only keys that start with `prefix` and are greater than `after`; fewer than `limit`
        means that there are no more.

        Raises: Unavailable.
        """
        ...

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        """Write all records and journal entries, or nothing. Returns the new version of each key.

        A write takes effect only if the key's version is still the expected one, which it then
        raises by one. Durable once it returns. Repeating a commit id changes nothing and
        returns what the first one did. With a lease, only while that lease still holds.

        Raises: Conflict, Fenced, OutcomeUnknown (repeat with the same id), Unavailable.
        """
        ...

    def changes(self, after: Cursor, limit: int, wait: timedelta = timedelta()) -> Sequence[Change]:
        """The commits after a cursor: no gaps, in commit order, durable ones only.

        `wait` is a courtesy: with nothing to tell, the call may block for that long at most.

        Raises: Pruned, Unavailable.
        """
        ...

    def head(self) -> Cursor:
        """The cursor of the newest commit; "" in a store that never had one.

        Raises: Unavailable.
        """
        ...

    def acquire(self, name: str, owner: str, ttl: timedelta) -> Lease | None:
        """Take or renew a lease; None while another owner holds it.

        Raises: Unavailable.
        """
        ...

    def prune(self, before: Cursor) -> int:
        """Forget the journal of all commits before the one at this cursor; returns how many.

        Records stay. The newest commit is always kept. Export the journal first.

        Raises: Unavailable.
        """
        ...
