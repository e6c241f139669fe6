"""The data directory: the database, the operators' token, and where the service can be found."""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from forewarn.errors import ForewarnError, Refused, Unavailable

OWNER_ONLY = 0o600

# What passes once somebody has seen to the disk, and what to do about it. Anything else is for
# somebody to change.
_DISK_TROUBLES: Final[Mapping[int, str]] = {
    errno.ENOSPC: "free some space on its disk",
    errno.EDQUOT: "free some space, or raise this user's quota",
    errno.EFBIG: "raise this process's limit on the size of files",
    errno.EROFS: "its disk is read-only: see the kernel's log for disk errors, and mount it again",
    errno.EIO: "see the kernel's log for disk errors",
}


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """A service's own directory. Its names are known to the command line too."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "forewarn.db"

    @property
    def _endpoint(self) -> Path:
        return self.path / "endpoint.json"

    def prepare(self) -> None:
        """Make the directory, for its owner alone. Raises: Refused, Unavailable."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise disk_trouble(f"the data directory {self.path} cannot be made", error) from error

    def token(self) -> str:
        """The operators' token; made at the first start. Raises: Refused, Unavailable."""
        file = self.path / "token"
        try:
            if not file.exists():
                self._write(file, secrets.token_urlsafe(32))
        except OSError as error:
            raise disk_trouble(f"{file} cannot be made", error) from error
        return _kept_token(file)

    def publish(self, control: str, metadata: list[str]) -> None:
        """Write down where the service listens, for the command line on this machine.

        Raises: Refused, Unavailable.
        """
        fields = {"control": control, "metadata": metadata, "pid": os.getpid()}
        try:
            # Where a service listened that died is worse than nothing.
            self._endpoint.unlink(missing_ok=True)
            self._write(self._endpoint, json.dumps(fields))
        except OSError as error:
            text = (
                f"{self._endpoint} cannot be written, and commands here need --endpoint {control}"
            )
            raise disk_trouble(text, error) from error

    def unpublish(self) -> None:
        """The service no longer listens."""
        # A disk that can no longer be written must not keep a service from its end.
        with suppress(OSError):
            self._endpoint.unlink(missing_ok=True)

    def _write(self, file: Path, line: str) -> None:
        """All of it under that name, or nothing."""
        draft = file.with_suffix(".new")
        draft.unlink(missing_ok=True)
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                out.write(line + "\n")
            draft.replace(file)
        except OSError:
            draft.unlink(missing_ok=True)
            raise


def disk_trouble(what: str, error: OSError) -> ForewarnError:
    """What could not be done with the data directory, by whether it passes, and what to do."""
    remedy = _DISK_TROUBLES.get(error.errno or 0)
    if remedy is not None:
        return Unavailable(f"{what} ({error.strerror}): {remedy}")
    return Refused(f"{what} ({error.strerror}): give --data a directory that this user may write")


def _kept_token(file: Path) -> str:
    try:
        token = file.read_text(encoding="ascii").strip()
        # A disk may have become read-only since.
        if file.stat().st_mode & 0o777 != OWNER_ONLY:
            file.chmod(OWNER_ONLY)
    except (OSError, ValueError) as error:
        raise Refused(
            f"{file} cannot be used ({error}): run this as its owner, or delete it"
        ) from error
    if not token:
        raise Refused(f"{file} is empty: delete it, and a new one is made")
    return token
