"""Where the metadata service is: as told, as the environment says, at Azure's address, or where DHCP says.

All but the first two are tried in turn until one of them answers. VMs in a virtual network reach
169.254.169.254; others (cloud services, classic VMs) learn an address by DHCP option 245.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from forewarn.client.leases import fabric_address
from forewarn.errors import Malformed

HTTP_PORT: Final = 80
# Ours, and the one by which Azure's samples hand on what they found out.
VARIABLES: Final = ("FOREWARN_ENDPOINT", "SCHEDULEDEVENTSIP")
LEASES: Final = (
    "run/systemd/netif/leases/*",
    "var/lib/NetworkManager/*.lease",
    "var/lib/dhcp/dhclient*.lease*",
    "var/lib/dhclient/*.lease*",
    "var/lib/dhcpcd/*.lease",
    "var/lib/dhcpcd5/*.lease",
)
# A lease has some hundred bytes, but dhclient appends to its file for ever; the end counts.
_LEASE_SIZE_MAX: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to connect to."""

    host: str
    port: int = HTTP_PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == HTTP_PORT else f"{host}:{self.port}"


AZURE: Final = Endpoint("169.254.169.254")


@dataclass(frozen=True, slots=True)
class Search:
    """Places to ask at, and the one whose turn it is; over when that one has answered well."""

    places: tuple[Endpoint, ...]
    turn: int = 0
    is_over: bool = False

    @property
    def endpoint(self) -> Endpoint:
        return self.places[self.turn]

    @property
    def is_exhausted(self) -> bool:
        """Whether it is the first one's turn: at the beginning, and each time all were tried."""
        return not self.is_over and self.turn == 0

    def after(self, *, is_well: bool) -> Search:
        """The search, now that the one whose turn it was has answered well, or not."""
        if self.is_over:
            return self
        if is_well:
            return replace(self, is_over=True)
        return replace(self, turn=(self.turn + 1) % len(self.places))


def parse_endpoint(text: str) -> Endpoint:
    """An endpoint as people write it: http://HOST[:PORT], or without the scheme. Raises: Malformed."""
    whole = text.strip() if "://" in text else f"http://{text.strip()}"
    try:
        parts = urlsplit(whole)
        port = HTTP_PORT if parts.port is None else parts.port
    except ValueError as error:
        raise Malformed(f"{text!r} is no address: {error}") from error
    is_bare = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
    if parts.scheme != "http" or not parts.hostname or not is_bare:
        raise Malformed(f"{text!r} is no endpoint: write http://HOST[:PORT], and nothing after it")
    return Endpoint(parts.hostname, port)


def places(
    told: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    root: Path = Path("/"),
) -> tuple[Endpoint, ...]:
    """Where the metadata service may be, the likeliest first. Raises: Malformed.

    `environment` is the process's, and `root` the system's, unless somebody knows better.
    """
    if told is not None:
        return (parse_endpoint(told),)
    variables = os.environ if environment is None else environment
    for name in VARIABLES:
        if value := variables.get(name, "").strip():
            return (parse_endpoint(value),)
    return (AZURE, *leased(root))


def leased(root: Path) -> tuple[Endpoint, ...]:
    """The addresses that the VM's leases name, the newest first, each once."""
    files = [path for pattern in LEASES for path in root.glob(pattern)]
    found = [fabric_address(_tail(path)) for path in sorted(files, key=_age, reverse=True)]
    # A dictionary keeps what it is told first, in that order.
    unique = dict.fromkeys(str(address) for address in found if address is not None)
    return _endpoints(list(unique))


def _endpoints(addresses: Sequence[str]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(address) for address in addresses if address != AZURE.host)


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _tail(path: Path) -> bytes:
    """What a lease file says, as far as it may be read; leases of others may not."""
    try:
        content = path.read_bytes()
    except OSError:
        return b""
    return content[-_LEASE_SIZE_MAX:]
