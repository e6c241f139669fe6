"""The vault: keys and certificates as files in the data directory, made and renewed when needed.

A certificate and its key lie in one file, so that they are replaced together. What the server's
is good for is written before it, in a line that TLS passes over: reading that line takes no library.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from forewarn.errors import Refused

OWNER_ONLY: Final = 0o600
FOR_ALL: Final = 0o644
# Renewed when less than this is left.
RENEWED_BEFORE: Final = timedelta(days=30)

_KEY_BEGINS: Final = b"-----BEGIN PRIVATE KEY-----"
_MARK: Final = "forewarn "
# Where systems keep what they trust; the first that is there.
_SYSTEM_BUNDLES: Final = (
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
    Path("/etc/ssl/ca-bundle.pem"),
    Path("/etc/ssl/cert.pem"),
)


@dataclass(frozen=True, slots=True)
class Vault:
    """The files of one data directory. Every method raises OSError where it cannot write."""

    path: Path

    @property
    def authority(self) -> Path:
        """The certificate that clients are to trust."""
        return self.path / "ca.pem"

    @property
    def bundle(self) -> Path:
        """The same, and all that the system trusts, for clients that know one file only."""
        return self.path / "ca-bundle.pem"

    @property
    def server(self) -> Path:
        """The service's certificate and its key."""
        return self.path / "server.pem"

    def keep_server(self, names: Sequence[str], now: datetime) -> bool:
        """See that there is a certificate for these names; whether one was made. Raises: Refused."""
        made = not self._is_good(names, now)
        if made:
            self._renew(names, now)
        # A convenience: no service stays away for the want of it.
        with suppress(OSError):
            self._keep_bundle()
        return made

    def token_key(self) -> bytes:
        """The key that tokens are signed with; made once. Raises: Refused."""
        file = self.path / "token.key"
        if not file.exists():
            from forewarn.trust import keys  # noqa: PLC0415 - see the room's law

            write(file, keys.make(), OWNER_ONLY)
        content = _kept(file)
        if not content.startswith(_KEY_BEGINS):
            raise Refused(f"{file} is no key: delete it, and a new one is made; all log in again")
        return content

    def _is_good(self, names: Sequence[str], now: datetime) -> bool:
        if not self.server.exists() or not self.authority.exists():
            return False
        line = _kept(self.server).partition(b"\n")[0].decode("utf-8", "replace")
        try:
            said = json.loads(line.removeprefix(_MARK))
            ends_at = datetime.fromisoformat(said["ends_at"])
            return set(names) <= set(said["names"]) and now < ends_at - RENEWED_BEFORE
        except (ValueError, KeyError, TypeError):
            return False

    def _renew(self, names: Sequence[str], now: datetime) -> None:
        from forewarn.trust import certificates  # noqa: PLC0415 - see the room's law

        file = self.path / "ca.key"
        try:
            authority = certificates.load(_kept(file)) if file.exists() else None
            if authority is None or authority.ends_at - now < RENEWED_BEFORE:
                authority = certificates.make_authority(now, names[-1])
                write(file, authority.key + authority.certificate, OWNER_ONLY)
            issued = certificates.issue(authority, names, now)
        except ValueError as error:
            raise Refused(
                f"{file} cannot be used ({error}): delete it, and a new one is made; whoever "
                f"trusted the old {self.authority.name} must be given the new one"
            ) from error
        write(self.authority, authority.certificate, FOR_ALL)
        said = {"names": list(names), "ends_at": issued.ends_at.isoformat()}
        line = f"{_MARK}{json.dumps(said)}\n".encode()
        write(self.server, line + issued.certificate + issued.key, OWNER_ONLY)

    def _keep_bundle(self) -> None:
        keep_bundle(self.bundle, self.authority)


def keep_bundle(bundle: Path, authority: Path | None) -> None:
    """See that a file holds what the system trusts, and this certificate. Raises: OSError."""
    usual = ssl.get_default_verify_paths().cafile
    places = (*((Path(usual),) if usual else ()), *_SYSTEM_BUNDLES)
    system = next((place.read_bytes() for place in places if place.is_file()), b"")
    content = system + (b"" if authority is None else authority.read_bytes())
    if not bundle.exists() or bundle.read_bytes() != content:
        write(bundle, content, FOR_ALL)


def write(file: Path, content: bytes, mode: int) -> None:
    """Put all of it on the disk under that name, or nothing. Raises: OSError."""
    draft = file.with_name(f"{file.name}.new")
    draft.unlink(missing_ok=True)
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as out:
            # Whatever the umask took away from a file that is for all.
            os.fchmod(out.fileno(), mode)
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(file)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _kept(file: Path) -> bytes:
    """The content of a file that is its owner's alone. Raises: Refused."""
    try:
        content = file.read_bytes()
        # A disk may have become read-only since.
        if file.stat().st_mode & 0o777 != OWNER_ONLY:
            file.chmod(OWNER_ONLY)
    except OSError as error:
        raise Refused(
            f"{file} cannot be used ({error}): run this as its owner, or delete it"
        ) from error
    if not content:
        raise Refused(f"{file} is empty: delete it, and a new one is made")
    return content
