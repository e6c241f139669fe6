"""WatchedStore: any store, and whether it could be used when last tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from forewarn.errors import Damaged, Unavailable
from forewarn.ports.store import Change, CommitId, Cursor, Lease, Record, Store, Write

# A lease that nobody holds anything by: renewing it is the smallest write that must be durable,
# and the journal does not grow by it.
_PROBE: Final = "probe"
_PROBE_LASTS: Final = timedelta(seconds=1)


class WatchedStore:
    """Passes everything on to a store, and remembers what was wrong with it.

    Reading proves little, as most of it comes from memory: only a write that succeeded ends a
    trouble. Damage ends with a restored backup, and so with this process.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        # Replaced whole, by whichever thread tried last.
        self._trouble: Unavailable | None = None

    @property
    def trouble(self) -> Unavailable | None:
        """Why the store cannot be used at the moment, if so."""
        return self._trouble

    def try_again(self) -> None:
        """See whether a store in trouble can be written again. Raises: Unavailable."""
        self.acquire(_PROBE, _PROBE, _PROBE_LASTS)

    def get(self, keys: Sequence[str]) -> Mapping[str, Record]:
        with self._watched():
            return self._store.get(keys)

    def scan(self, prefix: str, after: str, limit: int) -> Sequence[Record]:
        with self._watched():
            return self._store.scan(prefix, after, limit)

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        with self._watched():
            versions = self._store.commit(commit_id, writes, journal, lease)
        self._recover()
        return versions

    def changes(self, after: Cursor, limit: int, wait: timedelta = timedelta()) -> Sequence[Change]:
        with self._watched():
            return self._store.changes(after, limit, wait)

    def head(self) -> Cursor:
        with self._watched():
            return self._store.head()

    def acquire(self, name: str, owner: str, ttl: timedelta) -> Lease | None:
        with self._watched():
            lease = self._store.acquire(name, owner, ttl)
        self._recover()
        return lease

    def prune(self, before: Cursor) -> int:
        with self._watched():
            return self._store.prune(before)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except Unavailable as error:
            if not isinstance(self._trouble, Damaged):
                self._trouble = error
            raise

    def _recover(self) -> None:
        if not isinstance(self._trouble, Damaged):
            self._trouble = None
