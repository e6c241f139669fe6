"""The casebook: every case in a file of its own, which is whole and on the disk before anybody relies on it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from forewarn.agent.cases import Case
from forewarn.agent.names import file_name
from forewarn.agent.records import dump_case, load_case
from forewarn.errors import Malformed, Unavailable

_log: Final = logging.getLogger("forewarn.agent")


class Casebook(Protocol):
    """Where cases are kept."""

    def cases(self) -> Iterator[Case]:
        """Every case that was written down. Raises: Unavailable."""
        ...

    def write(self, case: Case) -> None:
        """Write a case down, in place of what was written of it before. Raises: Unavailable."""
        ...

    def close(self, event_id: str) -> None:
        """Remove a case. Raises: Unavailable."""
        ...


class DirectoryCasebook:
    """A directory of JSON files."""

    def __init__(self, directory: Path) -> None:
        """Raises: Unavailable."""
        self._directory = directory
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _away(directory, error) from error

    def cases(self) -> Iterator[Case]:
        try:
            for file in sorted(self._directory.iterdir()):
                if file.suffix == ".json":
                    yield from self._case(file)
        except OSError as error:
            raise _away(self._directory, error) from error

    def _case(self, file: Path) -> Iterator[Case]:
        try:
            yield load_case(file.read_bytes())
        except Malformed as error:
            # Better an event that is taken up anew than an agent that does not start.
            aside = file.with_suffix(".unreadable")
            _log.error("%s cannot be read, and is put aside as %s: %s", file, aside, error)
            file.replace(aside)

    def write(self, case: Case) -> None:
        file = self._file(case.event.id)
        new = file.with_suffix(".new")
        try:
            with new.open("wb") as written:
                written.write(dump_case(case))
                written.flush()
                os.fsync(written.fileno())
            new.replace(file)
            self._sync()
        except OSError as error:
            raise _away(self._directory, error) from error

    def close(self, event_id: str) -> None:
        try:
            self._file(event_id).unlink(missing_ok=True)
            self._sync()
        except OSError as error:
            raise _away(self._directory, error) from error

    def _file(self, event_id: str) -> Path:
        return self._directory / f"{file_name(event_id)}.json"

    def _sync(self) -> None:
        directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _away(directory: Path, error: OSError) -> Unavailable:
    return Unavailable(
        f"cannot keep cases in {directory}: {error.strerror}: make room, or have `state` name another directory"
    )


class MemoryCasebook:
    """Cases that are forgotten with the process, as in a dry run."""

    def __init__(self) -> None:
        self._cases: dict[str, Case] = {}

    def cases(self) -> Iterator[Case]:
        yield from tuple(self._cases.values())

    def write(self, case: Case) -> None:
        self._cases[case.event.id] = case

    def close(self, event_id: str) -> None:
        self._cases.pop(event_id, None)
