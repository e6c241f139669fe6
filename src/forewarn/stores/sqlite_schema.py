"""The tables of SqliteStore, as the scripts that lead from each schema to the next.

Rule 1: a script that was released is never changed; a new one is added below it.
Rule 2: the table `about` stays in every schema, so that an older forewarn which meets a newer
file can say who wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# "fore", in the header of the file: it tells our databases from everybody else's.
APPLICATION_ID: Final = 0x666F7265

_FIRST: Final = """
CREATE TABLE about (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- A deleted record stays, with its version and no value.
CREATE TABLE records (
    key     TEXT    NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL CHECK (version > 0),
    value   BLOB
);

-- The newest commit is always kept, so a position is never given out twice.
CREATE TABLE commits (
    position  INTEGER NOT NULL PRIMARY KEY,
    commit_id TEXT    NOT NULL UNIQUE
);

CREATE TABLE touches (
    position INTEGER NOT NULL REFERENCES commits,
    line     INTEGER NOT NULL,
    key      TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    PRIMARY KEY (position, line)
) WITHOUT ROWID;

-- No WITHOUT ROWID here: entries are too large to live in the tree of their index.
CREATE TABLE journal (
    position INTEGER NOT NULL REFERENCES commits,
    line     INTEGER NOT NULL,
    entry    BLOB    NOT NULL,
    PRIMARY KEY (position, line)
);

-- Microseconds since 1970, UTC.
CREATE TABLE leases (
    name    TEXT    NOT NULL PRIMARY KEY,
    owner   TEXT    NOT NULL,
    fence   INTEGER NOT NULL,
    expires INTEGER NOT NULL
) WITHOUT ROWID;
"""

# MIGRATIONS[n] leads from schema n to schema n + 1; schema 0 is an empty file.
MIGRATIONS: Final[Sequence[str]] = (_FIRST,)
