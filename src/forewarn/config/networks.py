"""The network file: the links of one host and the guests at them, as TOML."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from forewarn.config.fleets import read_fleet
from forewarn.errors import Malformed
from forewarn.networks.links import (
    ENDPOINT,
    Bridge,
    Guest,
    Network,
    parse_address,
    parse_device,
    parse_mac,
)
from forewarn.tables.places import Place
from forewarn.tables.reading import Fault, Faults, Table, parse_toml, shown

PREFIX_MIN: Final = 8
PREFIX_MAX: Final = 32

_TOP, _TAP, _BRIDGE, _PORT = "the top level", "[[tap]]", "[[bridge]]", "[[bridge.port]]"
_GUEST: Final = ("device", "mac", "address")
_MEMBERS: Final[Mapping[str, Collection[str]]] = {
    _TOP: ("endpoint", "namespace", "tap", "bridge"),
    _TAP: _GUEST,
    _BRIDGE: ("device", "prefix", "dhcp_245", "port_8080", "port"),
    _PORT: _GUEST,
}

# What can be given once only (devices, cards, addresses), and where it was.
_Owners = dict[str, Place]


def load_network(path: Path) -> Network:
    """The network that is written in a file.

    Raises: Malformed, with all that is wrong and one line for each fault.
    """
    return parse_network(read_fleet(path), str(path))


def parse_network(text: str, name: str) -> Network:
    """The network that is written in a text, which errors call by the given name.

    Raises: Malformed, with all that is wrong and one line for each fault.
    """
    faults = Faults()
    top = Table(_TOP, parse_toml(text, name), (), faults)
    top.refuse_unknown(_MEMBERS)
    owners: _Owners = {}
    endpoints = _many(top, "endpoint", owners) or (ENDPOINT,)
    network = Network(
        endpoints=endpoints,
        taps=tuple(_guest(table, owners) for table in top.tables("tap", _TAP)),
        bridges=tuple(_bridge(table, endpoints, owners) for table in top.tables("bridge", _BRIDGE)),
        namespace=top.text("namespace") or None,
    )
    if "endpoint" not in top.members and ENDPOINT in owners:
        what = f"{ENDPOINT} is the endpoint's own address"
        faults.add(Fault(owners[ENDPOINT], what, "give the one the VM speaks from"))
    faults.raise_any(name, text)
    return network


def _bridge(table: Table, endpoints: tuple[str, ...], owners: _Owners) -> Bridge:
    table.refuse_unknown(_MEMBERS)
    told = table.text("dhcp_245") or None
    if told is not None and told not in endpoints:
        what = f"dhcp_245 = {shown(told)} is no address of the endpoint"
        table.fault("dhcp_245", what, f"give one of {', '.join(endpoints)}, or add it to endpoint")
    return Bridge(
        _one(table, "device", parse_device, owners),
        tuple(_guest(port, owners) for port in table.tables("port", _PORT)),
        table.whole("prefix", PREFIX_MIN, PREFIX_MAX) or PREFIX_MAX,
        told,
        table.flag("port_8080"),
    )


def _guest(table: Table, owners: _Owners) -> Guest:
    table.refuse_unknown(_MEMBERS)
    addresses = _many(table, "address", owners)
    if not addresses and table.is_sound("address") and not table.members.get("address"):
        table.fault("address", "address is missing", 'write address = "10.77.0.11"')
    return Guest(
        _one(table, "device", parse_device, owners),
        _one(table, "mac", parse_mac, owners),
        addresses,
    )


def _one(table: Table, key: str, parse: Callable[[str], str], owners: _Owners) -> str:
    if key not in table.members:
        table.fault(key, f"{key} is missing", f'write {key} = "…"')
        return ""
    text = table.text(key)
    return _taken(table, (*table.place, key), text, parse, owners) if table.is_sound(key) else ""


def _many(table: Table, key: str, owners: _Owners) -> tuple[str, ...]:
    found = table.strings(key)
    taken = (_taken(table, place, text, parse_address, owners) for place, text in found)
    return tuple(filter(None, taken))


def _taken(
    table: Table, place: Place, text: str, parse: Callable[[str], str], owners: _Owners
) -> str:
    """What a text says, if nobody said it before."""
    try:
        value = parse(text)
    except Malformed as error:
        what, _, remedy = str(error).rpartition(": ")
        table.faults.add(Fault(place, what, remedy))
        return ""
    before = owners.setdefault(value, place)
    if before != place:
        what = f"{value} was given before"
        table.faults.add(
            Fault(place, what, "each device, card and address is one VM's own", before)
        )
    return value
