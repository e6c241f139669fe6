"""One SQLite file, held by one process at a time: opening, upgrading, transactions, copying.

Rule 1: this is the only file that imports sqlite3, and `translated` is its door: every trouble
of SQLite or of the disk leaves as one of ours, and whatever else leaves is a bug of ours.
Rule 2: nobody opens a database file but SQLite. Closing any other descriptor of it would drop
the locks of the whole process (POSIX), silently.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from forewarn import __version__
from forewarn.errors import Damaged, InUse, OutcomeUnknown, Refused, Unavailable
from forewarn.stores.sqlite_schema import APPLICATION_ID

Connection = sqlite3.Connection

# Nobody shares the file, so nothing is worth waiting for but a predecessor that is just ending.
_BUSY_SECONDS: Final = 0.5
_PRIVATE: Final = 0o600
# Of 4 KiB each: a step of a copy, which takes about as long as a commit.
_PAGES_AT_ONCE: Final = 128
# What is written again and again is found in memory, and goes from the log to its place in larger
# helpings. The log is synced with every commit either way.
CACHE_KB: Final = 16_384
LOG_PAGES: Final = 4_000

# What went wrong, by SQLite's primary result code, and what to do next. A code that is not
# here is a bug of ours, and crashes.
_TROUBLES: Final[Mapping[int, str]] = {
    sqlite3.SQLITE_BUSY: "is held by another process: stop that one first (`fuser FILE` names it),"
    " or use another data directory",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: see that its directory exists and that this user"
    " may write there",
    sqlite3.SQLITE_CORRUPT: "is damaged: move it away and restore a backup",
    sqlite3.SQLITE_FULL: "has no room left: free some space on its disk",
    sqlite3.SQLITE_IOERR: "could not be read or written: see that this user may write it, and the"
    " kernel's log for disk errors",
    sqlite3.SQLITE_NOLFS: "is too large for its file system: move it to another disk",
    sqlite3.SQLITE_NOTADB: "is not a database: move it away, or restore a backup",
    sqlite3.SQLITE_PERM: "may not be written: give this user the file and its directory",
    sqlite3.SQLITE_READONLY: "is read-only: let this user write the file and its directory",
}
# Met while opening, these do not pass by themselves: there is no use in trying again.
_FINAL_AT_OPENING: Final[Mapping[int, type[Refused]]] = {
    sqlite3.SQLITE_BUSY: InUse,
    sqlite3.SQLITE_CORRUPT: Refused,
    sqlite3.SQLITE_NOTADB: Refused,
}
# Met later, these do not pass by themselves either.
_LASTING: Final[Mapping[int, type[Unavailable]]] = {
    sqlite3.SQLITE_CORRUPT: Damaged,
    sqlite3.SQLITE_NOTADB: Damaged,
}
_NONE_FINAL: Final[Mapping[int, type[Refused]]] = {}
# After these the last frame of the transaction was certainly not written. After any other, such
# as a failed sync, a crash might still bring the transaction back.
_CERTAINLY_UNDONE: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL})


@contextmanager
def translated(path: Path, final: Mapping[int, type[Refused]] = _NONE_FINAL) -> Iterator[None]:
    """The one door: troubles of SQLite and of the disk leave as ours, `final` ones as refusals."""
    try:
        yield
    except sqlite3.Error as error:
        code = _primary_code(error)
        if code not in _TROUBLES:
            raise
        family = final.get(code, _LASTING.get(code, Unavailable))
        raise family(f"the database {path} {_TROUBLES[code]} (SQLite: {error})") from error
    except OSError as error:
        raise Unavailable(f"the database {path} cannot be written: {error.strerror}") from error


def opened(path: Path, migrations: Sequence[str]) -> Connection:
    """A connection that holds the file, created or upgraded as needed; it knows no thread.

    Raises: Refused if it is held by another process, damaged, foreign or newer; Unavailable.
    """
    with translated(path, _FINAL_AT_OPENING):
        _assert_writable_disk(path)
        _assert_not_cut_off(path)
        # Made beforehand for its mode, and never opened by us if it is there: see rule 2.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
        db = sqlite3.connect(
            path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _take(db)
            version = _schema_version(db, path, newest=len(migrations))
            path.chmod(_PRIVATE)
            _configure(db, path)
            if version < len(migrations):
                _upgrade(db, path, version, migrations)
        except BaseException:
            db.close()
            raise
        return db


@contextmanager
def transaction(db: Connection, path: Path) -> Iterator[None]:
    """All that is written inside, durable at the end; or nothing, if anything is raised inside.

    Raises: OutcomeUnknown.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        _undo(db)
        raise
    try:
        db.execute("COMMIT")
    except sqlite3.Error as error:
        # What matters is the first failure; this one could only repeat it.
        with suppress(sqlite3.Error):
            _undo(db)
        code = _primary_code(error)
        if code in _CERTAINLY_UNDONE or code in _LASTING:
            raise
        raise OutcomeUnknown(
            f"the database {path} {_TROUBLES.get(code, 'failed')}; whether the last commit took"
            f" effect is not known: repeat the commit (SQLite: {error})"
        ) from error


def copy(target: Path, fill: Callable[[Connection], None]) -> None:
    """A private, complete and synced copy under a name that was free, or nothing."""
    with translated(target):
        _assert_free(target)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        os.close(handle)
        partial = Path(name)
        try:
            with closing(sqlite3.connect(partial, isolation_level=None)) as other:
                # It is synced below, when nobody waits for the source any more.
                other.execute("PRAGMA synchronous = OFF")
                fill(other)
                # One plain file, which can also be read where nothing can be written.
                other.execute("PRAGMA journal_mode = DELETE")
            _sync(partial)
            _assert_free(target)
            partial.rename(target)
            _sync(target.parent)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def _assert_writable_disk(path: Path) -> None:
    """SQLite would call it an I/O error, or find out later."""
    if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
        raise Unavailable(
            f"the database {path} is on a read-only disk: see the kernel's log for disk errors, and"
            " mount it for writing"
        )


def _assert_not_cut_off(path: Path) -> None:
    """SQLite would take an empty file for a new database, and throw its log away."""
    log = Path(f"{path}-wal")
    is_empty = not path.exists() or path.stat().st_size == 0
    if is_empty and log.exists() and log.stat().st_size:
        raise Refused(
            f"the database {path} is empty or gone, but its log {log} is not: put the file back if"
            " you can, else move the log away and restore a backup"
        )


def pour(db: Connection, other: Connection, give_way: Callable[[], None] = lambda: None) -> None:
    """Fill another database with what this one holds at the end.

    Between steps `give_way` is called, and may let others write: what is written through this
    same connection SQLite brings to the other one as well (sqlite.org/backup.html).
    """
    db.backup(other, pages=_PAGES_AT_ONCE, progress=lambda *_: give_way())


def _primary_code(error: sqlite3.Error) -> int:
    # Errors that Python's module raises by itself have no code; they are bugs of ours.
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
    return code & 0xFF


def _take(db: Connection) -> None:
    # In this mode the lock of the first transaction stays until the connection is closed.
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute("BEGIN EXCLUSIVE")
    db.execute("COMMIT")


def _configure(db: Connection, path: Path) -> None:
    (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise Refused(f"the database {path} cannot have a write-ahead log: use a local disk")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(f"PRAGMA cache_size = -{CACHE_KB}")
    db.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")


def _schema_version(db: Connection, path: Path, *, newest: int) -> int:
    """The schema of the file, 0 for an empty one. Changes nothing: the file may not be ours."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if (application, version, tables) == (0, 0, 0):
        return 0
    if application != APPLICATION_ID:
        raise Refused(f"the database {path} belongs to another program: use another data directory")
    if version > newest:
        query = "SELECT value FROM about WHERE name = 'schema_written_by'"
        (writer,) = db.execute(query).fetchone()
        raise Refused(
            f"the database {path} has schema {version}, written by forewarn {writer}; forewarn"
            f" {__version__} knows schemas up to {newest}: run forewarn {writer} or newer, or"
            " restore the backup made before the upgrade"
        )
    assert isinstance(version, int)
    return version


def _upgrade(db: Connection, path: Path, version: int, migrations: Sequence[str]) -> None:
    backup = _free_name(path, len(migrations)) if version else None
    if backup is not None:
        copy(backup, lambda other: pour(db, other))
    try:
        # A script cannot join a transaction that is open already, so it begins its own.
        db.executescript("BEGIN IMMEDIATE;" + "".join(migrations[version:]))
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(migrations)}")
        writer = ("schema_written_by", __version__)
        db.execute("INSERT OR REPLACE INTO about (name, value) VALUES (?, ?)", writer)
    except BaseException:
        _undo(db)
        # Nothing was upgraded; a service that is restarted again and again must not fill the disk.
        if backup is not None:
            backup.unlink()
        raise
    db.execute("COMMIT")


def _free_name(path: Path, version: int) -> Path:
    """Where to keep the file as it was before its upgrade to a schema."""
    name = f"{path.name}.before-upgrade-v{version}"
    names = (name if number == 1 else f"{name}.{number}" for number in count(1))
    return next(free for free in map(path.with_name, names) if not free.exists())


def _assert_free(target: Path) -> None:
    if target.exists():
        raise Refused(f"{target} exists already: choose another name, or move it away")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _undo(db: Connection) -> None:
    # After some errors SQLite has rolled back by itself.
    if db.in_transaction:
        db.execute("ROLLBACK")
