"""What a host's links shall be: taps with a guest each, and bridges with guests at their ports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Final

from forewarn.errors import Malformed

ENDPOINT: Final = "169.254.169.254"
# Of every tap, on every host: a guest that is moved goes on with what it knows of its link.
TAP_MAC: Final = "02:00:a9:fe:a9:fe"

# The kernel's limit, less the zero at the end; and what neither a file in /proc nor nft would misread.
_DEVICE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")
_MAC: Final = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_GROUP_BIT: Final = 1
_NOBODY: Final = IPv4Address(0)


@dataclass(frozen=True, slots=True)
class Guest:
    """A guest at the end of a device of its own: its card, and the addresses it may speak from."""

    device: str
    mac: str
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bridge:
    """A bridge, and the guests at its ports."""

    device: str
    guests: tuple[Guest, ...] = ()
    # The prefix that guests are told by DHCP; 32: nobody but the endpoint is on their link.
    prefix: int = 32
    # The endpoint's address that guests are told by DHCP option 245; None: they are told nothing.
    dhcp_245: str | None = None
    # Whether the endpoint is also at port 8080, where an old sample asks.
    port_8080: bool = False


@dataclass(frozen=True, slots=True)
class Network:
    """All links of one host."""

    # Where guests ask; on each link.
    endpoints: tuple[str, ...] = (ENDPOINT,)
    taps: tuple[Guest, ...] = ()
    bridges: tuple[Bridge, ...] = ()
    # The network namespace that the links are in; None: the one that we are in.
    namespace: str | None = None

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that have the endpoints' addresses, and are listened on."""
        taps = (tap.device for tap in self.taps)
        return (*taps, *(bridge.device for bridge in self.bridges))

    @property
    def guests(self) -> tuple[Guest, ...]:
        return (*self.taps, *(guest for bridge in self.bridges for guest in bridge.guests))

    def addresses_at(self, device: str) -> tuple[str, ...]:
        """Who may speak from a device that is listened on."""
        taps = (tap for tap in self.taps if tap.device == device)
        ports = (port for one in self.bridges if one.device == device for port in one.guests)
        return tuple(address for guest in (*taps, *ports) for address in guest.addresses)

    def bridge(self, device: str) -> Bridge | None:
        return next((one for one in self.bridges if one.device == device), None)


def parse_device(text: str) -> str:
    """A name that a device can have. Raises: Malformed."""
    if not _DEVICE.fullmatch(text):
        raise Malformed(
            f"{text!r} is no name of a device: give at most 15 letters, digits, dots, dashes and "
            "underscores"
        )
    return text


def parse_mac(text: str) -> str:
    """The address of one card, in its one spelling. Raises: Malformed."""
    mac = text.lower().replace("-", ":")
    if not _MAC.fullmatch(mac):
        raise Malformed(f"{text!r} is no MAC address: write it like 52:54:00:77:00:11")
    if int(mac[:2], 16) & _GROUP_BIT:
        raise Malformed(f"{text!r} is the address of a group: give the one of the VM's own card")
    return mac


def parse_address(text: str) -> str:
    """An IPv4 address that one guest can have. Raises: Malformed."""
    try:
        address = IPv4Address(text)
    except ValueError:
        raise Malformed(f"{text!r} is no IPv4 address: write it like 10.77.0.11") from None
    if address.is_multicast or address.is_loopback or address.is_reserved or address == _NOBODY:
        raise Malformed(f"{text!r} is nobody's own address: give the one the VM speaks from")
    return str(address)
