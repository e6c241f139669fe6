"""The data directory: the database, keys, the first operator, and where the service can be found."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec

from forewarn.errors import ForewarnError, Refused, Unavailable
from forewarn.trust import vault
from forewarn.trust.vault import OWNER_ONLY as OWNER_ONLY

# What passes once somebody has seen to the disk, and what to do about it. Anything else is for
# somebody to change.
_DISK_TROUBLES: Final[Mapping[int, str]] = {
    errno.ENOSPC: "free some space on its disk",
    errno.EDQUOT: "free some space, or raise this user's quota",
    errno.EFBIG: "raise this process's limit on the size of files",
    errno.EROFS: "its disk is read-only: see the kernel's log for disk errors, and mount it again",
    errno.EIO: "see the kernel's log for disk errors",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a principal logs in with, and where."""

    client_id: str
    client_secret: str = field(repr=False)
    tenant_id: str
    subscription_id: str
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """A service's own directory. Its names are known to the command line too."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "forewarn.db"

    @property
    def operator(self) -> Path:
        return self.path / "operator.json"

    @property
    def _endpoint(self) -> Path:
        return self.path / "endpoint.json"

    def prepare(self) -> None:
        """Make the directory, for its owner alone. Raises: Refused, Unavailable."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise disk_trouble(f"the data directory {self.path} cannot be made", error) from error

    def credentials(self) -> Credentials | None:
        """What the first operator logs in with, if it is kept here. Raises: Refused."""
        try:
            content = self.operator.read_bytes()
            # A disk may have become read-only since.
            if self.operator.stat().st_mode & 0o777 != OWNER_ONLY:
                self.operator.chmod(OWNER_ONLY)
            return msgspec.json.decode(content, type=Credentials)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise Refused(
                f"{self.operator} cannot be used ({error}): run this as its owner, or move it away"
            ) from error

    def keep_credentials(self, credentials: Credentials) -> None:
        """Write down what the first operator logs in with. Raises: Refused, Unavailable."""
        try:
            self._write(self.operator, msgspec.json.encode(credentials).decode())
        except OSError as error:
            raise disk_trouble(f"{self.operator} cannot be made", error) from error

    def publish(self, control: str, metadata: list[str], trusted: Mapping[str, str]) -> None:
        """Write down where the service listens, for the command line on this machine.

        `trusted` says by which file its certificate is known.

        Raises: Refused, Unavailable.
        """
        fields = {"control": control, "metadata": metadata, "pid": os.getpid(), **trusted}
        try:
            # Where a service listened that died is worse than nothing.
            self._endpoint.unlink(missing_ok=True)
            self._write(self._endpoint, json.dumps(fields))
            credentials = self.credentials()
            if credentials is not None and credentials.endpoint != control:
                self.keep_credentials(replace(credentials, endpoint=control))
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
        vault.write(file, f"{line}\n".encode(), OWNER_ONLY)


def disk_trouble(what: str, error: OSError) -> ForewarnError:
    """What could not be done with the data directory, by whether it passes, and what to do."""
    remedy = _DISK_TROUBLES.get(error.errno or 0)
    if remedy is not None:
        return Unavailable(f"{what} ({error.strerror}): {remedy}")
    return Refused(f"{what} ({error.strerror}): give --data a directory that this user may write")
