"""The environment variables that forewarn obeys."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the environment says; None where it says nothing."""

    # FOREWARN_DATA: the data directory of a service on this machine.
    data_directory: Path | None = None
    # FOREWARN_ENDPOINT: the address of a service elsewhere.
    endpoint: str | None = None
    # FOREWARN_TOKEN: what to show to it.
    token: str | None = None
    # NOTIFY_SOCKET: where systemd wants to be told how the service is.
    notify_socket: str | None = None

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Surroundings:
        """What these variables say. An empty one says nothing, as shells have it."""
        data = environ.get("FOREWARN_DATA")
        return cls(
            data_directory=Path(data) if data else None,
            endpoint=environ.get("FOREWARN_ENDPOINT") or None,
            token=environ.get("FOREWARN_TOKEN") or None,
            notify_socket=environ.get("NOTIFY_SOCKET") or None,
        )

    @classmethod
    def of_this_process(cls) -> Surroundings:
        """What this process was started with."""
        return cls.from_environ(os.environ)
