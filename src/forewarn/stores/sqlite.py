"""SqliteStore: records and journal in one SQLite file, held by one process at a time.

One connection, one lock. A second process is refused instead of deciding on the same ledgers.
A commit is in the write-ahead log and synced before it returns; those that wait at the same
time share one transaction and one sync, each with its own outcome.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from forewarn.errors import OutcomeUnknown, Unavailable
from forewarn.ports.clock import Clock
from forewarn.ports.store import Change, CommitId, Cursor, Lease, Record, Touch, Write
from forewarn.stores.cursors import cursor_at, position_of, resume
from forewarn.stores.lane import Lane
from forewarn.stores.sqlite_commits import Asked, Versions, commit_together
from forewarn.stores.sqlite_file import Connection, copy, opened, pour, transaction, translated
from forewarn.stores.sqlite_schema import MIGRATIONS

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_GIVING_WAY: Final = timedelta(milliseconds=1)


class SqliteStore:
    """A store in one file. Everything it promises survives a crash of the machine."""

    def __init__(self, path: Path, clock: Clock, *, migrations: Sequence[str] = MIGRATIONS) -> None:
        """Open the file, and create or upgrade it as needed.

        Raises: Refused if it is held by another process, damaged, foreign or newer; Unavailable.
        """
        self._path = path.absolute()
        self._clock = clock
        # Guards the connection; notified by each commit and by closing.
        self._changed = threading.Condition()
        self._connection: Connection | None = opened(self._path, migrations)
        # Held while a copy is made; taken before the lock above, never after it.
        self._copying = threading.Lock()
        self._lane = Lane[Asked, Versions](self._commit_waiting)

    def get(self, keys: Sequence[str]) -> Mapping[str, Record]:
        with self._turn() as db:
            return {key: _record(db, key) for key in keys}

    def scan(self, prefix: str, after: str, limit: int) -> Sequence[Record]:
        assert limit > 0, "a page holds at least one record"
        # SQLite orders text by its UTF-8 bytes, in which 0xff never occurs.
        end = prefix.encode() + b"\xff"
        with self._turn() as db:
            rows = db.execute(
                "SELECT key, version, value FROM records"
                " WHERE key > ? AND key >= ? AND key < CAST(? AS TEXT) AND value IS NOT NULL"
                " ORDER BY key LIMIT ?",
                (after, prefix, end, limit),
            )
            return [Record(*row) for row in rows]

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        assert len({write.key for write in writes}) == len(writes), "a key is written once"
        return self._lane.go(Asked(commit_id, writes, journal, lease))

    def changes(self, after: Cursor, limit: int, wait: timedelta = timedelta()) -> Sequence[Change]:
        assert limit > 0, "a page holds at least one change"
        with self._changed:
            # Only at the head is there nothing to tell.
            self._changed.wait_for(lambda: self.head() != after, wait.total_seconds())
            with self._turn() as db:
                oldest, newest = _kept(db)
                return _page(db, resume(after, oldest=oldest, newest=newest), limit)

    def head(self) -> Cursor:
        with self._turn() as db:
            _, newest = _kept(db)
            return cursor_at(newest)

    def acquire(self, name: str, owner: str, ttl: timedelta) -> Lease | None:
        assert ttl > timedelta(), "a lease lasts for a while"
        with self._transaction() as db:
            now = self._clock.now()
            held, expires = _lease(db, name) or (Lease(name, owner, 0), now)
            if expires <= now:
                held = Lease(name, owner, held.fence + 1)
            elif held.owner != owner:
                return None
            db.execute(
                "INSERT OR REPLACE INTO leases (name, owner, fence, expires) VALUES (?, ?, ?, ?)",
                (name, owner, held.fence, (now + ttl - _EPOCH) // timedelta(microseconds=1)),
            )
        return held

    def prune(self, before: Cursor) -> int:
        with self._transaction() as db:
            _, newest = _kept(db)
            end = min(position_of(before), newest)
            db.execute("DELETE FROM journal WHERE position < ?", (end,))
            db.execute("DELETE FROM touches WHERE position < ?", (end,))
            return db.execute("DELETE FROM commits WHERE position < ?", (end,)).rowcount

    def backup_to(self, path: Path) -> None:
        """Write a consistent copy to a new file, while commits go on between its steps.

        Raises: Refused if there is such a file already, Unavailable.
        """
        with self._copying:
            copy(path, self._pour)

    def close(self) -> None:
        """Let go of the file. Whoever waits for changes is told that the store is gone."""
        with self._changed:
            connection, self._connection = self._connection, None
            self._changed.notify_all()
        # A copy that is being made ends at its next step, and only then is the file free.
        with self._copying, translated(self._path):
            if connection is not None:
                connection.close()

    @contextmanager
    def _turn(self) -> Iterator[Connection]:
        with self._changed, translated(self._path):
            yield self._held()

    def _held(self) -> Connection:
        if self._connection is None:
            raise Unavailable(f"the database {self._path} is closed")
        return self._connection

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._turn() as db:
            with transaction(db, self._path):
                yield db
            self._changed.notify_all()

    def _pour(self, other: Connection) -> None:
        with self._turn() as db:
            pour(db, other, self._give_way)

    def _give_way(self) -> None:
        """Let others have the file for a moment; it may be closed afterwards."""
        # Let go of only for an instant, the lock would come back before anyone had woken up.
        self._changed.wait(_GIVING_WAY.total_seconds())
        self._held()

    def _commit_waiting(
        self, aboard: Callable[[], Sequence[Asked]]
    ) -> Sequence[Versions | Exception]:
        with self._changed:
            db = self._held()
            # Asked for only now: whoever came while this waited for its turn goes with it.
            outcomes = self._attempt(db, aboard())
            self._changed.notify_all()
            return outcomes

    def _attempt(self, db: Connection, group: Sequence[Asked]) -> list[Versions | Exception]:
        """Commit a group in one transaction. Nobody is told a thing before all of it is durable."""
        try:
            with translated(self._path), transaction(db, self._path):
                return commit_together(db, group, lambda lease: self._holds(db, lease))
        except OutcomeUnknown as unknown:
            return [OutcomeUnknown(str(unknown)) for _ in group]
        except Exception as error:  # noqa: BLE001 - even a bug is raised where it was asked for
            if len(group) == 1:
                return [error]
            # Nothing was written. What one of them brought about, such as a full disk, is not
            # to be the others' outcome too.
            return [outcome for asked in group for outcome in self._attempt(db, [asked])]

    def _holds(self, db: Connection, lease: Lease) -> bool:
        held, expires = _lease(db, lease.name) or (None, self._clock.now())
        return held == lease and expires > self._clock.now()


def _record(db: Connection, key: str) -> Record:
    row = db.execute("SELECT version, value FROM records WHERE key = ?", (key,)).fetchone()
    return Record(key, *row) if row else Record(key, 0, None)


def _lease(db: Connection, name: str) -> tuple[Lease, datetime] | None:
    query = "SELECT owner, fence, expires FROM leases WHERE name = ?"
    row = db.execute(query, (name,)).fetchone()
    if row is None:
        return None
    owner, fence, expires = row
    return Lease(name, owner, fence), _EPOCH + timedelta(microseconds=expires)


def _kept(db: Connection) -> tuple[int, int]:
    """The positions of the oldest and the newest commit that are kept; zeros if there is none."""
    # Each alone is one step down the tree; asked for together, SQLite would read the table.
    (oldest,) = db.execute("SELECT min(position) FROM commits").fetchone()
    (newest,) = db.execute("SELECT max(position) FROM commits").fetchone()
    return oldest or 0, newest or 0


def _page(db: Connection, after: int, limit: int) -> Sequence[Change]:
    commits = db.execute(
        "SELECT position, commit_id FROM commits WHERE position > ? ORDER BY position LIMIT ?",
        (after, limit),
    ).fetchall()
    if not commits:
        return []
    ends = (commits[0][0], commits[-1][0])
    touched: defaultdict[int, list[Touch]] = defaultdict(list)
    for position, key, version in db.execute(
        "SELECT position, key, version FROM touches"
        " WHERE position BETWEEN ? AND ? ORDER BY position, line",
        ends,
    ):
        touched[position].append(Touch(key, version))
    journal: defaultdict[int, list[bytes]] = defaultdict(list)
    for position, entry in db.execute(
        "SELECT position, entry FROM journal"
        " WHERE position BETWEEN ? AND ? ORDER BY position, line",
        ends,
    ):
        journal[position].append(entry)
    return [
        Change(cursor_at(position), commit_id, tuple(touched[position]), tuple(journal[position]))
        for position, commit_id in commits
    ]
