"""MemoryStore: a store that lives as long as its process, for tests and for a first try."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from forewarn.errors import Conflict, Fenced
from forewarn.ports.clock import Clock
from forewarn.ports.store import Change, CommitId, Cursor, Lease, Record, Touch, Write
from forewarn.stores.cursors import cursor_at, position_of, resume


class MemoryStore:
    """Keeps everything in this process. Durable means, here: until the process ends."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Guards all that follows; notified by each commit.
        self._changed = threading.Condition()
        self._records: dict[str, Record] = {}
        self._keys: list[str] = []  # the keys of _records, sorted
        self._changes: list[Change] = []
        self._pruned = 0  # how many changes are gone from the front
        self._versions: dict[CommitId, Mapping[str, int]] = {}
        self._leases: dict[str, tuple[Lease, datetime]] = {}

    def get(self, keys: Sequence[str]) -> Mapping[str, Record]:
        with self._changed:
            return {key: self._record(key) for key in keys}

    def scan(self, prefix: str, after: str, limit: int) -> Sequence[Record]:
        assert limit > 0, "a page holds at least one record"
        page: list[Record] = []
        with self._changed:
            start = max(bisect_right(self._keys, after), bisect_left(self._keys, prefix))
            for index in range(start, len(self._keys)):
                key = self._keys[index]
                if len(page) == limit or not key.startswith(prefix):
                    break
                if self._records[key].value is not None:
                    page.append(self._records[key])
        return page

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        assert len({write.key for write in writes}) == len(writes), "a key is written once"
        with self._changed:
            if commit_id in self._versions:
                return self._versions[commit_id]
            if lease is not None and not self._holds(lease):
                raise Fenced(f"lease {lease.name} is no longer held by {lease.owner}")
            lost = [w.key for w in writes if self._record(w.key).version != w.expected]
            if lost:
                raise Conflict(lost)
            for write in writes:
                self._put(Record(write.key, write.expected + 1, write.value))
            touched = tuple(Touch(write.key, write.expected + 1) for write in writes)
            cursor = cursor_at(self._newest() + 1)
            self._changes.append(Change(cursor, commit_id, touched, tuple(journal)))
            self._versions[commit_id] = {touch.key: touch.version for touch in touched}
            self._changed.notify_all()
            return self._versions[commit_id]

    def changes(self, after: Cursor, limit: int, wait: timedelta = timedelta()) -> Sequence[Change]:
        assert limit > 0, "a page holds at least one change"
        with self._changed:
            # Only at the head is there nothing to tell.
            self._changed.wait_for(lambda: self.head() != after, wait.total_seconds())
            oldest = self._pruned + 1
            start = resume(after, oldest=oldest, newest=self._newest())
            first = max(start - self._pruned, 0)
            return self._changes[first : first + limit]

    def head(self) -> Cursor:
        with self._changed:
            return cursor_at(self._newest())

    def acquire(self, name: str, owner: str, ttl: timedelta) -> Lease | None:
        assert ttl > timedelta(), "a lease lasts for a while"
        with self._changed:
            now = self._clock.now()
            held, expires = self._leases.get(name, (Lease(name, owner, 0), now))
            if expires <= now:
                held = Lease(name, owner, held.fence + 1)
            elif held.owner != owner:
                return None
            self._leases[name] = (held, now + ttl)
            return held

    def prune(self, before: Cursor) -> int:
        with self._changed:
            last = min(position_of(before), self._newest()) - 1
            count = max(last - self._pruned, 0)
            for change in self._changes[:count]:
                del self._versions[change.commit_id]
            del self._changes[:count]
            self._pruned += count
            return count

    def _record(self, key: str) -> Record:
        return self._records.get(key) or Record(key, 0, None)

    def _put(self, record: Record) -> None:
        if record.key not in self._records:
            insort(self._keys, record.key)
        self._records[record.key] = record

    def _newest(self) -> int:
        return self._pruned + len(self._changes)

    def _holds(self, lease: Lease) -> bool:
        held, expires = self._leases.get(lease.name, (None, self._clock.now()))
        return held == lease and expires > self._clock.now()
