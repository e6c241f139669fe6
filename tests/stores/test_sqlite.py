"""SqliteStore: what every store promises, and what only a file can be asked."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forewarn import __version__
from forewarn.clocks import SimulatedClock
from forewarn.errors import OutcomeUnknown, Refused, Unavailable
from forewarn.ports.store import CommitId, Cursor, Record, Store, Write
from forewarn.stores.sqlite import SqliteStore
from forewarn.stores.sqlite_file import opened, transaction, translated
from forewarn.stores.sqlite_schema import APPLICATION_ID, MIGRATIONS
from forewarn.testing.store_contract import StoreContract

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
BEGINNING = Cursor("")
NEXT_SCHEMA = (*MIGRATIONS, "ALTER TABLE records ADD COLUMN note TEXT;")
BROKEN_SCHEMA = (*MIGRATIONS, "CREATE TABLE extra (x); INSERT INTO nowhere VALUES (1);")

# A service in small: commits pairs, and says so on its standard output once they are durable.
COMMIT_FOREVER = """
import sys
from pathlib import Path
from forewarn.clocks import SystemClock
from forewarn.ports.store import CommitId, Write
from forewarn.stores.sqlite import SqliteStore

store = SqliteStore(Path(sys.argv[1]), SystemClock())
version = store.get(["a"])["a"].version
while True:
    value = str(version + 1).encode() * 300
    writes = [Write("a", version, value), Write("b", version, value)]
    store.commit(CommitId(f"c{version + 1}"), writes, [value])
    version += 1
    print(version, flush=True)
"""

OPEN_ONCE = """
import sys
from pathlib import Path
from forewarn.clocks import SystemClock
from forewarn.errors import ForewarnError
from forewarn.stores.sqlite import SqliteStore

try:
    SqliteStore(Path(sys.argv[1]), SystemClock()).close()
except ForewarnError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""

# The limit on the size of files stands for a disk that fails in the middle of a commit.
COMMIT_ON_A_FAILING_DISK = """
import resource, signal, sys
from pathlib import Path
from forewarn.clocks import SystemClock
from forewarn.errors import OutcomeUnknown
from forewarn.ports.store import CommitId, Cursor, Write
from forewarn.stores.sqlite import SqliteStore

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = SqliteStore(Path(sys.argv[1]), SystemClock())
store.commit(CommitId("c1"), [Write("a", 0, b"one")], [])
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
large = [Write("a", 1, b"x" * 500_000)]
try:
    store.commit(CommitId("c2"), large, [b"entry"])
except OutcomeUnknown as error:
    print(error)
else:
    sys.exit("the disk was meant to fail")
assert store.get(["a"])["a"].value == b"one"
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert store.commit(CommitId("c2"), large, [b"entry"]) == {"a": 2}
assert store.commit(CommitId("c2"), large, [b"entry"]) == {"a": 2}
assert [change.commit_id for change in store.changes(Cursor(""), 10)] == ["c1", "c2"]
"""


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock(NOON)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "forewarn.db"


@pytest.fixture
def store(path: Path, clock: SimulatedClock) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path, clock)) as store:
        yield store


def python(code: str, path: Path) -> subprocess.Popen[str]:
    """Another process, with the same packages as this one."""
    return subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def put(store: Store, key: str, version: int) -> None:
    value = str(version).encode()
    store.commit(CommitId(f"{key}@{version}"), [Write(key, version - 1, value)], [value])


def names(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()}


class TestSqliteStore(StoreContract):
    pass


def test_everything_survives_closing_and_opening(path: Path, clock: SimulatedClock) -> None:
    with closing(SqliteStore(path, clock)) as store:
        put(store, "a", 1)
        put(store, "a", 2)
        lease = store.acquire("conductor", "east", timedelta(minutes=1))
        told, head = store.changes(BEGINNING, 10), store.head()

    with closing(SqliteStore(path, clock)) as store:
        assert store.get(["a"]) == {"a": Record("a", 2, b"2")}
        assert store.changes(BEGINNING, 10) == told
        assert store.head() == head
        assert store.acquire("conductor", "west", timedelta(minutes=1)) is None
        assert store.acquire("conductor", "east", timedelta(minutes=1)) == lease
        put(store, "a", 2)
        assert store.head() == head


def test_pruning_leaves_no_row_behind(path: Path, clock: SimulatedClock) -> None:
    with closing(SqliteStore(path, clock)) as store:
        for version in (1, 2, 3):
            put(store, "a", version)
        store.prune(store.head())

    with closing(sqlite3.connect(path)) as db:
        for table in ("commits", "touches", "journal"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (1,), table


def test_positions_go_on_after_pruning_and_opening(path: Path, clock: SimulatedClock) -> None:
    with closing(SqliteStore(path, clock)) as store:
        for version in (1, 2, 3):
            put(store, "a", version)
        head = store.head()
        store.prune(head)

    with closing(SqliteStore(path, clock)) as store:
        put(store, "a", 4)
        assert [change.commit_id for change in store.changes(head, 10)] == ["a@4"]


def test_a_killed_process_loses_no_acknowledged_commit(path: Path, clock: SimulatedClock) -> None:
    acknowledged = 0
    for lines in (1, 25, 60):
        with python(COMMIT_FOREVER, path) as child:
            assert child.stdout is not None
            for _ in range(lines):
                acknowledged = int(child.stdout.readline())
            child.kill()
            rest = child.stdout.read().split()
        acknowledged = int(rest[-1]) if rest else acknowledged

        with closing(SqliteStore(path, clock)) as store:
            pair = store.get(["a", "b"])
            told = store.changes(BEGINNING, 100_000)
        assert pair["a"].version >= acknowledged
        assert pair["a"].version == pair["b"].version
        assert pair["a"].value == pair["b"].value == told[-1].journal[0]
        assert [change.commit_id for change in told] == [
            f"c{number}" for number in range(1, pair["a"].version + 1)
        ]


def test_a_second_process_is_refused_and_told_what_to_do(path: Path, store: SqliteStore) -> None:
    put(store, "a", 1)

    with python(OPEN_ONCE, path) as child:
        _, complaint = child.communicate(timeout=20)

    assert child.returncode == 1
    assert complaint.startswith(f"InUse: the database {path} is held by another process: stop")


def test_a_store_that_was_only_opened_holds_its_file_too(path: Path, store: SqliteStore) -> None:
    with python(OPEN_ONCE, path) as child:
        _, complaint = child.communicate(timeout=20)

    assert "is held by another process" in complaint
    assert store.head() == BEGINNING


def test_a_second_store_in_one_process_does_not_free_the_file(
    path: Path, store: SqliteStore, clock: SimulatedClock
) -> None:
    """POSIX drops all locks of a process with the first descriptor of the file it closes."""
    with pytest.raises(Refused):
        SqliteStore(path, clock)

    with python(OPEN_ONCE, path) as child:
        _, complaint = child.communicate(timeout=20)
    assert "is held by another process" in complaint
    put(store, "a", 1)


def test_a_closed_store_lets_go_of_its_file(path: Path, store: SqliteStore) -> None:
    put(store, "a", 1)
    store.close()
    store.close()

    with python(OPEN_ONCE, path) as child:
        assert child.communicate(timeout=20) == ("", "")
    with pytest.raises(Unavailable, match="is closed"):
        store.get(["a"])
    with pytest.raises(Unavailable, match="is closed"):
        put(store, "a", 2)


def test_closing_wakes_whoever_waits(store: SqliteStore) -> None:
    later = threading.Timer(0.05, store.close)
    later.start()

    with pytest.raises(Unavailable, match="is closed"):
        store.changes(BEGINNING, 10, wait=timedelta(seconds=30))
    later.join()


def test_nobody_else_may_read_the_files(path: Path, store: SqliteStore, tmp_path: Path) -> None:
    put(store, "a", 1)
    store.backup_to(tmp_path / "copy.db")

    assert names(tmp_path) == {path.name, f"{path.name}-wal", "copy.db"}
    for entry in tmp_path.iterdir():
        assert stat.S_IMODE(entry.stat().st_mode) == 0o600, entry


def test_a_file_that_others_may_read_is_made_private(path: Path, clock: SimulatedClock) -> None:
    SqliteStore(path, clock).close()
    path.chmod(0o644)

    SqliteStore(path, clock).close()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_file_has_the_newest_schema_and_no_backup(path: Path, clock: SimulatedClock) -> None:
    SqliteStore(path, clock).close()

    assert names(path.parent) == {path.name}
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        writer = db.execute("SELECT value FROM about WHERE name = 'schema_written_by'").fetchone()
        assert writer == (__version__,)


def test_an_empty_file_is_as_good_as_a_new_one(path: Path, clock: SimulatedClock) -> None:
    path.touch()

    with closing(SqliteStore(path, clock)) as store:
        put(store, "a", 1)
    assert names(path.parent) == {path.name}


def test_an_upgrade_makes_a_backup_first(path: Path, clock: SimulatedClock) -> None:
    with closing(SqliteStore(path, clock)) as store:
        put(store, "a", 1)

    with closing(SqliteStore(path, clock, migrations=NEXT_SCHEMA)) as store:
        assert store.get(["a"]) == {"a": Record("a", 1, b"1")}
        put(store, "a", 2)

    backup = path.with_name("forewarn.db.before-upgrade-v2")
    with closing(SqliteStore(backup, clock)) as store:
        assert store.get(["a"]) == {"a": Record("a", 1, b"1")}
    with closing(SqliteStore(path, clock, migrations=NEXT_SCHEMA)):
        assert names(path.parent) == {path.name, f"{path.name}-wal", backup.name}


def test_a_second_upgrade_keeps_the_backup_of_the_first(path: Path, clock: SimulatedClock) -> None:
    """An operator who went back to the backup upgrades again some day."""
    SqliteStore(path, clock).close()
    earlier = path.with_name("forewarn.db.before-upgrade-v2")
    earlier.write_bytes(b"precious")

    SqliteStore(path, clock, migrations=NEXT_SCHEMA).close()

    assert earlier.read_bytes() == b"precious"
    assert names(path.parent) == {path.name, earlier.name, f"{earlier.name}.2"}


def test_an_upgrade_that_fails_changes_nothing(path: Path, clock: SimulatedClock) -> None:
    with closing(SqliteStore(path, clock)) as store:
        put(store, "a", 1)

    with pytest.raises(sqlite3.OperationalError):
        SqliteStore(path, clock, migrations=BROKEN_SCHEMA)

    assert names(path.parent) == {path.name}
    with closing(SqliteStore(path, clock)) as store:
        assert store.get(["a"]) == {"a": Record("a", 1, b"1")}
    # The table made by the first half of the script is gone as well.
    SqliteStore(path, clock, migrations=(*MIGRATIONS, "CREATE TABLE extra (x);")).close()


def test_a_newer_schema_is_refused_and_names_its_writer(path: Path, clock: SimulatedClock) -> None:
    SqliteStore(path, clock, migrations=NEXT_SCHEMA).close()
    before = path.read_bytes()

    with pytest.raises(Refused) as refused:
        SqliteStore(path, clock)

    assert f"has schema 2, written by forewarn {__version__}" in str(refused.value)
    assert "restore the backup" in str(refused.value)
    assert path.read_bytes() == before


def test_a_backup_made_while_others_commit_is_whole(
    store: SqliteStore, clock: SimulatedClock, tmp_path: Path
) -> None:
    stop = threading.Event()

    def commit_pairs() -> int:
        version = 0
        while not stop.is_set():
            value = str(version + 1).encode() * 1000
            writes = [Write("a", version, value), Write("b", version, value)]
            store.commit(CommitId(f"c{version + 1}"), writes, [value])
            version += 1
        return version

    copies = [tmp_path / f"copy-{number}.db" for number in range(5)]
    with ThreadPoolExecutor(1) as pool:
        committing = pool.submit(commit_pairs)
        for copy in copies:
            store.changes(store.head(), 1, wait=timedelta(seconds=5))
            store.backup_to(copy)
        stop.set()
        assert committing.result() > len(copies)

    for copy in copies:
        with closing(SqliteStore(copy, clock)) as other:
            pair = other.get(["a", "b"])
            assert pair["a"].version == pair["b"].version == len(other.changes(BEGINNING, 100_000))
            assert pair["a"].value == pair["b"].value


def test_a_backup_is_one_plain_file(store: SqliteStore, tmp_path: Path) -> None:
    """It can be read from where nothing can be written, such as a mounted archive."""
    put(store, "a", 1)
    copy = tmp_path / "copy.db"

    store.backup_to(copy)

    with closing(sqlite3.connect(f"file:{copy}?immutable=1", uri=True)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert db.execute("SELECT key, version FROM records").fetchall() == [("a", 1)]


def test_a_backup_never_replaces_a_file(store: SqliteStore, tmp_path: Path) -> None:
    taken = tmp_path / "copy.db"
    taken.write_bytes(b"precious")

    with pytest.raises(Refused, match="exists already"):
        store.backup_to(taken)

    assert taken.read_bytes() == b"precious"


def test_a_backup_that_cannot_be_written_says_so(store: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="No such file or directory"):
        store.backup_to(tmp_path / "missing" / "copy.db")

    put(store, "a", 1)


def test_the_database_of_another_program_is_refused_untouched(
    path: Path, clock: SimulatedClock
) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE bookmarks (url)")
    before = path.read_bytes()

    with pytest.raises(Refused, match="belongs to another program"):
        SqliteStore(path, clock)

    assert path.read_bytes() == before
    assert names(path.parent) == {path.name}


@pytest.mark.parametrize("content", [b"hello\n", b"not a database " * 1000])
def test_a_file_that_is_no_database_is_refused_untouched(
    content: bytes, path: Path, clock: SimulatedClock
) -> None:
    path.write_bytes(content)

    with pytest.raises(Refused, match="is not a database: move it away, or restore a backup"):
        SqliteStore(path, clock)

    assert path.read_bytes() == content


def test_a_damaged_file_is_refused(path: Path, clock: SimulatedClock) -> None:
    SqliteStore(path, clock).close()
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 3000)

    with pytest.raises(Refused, match="is damaged: move it away and restore a backup"):
        SqliteStore(path, clock)


@pytest.mark.parametrize("directory", ["missing", "/proc"])
def test_a_directory_that_cannot_be_written_is_named(
    directory: str, tmp_path: Path, clock: SimulatedClock
) -> None:
    """Not even root may write to /proc."""
    path = tmp_path / directory / "forewarn.db"

    with pytest.raises(Unavailable, match=re.escape(f"the database {path} cannot be written")):
        SqliteStore(path, clock)


def test_every_commit_is_synced(path: Path) -> None:
    """Keeps S16: FULL syncs the log at every commit; NORMAL would lose some to a power failure."""
    with closing(opened(path, MIGRATIONS)) as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_commit_on_a_failing_disk_is_repeated_to_a_known_end(path: Path) -> None:
    with python(COMMIT_ON_A_FAILING_DISK, path) as child:
        output, errors = child.communicate(timeout=20)

    assert (child.returncode, errors) == (0, "")
    assert "repeat the commit" in output


def test_a_full_disk_writes_nothing_and_says_what_to_do(path: Path) -> None:
    with closing(opened(path, MIGRATIONS)) as db:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages + 1}")

        with (
            pytest.raises(Unavailable, match="has no room left: free some space") as full,
            translated(path),
            transaction(db, path),
        ):
            db.execute("INSERT INTO records VALUES ('a', 1, zeroblob(100000))")

        assert not isinstance(full.value, OutcomeUnknown)
        assert not db.in_transaction
        assert db.execute("SELECT count(*) FROM records").fetchone() == (0,)


def test_a_wrong_statement_is_a_bug_and_leaves_as_one(path: Path) -> None:
    with (
        closing(opened(path, MIGRATIONS)) as db,
        pytest.raises(sqlite3.OperationalError),
        translated(path),
    ):
        db.execute("SELECT nothing FROM nowhere")
