"""The journal in a file: one JSON object to a line, complete and on the disk, or not there at all."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from forewarn.cli.answers import Entry
from forewarn.cli.client import Client
from forewarn.cli.tables import json_line
from forewarn.errors import ForewarnError, Malformed, Refused, Unavailable


@dataclass(frozen=True, slots=True)
class Export:
    """How much was written, and the instant before which nothing is missing from the file."""

    entries: int
    until: datetime | None


def export(client: Client, file: Path, *, before: datetime | None = None) -> Export:
    """Write the journal, or what comes before the first entry of an instant or later.

    Raises: Malformed, Refused, Unavailable, and what the client raises.
    """
    if file.exists():
        raise Refused(f"{file} exists already: name another file")
    part = file.with_name(f".{file.name}.part")
    count, until, digest = 0, None, hashlib.sha256()
    try:
        with part.open("wb") as stream:
            for entry in _entries(client):
                until = datetime.fromisoformat(entry["at"])
                if before is not None and until >= before:
                    until = before
                    break
                line = f"{json_line(entry)}\n".encode()
                digest.update(line)
                stream.write(line)
                count += 1
            stream.flush()
            os.fsync(stream.fileno())
        _verify(part, digest.digest())
        # Unlike a rename, a link never replaces a file that somebody made meanwhile.
        os.link(part, file)
        _sync_folder(file.parent)
    except FileExistsError:
        raise Refused(f"{file} exists already: name another file") from None
    except OSError as error:
        raise _refusal(file, error) from error
    finally:
        part.unlink(missing_ok=True)
    return Export(count, until)


def _refusal(file: Path, error: OSError) -> ForewarnError:
    """Why a file could not be written, by what to do about it."""
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return Malformed(f"there is no directory {file.parent}: make it, or name another file")
        case errno.ENAMETOOLONG:
            return Malformed(f"{file}: this name is too long: give a shorter one")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return Refused(f"you may not write to {file.parent}: name another directory")
        case _:
            return Unavailable(
                f"{file} could not be written ({error.strerror}): free some space, or name another"
            )


def _entries(client: Client) -> Iterator[Entry]:
    for page in client.journal_pages(""):
        yield from page["entries"]


def _verify(file: Path, digest: bytes) -> None:
    with file.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").digest() != digest:
            raise OSError(errno.EIO, "it does not hold what was written")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
