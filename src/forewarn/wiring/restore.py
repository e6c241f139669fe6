"""Putting a backup in the place of a data directory's database."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from forewarn.core.journal import Actor
from forewarn.core.periods import Periods
from forewarn.core.restoring import Overdue
from forewarn.errors import InUse, Refused, Unknown
from forewarn.ports.clock import Clock
from forewarn.ports.ids import Ids
from forewarn.service.books import Books
from forewarn.service.restorer import Restored, Restorer
from forewarn.stores.sqlite import SqliteStore
from forewarn.wiring.directories import OWNER_ONLY, DataDirectory, disk_trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreSettings:
    """What to restore, where to, and how."""

    backup: Path
    data: DataDirectory
    overdue: Overdue
    # Whether a database that is there already is set aside.
    replace: bool
    rules: Periods


def restore(settings: RestoreSettings, clock: Clock, ids: Ids, actor: Actor) -> Restored:
    """Make the data directory hold this backup, fit to be served. Nothing changes if it fails.

    Raises: Unknown, Refused, Unavailable.
    """
    database = settings.data.database
    _check(settings, clock)
    settings.data.prepare()
    draft = database.with_name(database.name + ".restoring")
    for leftover in (draft, Path(f"{draft}-wal")):
        leftover.unlink(missing_ok=True)
    try:
        shutil.copyfile(settings.backup, draft)
        draft.chmod(OWNER_ONLY)
        # Restored by root, it is still the service's own user who must open it.
        owner = settings.data.path.stat()
        os.chown(draft, owner.st_uid, owner.st_gid)
        store = SqliteStore(draft, clock)
        try:
            restorer = Restorer(clock, ids, store, Books(store, ids), settings.rules)
            restored = restorer.restore(settings.overdue, actor)
        finally:
            store.close()
        _set_aside(database, f".before-restore-{clock.now():%Y%m%dT%H%M%SZ}")
        draft.rename(database)
        _sync(settings.data.path)
    except OSError as error:
        raise disk_trouble(f"the backup cannot be put into {settings.data.path}", error) from error
    finally:
        draft.unlink(missing_ok=True)
    return restored


def _check(settings: RestoreSettings, clock: Clock) -> None:
    backup, database = settings.backup, settings.data.database
    if not backup.is_file():
        raise Unknown(f"there is no file {backup}")
    wal = Path(f"{backup}-wal")
    if wal.exists() and wal.stat().st_size:
        raise Refused(
            f"{backup} is a database in use, not a backup: make one with `forewarn backup FILE`"
        )
    if not database.exists():
        return
    _refuse_in_use(database, clock)
    if not settings.replace:
        raise Refused(
            f"{database} exists already: give --replace to set it aside and put the backup there"
        )


def _set_aside(database: Path, suffix: str) -> None:
    """Keep what is there under a free name, without a moment at which there is no database.

    The log of an old database must go: SQLite would replay it over whatever is in its place.
    """
    number = 1
    while (aside := Path(f"{database}{suffix}{'' if number == 1 else f'.{number}'}")).exists():
        number += 1
    if database.exists():
        os.link(database, aside)
    for part in ("-wal", "-shm", "-journal"):
        log = Path(f"{database}{part}")
        if log.exists():
            log.rename(f"{aside}{part}")


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refuse_in_use(database: Path, clock: Clock) -> None:
    """Opening it tells whether a service is using it; a damaged one is what backups are for."""
    try:
        SqliteStore(database, clock).close()
    except InUse:
        raise
    except Refused:
        return
