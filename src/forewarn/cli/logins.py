"""What `forewarn login` keeps for this user: where, as whom, and the token that was got.

It lies in the user's own configuration, each file in the form of a service's operator.json or beside
it, for nobody else to read. A token is kept for its own service and principal alone, and only until
shortly before it is over.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from forewarn.cli.transport import Credentials, Service, Session
from forewarn.clocks import SystemClock
from forewarn.errors import Malformed, Refused
from forewarn.trust import vault

_FOR_OWNER_ALONE: Final = 0o700
# A token that is over on the way is asked for twice.
_SPARE: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class _Files:
    directory: Path

    @property
    def login(self) -> Path:
        return self.directory / "login.json"

    @property
    def authority(self) -> Path:
        """A copy: the one that was named may be moved."""
        return self.directory / "login-ca.pem"

    @property
    def token(self) -> Path:
        return self.directory / "login-token.json"


def load(config_home: Path | None) -> Service | None:
    """The service that this user is logged in to, if to any. Raises: Malformed."""
    if config_home is None:
        return None
    files = _files(config_home)
    try:
        content = json.loads(files.login.read_bytes())
        return Service(
            url=str(content["endpoint"]),
            credentials=Credentials(str(content["client_id"]), str(content["client_secret"])),
            ca=files.authority if files.authority.exists() else None,
            remedy="see that it runs there, or `forewarn login` again if it has moved",
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Malformed(
            f"{files.login} cannot be used: `forewarn logout`, then log in again"
        ) from error


def keep(config_home: Path | None, service: Service) -> Path:
    """Keep where and as whom; the file that says so. Raises: Refused."""
    files = _files(_home(config_home))
    who = service.credentials
    content = {
        "endpoint": service.url,
        "client_id": who.client_id,
        "client_secret": who.client_secret,
    }
    try:
        authority = None if service.ca is None else service.ca.read_bytes()
        files.directory.mkdir(mode=_FOR_OWNER_ALONE, parents=True, exist_ok=True)
        _forget(files)
        if authority is not None:
            vault.write(files.authority, authority, vault.OWNER_ONLY)
        vault.write(files.login, f"{json.dumps(content)}\n".encode(), vault.OWNER_ONLY)
    except OSError as error:
        raise Refused(
            f"the login cannot be kept in {files.directory} ({error.strerror}): set "
            "XDG_CONFIG_HOME to a directory of your own"
        ) from error
    return files.login


def forget(config_home: Path | None) -> bool:
    """Keep nothing any longer; whether anything was. Raises: Refused."""
    files = _files(_home(config_home))
    try:
        return _forget(files)
    except OSError as error:
        raise Refused(
            f"{files.login} cannot be removed ({error.strerror}): remove it yourself"
        ) from error


def session(config_home: Path | None, service: Service) -> Session:
    """A session with the service: for the one that this user is logged in to, with the token kept."""
    if service.token:
        return Session(service.token)
    # On the same machine, logging in is no detour.
    kept = load(config_home) if service.data is None else None
    if config_home is None or kept is None or _key(kept) != _key(service):
        return Session()
    files = _files(config_home)
    found = _kept_token(files, service) or Session()

    def keep_token(session: Session) -> None:
        if session.expires_at is None:
            return
        content = {**_key(service), "expires_at": session.expires_at.isoformat()}
        line = f"{json.dumps({**content, 'token': session.token})}\n"
        # It saves the next login some time, nothing else.
        with suppress(OSError):
            vault.write(files.token, line.encode(), vault.OWNER_ONLY)

    found.keep = keep_token
    return found


def _kept_token(files: _Files, service: Service) -> Session | None:
    try:
        content = json.loads(files.token.read_bytes())
        expires_at = datetime.fromisoformat(content["expires_at"])
        is_for_this = {name: content[name] for name in _key(service)} == _key(service)
        is_good = expires_at - _SPARE > SystemClock().now()
        return Session(str(content["token"]), expires_at) if is_for_this and is_good else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _key(service: Service) -> dict[str, str]:
    return {"endpoint": service.url, "client_id": service.credentials.client_id}


def _forget(files: _Files) -> bool:
    was_there = files.login.exists()
    for file in (files.login, files.authority, files.token):
        file.unlink(missing_ok=True)
    return was_there


def _files(config_home: Path) -> _Files:
    return _Files(config_home / "forewarn")


def _home(config_home: Path | None) -> Path:
    if config_home is None:
        raise Refused("there is no place to keep a login: set HOME or XDG_CONFIG_HOME")
    return config_home
