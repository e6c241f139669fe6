"""What commits do to the tables of SqliteStore: several in one transaction, each on its own terms.

A commit is checked before any of it is written, against the file and against those before it in
the group. So one that is refused leaves nothing that would have to be undone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from forewarn.errors import Conflict, Fenced
from forewarn.ports.store import CommitId, Lease, Write
from forewarn.stores.sqlite_file import Connection

Versions = Mapping[str, int]

# One statement for any number of keys: what costs is how often SQLite is called.
_VERSIONS: Final = (
    "SELECT records.key, records.version"
    " FROM json_each(?) AS wanted CROSS JOIN records ON records.key = wanted.value"
)
_POSITION: Final = "SELECT position FROM commits WHERE commit_id = ?"
_TOUCHED: Final = "SELECT key, version FROM touches WHERE position = ? ORDER BY line"
# Gives the next position, or no row if that commit took effect before.
_INSERT_COMMIT: Final = "INSERT INTO commits (commit_id) VALUES (?) ON CONFLICT DO NOTHING"
_PUT_RECORD: Final = (
    "INSERT INTO records (key, version, value) VALUES (?, ?, ?)"
    " ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value"
)
_INSERT_TOUCH: Final = "INSERT INTO touches (position, line, key, version) VALUES (?, ?, ?, ?)"
_INSERT_ENTRY: Final = "INSERT INTO journal (position, line, entry) VALUES (?, ?, ?)"


class Asked(NamedTuple):
    """A commit that somebody waits for."""

    commit_id: CommitId
    writes: Sequence[Write]
    journal: Sequence[bytes]
    lease: Lease | None


def commit_together(
    db: Connection, group: Sequence[Asked], is_held: Callable[[Lease], bool]
) -> list[Versions | Exception]:
    """Write what may be written, in this order; one outcome for each. The caller's transaction."""
    draft = _Draft(db, {write.key for asked in group for write in asked.writes})
    outcomes = [draft.outcome(asked, is_held) for asked in group]
    draft.write()
    return outcomes


class _Draft:
    """A group of commits as it will be written, on top of what the file holds."""

    def __init__(self, db: Connection, keys: AbstractSet[str]) -> None:
        self._cursor = db.cursor()
        # As the file has them.
        self._versions: dict[str, int] = dict(
            self._cursor.execute(_VERSIONS, (json.dumps(list(keys)),))
        )
        self._answers: dict[CommitId, Versions] = {}
        # By key: what several commits of one group write, the last one writes.
        self._records: dict[str, tuple[str, int, bytes | None]] = {}
        self._touches: list[tuple[int, int, str, int]] = []
        self._journal: list[tuple[int, int, bytes]] = []

    def outcome(self, asked: Asked, is_held: Callable[[Lease], bool]) -> Versions | Exception:
        """What this commit is told once the group is durable."""
        refusal = self._refusal(asked, is_held)
        if refusal is None:
            self._cursor.execute(_INSERT_COMMIT, (asked.commit_id,))
            if self._cursor.rowcount:
                assert self._cursor.lastrowid is not None
                return self._add(asked, self._cursor.lastrowid)
        # A commit that took effect is told so, whatever has become of its lease and its keys.
        before = self._answer(asked.commit_id)
        if before is not None:
            return before
        assert refusal is not None, "a commit that is not new was answered before"
        return refusal

    def write(self) -> None:
        # Many rows to a call: what a group costs is mostly how often SQLite is called.
        for statement, rows in (
            (_PUT_RECORD, self._records.values()),
            (_INSERT_TOUCH, self._touches),
            (_INSERT_ENTRY, self._journal),
        ):
            if rows:
                self._cursor.executemany(statement, rows)

    def _refusal(self, asked: Asked, is_held: Callable[[Lease], bool]) -> Exception | None:
        lease = asked.lease
        if lease is not None and not is_held(lease):
            return Fenced(f"lease {lease.name} is no longer held by {lease.owner}")
        lost = [write.key for write in asked.writes if self._version(write.key) != write.expected]
        return Conflict(lost) if lost else None

    def _add(self, asked: Asked, position: int) -> Versions:
        versions: dict[str, int] = {}
        for line, write in enumerate(asked.writes):
            version = versions[write.key] = write.expected + 1
            self._records[write.key] = (write.key, version, write.value)
            self._touches.append((position, line, write.key, version))
        self._journal += [(position, line, entry) for line, entry in enumerate(asked.journal)]
        self._answers[asked.commit_id] = versions
        return versions

    def _version(self, key: str) -> int:
        if key in self._records:
            return self._records[key][1]
        return self._versions.get(key, 0)

    def _answer(self, commit_id: CommitId) -> Versions | None:
        """What this commit was told before; None if it never took effect."""
        if commit_id in self._answers:
            return self._answers[commit_id]
        row = self._cursor.execute(_POSITION, (commit_id,)).fetchone()
        return dict(self._cursor.execute(_TOUCHED, row)) if row else None
