"""Where a webhook may be told things: hosts that somebody allowed, and addresses that nobody may.

An allow-list names hosts. What a name means is decided by whoever runs its DNS, so the address that is
really connected to is judged as well, at every connection.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from forewarn.errors import Refused

Address = IPv4Address | IPv6Address

PORT_OF: Final = {"http": 80, "https": 443}
LOCALHOST: Final = "localhost"

# Where metadata and credentials are served, of this cloud and others; and where nobody is at all.
_FORBIDDEN: Final = tuple(
    ip_network(text)
    for text in (
        *("0.0.0.0/8", "169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32"),
        *("224.0.0.0/4", "240.0.0.0/4"),
        *("::/128", "fe80::/10", "fec0::/10", "ff00::/8", "fd00:ec2::254/128"),
    )
)
# Networks whose addresses have one of the older kind inside: in the last four bytes.
_TRANSLATED: Final = tuple(ip_network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "::/96"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where to post: an http or https address, in pieces."""

    scheme: str
    # In lower case; an IPv6 address without its brackets.
    host: str
    port: int
    # With the query, as it is sent.
    path: str

    @property
    def place(self) -> str:
        """The host, and the port where it is not the usual one, as a Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORT_OF[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.place}{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedHost:
    """A line of the allow-list: a host, or with `*.` before it every host below a domain."""

    host: str
    # None: the usual one of the scheme.
    port: int | None = None

    def covers(self, target: Target) -> bool:
        if target.port != (PORT_OF[target.scheme] if self.port is None else self.port):
            return False
        if self.host.startswith("*."):
            return target.host.endswith(self.host[1:]) and not _is_address(target.host)
        return target.host == self.host


def check_target(target: Target, allowed: Iterable[AllowedHost]) -> None:
    """Refuse a target that is not on the allow-list, or an address never to be told. Raises: Refused."""
    if _is_address(target.host):
        _check_address(target.host, target)
    if not any(one.covers(target) for one in allowed):
        raise Refused(
            f"{target.place} is not on the allow-list of webhooks: start the service with "
            f"--webhook-allow {_allowing(target)}"
        )


def check_connection(target: Target, address: str) -> None:
    """Refuse an address that a target's name led to, if nothing may be told there. Raises: Refused."""
    found = _check_address(address, target)
    if found.is_loopback and not _is_loopback(target.host):
        # Or a name could lead to whatever listens on this machine for itself alone.
        raise Refused(
            f"{target.host} leads to {address}, this machine's loopback: give that address itself, "
            "if it is meant"
        )


def _check_address(text: str, target: Target) -> Address:
    address = _plain(ip_address(text.partition("%")[0]))
    if any(address in network for network in _FORBIDDEN):
        raise Refused(
            f"{target.host} is or leads to {text}: link-local and metadata addresses are never told"
        )
    return address


def _plain(address: Address) -> Address:
    """The address that is meant, where an IPv6 address only wraps another one."""
    if isinstance(address, IPv4Address):
        return address
    wrapped = address.ipv4_mapped or address.sixtofour
    if wrapped is None and address.teredo is not None:
        wrapped = address.teredo[1]
    is_translated = any(address in network for network in _TRANSLATED)
    if wrapped is None and is_translated and int(address) > 1:
        wrapped = IPv4Address(int(address) & 0xFFFFFFFF)
    return address if wrapped is None else wrapped


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == LOCALHOST or (_is_address(host) and _plain(ip_address(host)).is_loopback)


def _allowing(target: Target) -> str:
    return f"'{target.place}'" if ":" in target.host else target.place
