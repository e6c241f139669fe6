"""What a host is like, as `ip` and `nft` tell it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Final

# What our marks on a device begin with, and the number that our routes carry.
OURS: Final = "forewarn:"
ROUTE_PROTOCOL: Final = "245"


@dataclass(frozen=True, slots=True)
class Address:
    """An IPv4 address of a device; with a peer, if that is all there is at the other end."""

    local: str
    prefix: int
    peer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device of the host."""

    name: str
    kind: str = ""
    mac: str = ""
    # What somebody wrote at it; we write there what it was like before.
    alias: str = ""
    # The bridge it is a port of.
    master: str = ""
    is_up: bool = False
    has_carrier: bool = False
    addresses: tuple[Address, ...] = ()
    rp_filter: int = 0

    @property
    def is_marked(self) -> bool:
        """Whether we made or changed it."""
        return self.alias.startswith(OURS)


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the main table, to something on a device's link or beyond."""

    destination: IPv4Network
    device: str
    protocol: str = ""


@dataclass(frozen=True, slots=True)
class Survey:
    """A host as it was found."""

    devices: Mapping[str, Device] = field(default_factory=dict)
    routes: tuple[Route, ...] = ()
    # Our tables of rules, as nft lists them, by family.
    tables: Mapping[str, str] = field(default_factory=dict)

    def reaches(self, address: str, device: str) -> bool:
        """Whether the host looks for an address on that device's link."""
        wanted = IPv4Address(address)
        return any(
            route.device == device and wanted in route.destination and route.destination.prefixlen
            for route in self.routes
        )


def parse_devices(listing: str, rp_filters: Mapping[str, int]) -> Mapping[str, Device]:
    """What `ip -json -details address show` says."""
    found = (_device(one, rp_filters) for one in json.loads(listing or "[]") if "ifname" in one)
    return {device.name: device for device in found}


def parse_routes(listing: str) -> tuple[Route, ...]:
    """What `ip -json -4 route show` says."""
    # A route without a device leads nowhere, or to several next hops at once.
    return tuple(
        Route(_destination(one["dst"]), one["dev"], str(one.get("protocol", "")))
        for one in json.loads(listing or "[]")
        if "dev" in one
    )


def _device(one: Mapping[str, Any], rp_filters: Mapping[str, int]) -> Device:
    name, flags = one["ifname"], one.get("flags", ())
    return Device(
        name=name,
        kind=one.get("linkinfo", {}).get("info_kind", ""),
        mac=one.get("address", ""),
        alias=one.get("ifalias", ""),
        master=one.get("master", ""),
        is_up="UP" in flags,
        has_carrier="LOWER_UP" in flags,
        addresses=tuple(
            Address(info["local"], info["prefixlen"], info.get("address"))
            for info in one.get("addr_info", ())
            if info.get("family") == "inet"
        ),
        rp_filter=rp_filters.get(name, 0),
    )


def _destination(text: str) -> IPv4Network:
    return IPv4Network("0.0.0.0/0" if text == "default" else text)
