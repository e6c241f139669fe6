"""The environment variables that forewarn obeys."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the environment says; None where it says nothing."""

    # FOREWARN_DATA: the data directory of a service on this machine.
    data_directory: Path | None = None
    # FOREWARN_ENDPOINT: the address of a service elsewhere.
    endpoint: str | None = None
    # FOREWARN_CA: the file by which its certificate is known.
    ca: Path | None = None
    # FOREWARN_CLIENT_ID and FOREWARN_CLIENT_SECRET: who logs in to it.
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    # NOTIFY_SOCKET: where systemd wants to be told how the service is.
    notify_socket: str | None = None
    # XDG_CONFIG_HOME: where this user's programs keep what they are told; None: nobody is at home.
    config_home: Path | None = None

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Surroundings:
        """What these variables say. An empty one says nothing, as shells have it."""
        data, ca = environ.get("FOREWARN_DATA"), environ.get("FOREWARN_CA")
        return cls(
            data_directory=Path(data) if data else None,
            endpoint=environ.get("FOREWARN_ENDPOINT") or None,
            ca=Path(ca) if ca else None,
            client_id=environ.get("FOREWARN_CLIENT_ID") or None,
            client_secret=environ.get("FOREWARN_CLIENT_SECRET") or None,
            notify_socket=environ.get("NOTIFY_SOCKET") or None,
            config_home=_config_home(environ),
        )

    @classmethod
    def of_this_process(cls) -> Surroundings:
        """What this process was started with."""
        return cls.from_environ(os.environ)


def inherited(others: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process for one that it starts, and others on top of it."""
    return {**os.environ, **others}


def _config_home(environ: Mapping[str, str]) -> Path | None:
    told = environ.get("XDG_CONFIG_HOME") or ""
    # The specification has it that any other is not valid.
    if Path(told).is_absolute():
        return Path(told)
    home = environ.get("HOME")
    return Path(home) / ".config" if home else None
