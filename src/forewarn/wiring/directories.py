"""The data directory: the database, the operators' token, and where the service can be found."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from forewarn.errors import Refused

OWNER_ONLY = 0o600


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
        """Make the directory, for its owner alone. Raises: Refused."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise Refused(
                f"the data directory {self.path} cannot be made ({error.strerror}): "
                "give --data a directory that this user may write"
            ) from error

    def token(self) -> str:
        """The operators' token; made at the first start. Raises: Refused."""
        file = self.path / "token"
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        except FileExistsError:
            return _kept_token(file)
        except OSError as error:
            raise Refused(
                f"{file} cannot be made ({error.strerror}): "
                "give --data a directory that this user may write"
            ) from error
        token = secrets.token_urlsafe(32)
        with os.fdopen(descriptor, "w", encoding="ascii") as out:
            out.write(token + "\n")
        return token

    def publish(self, control: str, metadata: list[str]) -> None:
        """Write down where the service listens, for the command line on this machine."""
        fields = {"control": control, "metadata": metadata, "pid": os.getpid()}
        draft = self._endpoint.with_suffix(".new")
        draft.write_text(json.dumps(fields) + "\n", encoding="utf-8")
        draft.replace(self._endpoint)

    def unpublish(self) -> None:
        """The service no longer listens."""
        self._endpoint.unlink(missing_ok=True)


def _kept_token(file: Path) -> str:
    try:
        token = file.read_text(encoding="ascii").strip()
        file.chmod(OWNER_ONLY)
    except (OSError, ValueError) as error:
        raise Refused(
            f"{file} cannot be used ({error}): run this as its owner, or delete it"
        ) from error
    if not token:
        raise Refused(f"{file} is empty: delete it, and a new one is made")
    return token
