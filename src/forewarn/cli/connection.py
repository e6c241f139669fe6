"""Which service is meant, and how to get there.

What is said on the command line wins over the environment, and an address over a data directory.
A service on this machine is found by its data directory, where it leaves its address and token.

The token is that of --token-file, else that of --data. Where neither is given, FOREWARN_TOKEN goes
with an address; a data directory has its own. FOREWARN_DATA's token never goes to an address: who
names a service elsewhere does not mean to show it the secret of the one that is here.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from forewarn.cli.client import Client, Service
from forewarn.config.surroundings import Surroundings
from forewarn.errors import Malformed, Refused, Unavailable

# The options that may also stand before the command.
OPTIONS: Final = ("--data", "--endpoint", "--token-file")

_HERE: Final = Path(".forewarn")
_SYSTEM_WIDE: Final = Path("/var/lib/forewarn")


@Parameter(name="*", group="Which service")
@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The options by which every command finds its service."""

    data: Annotated[
        Path | None,
        Parameter(
            help="Data directory of a service on this machine; else FOREWARN_DATA, "
            "./.forewarn or /var/lib/forewarn."
        ),
    ] = None
    endpoint: Annotated[
        str | None,
        Parameter(
            help="Address of a service elsewhere, such as http://10.0.0.5:8170; else FOREWARN_ENDPOINT."
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        Parameter(
            help="File with the token to show; else the one in --data, or with an address alone "
            "FOREWARN_TOKEN."
        ),
    ] = None

    def client(self) -> Client:
        """The way to the service. Raises: Malformed, Refused, Unavailable."""
        return Client(self.service(Surroundings.of_this_process()))

    def service(self, surroundings: Surroundings) -> Service:
        """The service that is meant. Raises: Malformed, Refused, Unavailable."""
        endpoint = self.endpoint or (None if self.data else surroundings.endpoint)
        if endpoint is None:
            return self._on_this_machine(self.data or surroundings.data_directory or _usual())
        return Service(
            url=endpoint,
            token=self._token(surroundings),
            remedy="see that it runs there and that its control address can be reached from here",
        )

    def _on_this_machine(self, data: Path) -> Service:
        remedy = f"start it with `forewarn serve --data {data}`, or name another with --data DIR"
        return Service(
            url=_address(data, remedy),
            token=_read_token(self.token_file or data / "token"),
            remedy=remedy,
        )

    def _token(self, surroundings: Surroundings) -> str:
        if self.token_file is not None:
            return _read_token(self.token_file)
        if self.data is not None:
            return _read_token(self.data / "token")
        if surroundings.token is None:
            raise Malformed(
                "an address needs a token: give --token-file FILE or --data DIR, "
                "or set FOREWARN_TOKEN"
            )
        return surroundings.token


ANY: Final = Connection()


def _usual() -> Path:
    return _HERE if _HERE.is_dir() else _SYSTEM_WIDE


def _address(data: Path, remedy: str) -> str:
    file = data / "endpoint.json"
    try:
        content = json.loads(file.read_bytes())
        address = str(content["control"])
    except FileNotFoundError:
        raise Unavailable(f"no service is running on {data}: {remedy}") from None
    except PermissionError:
        raise Refused(f"you may not read {file}: run this as the user of the service") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unavailable(f"{file} tells no address: {remedy}") from error
    if not _lives(content.get("pid")):
        # Whoever has its port by now must not be shown the token.
        raise Unavailable(f"the service on {data} has died: {remedy}")
    return address


def _lives(pid: object) -> bool:
    """Whether a process lives; one that nobody named is taken to."""
    if not isinstance(pid, int):
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        # Another user's.
        return True
    return True


def _read_token(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise Malformed(f"there is no token at {file}: give --token-file FILE") from None
    except PermissionError:
        raise Refused(
            f"you may not read {file}: run this as the user of the service, or give --token-file"
        ) from None
    except (OSError, ValueError) as error:
        raise Malformed(f"{file} holds no token: give another --token-file") from error
