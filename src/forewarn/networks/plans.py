"""What is to be run so that a host becomes as it is wanted: from two values to a list of commands.

To take everything away again is to want no links. A device that was there before is marked with what
it was like, and becomes that again; one that we made goes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from forewarn.errors import Refused
from forewarn.networks import filters
from forewarn.networks.links import ENDPOINT, TAP_MAC, Bridge, Guest, Network
from forewarn.networks.namespaces import path_of
from forewarn.networks.surveys import OURS, ROUTE_PROTOCOL, Address, Device, Route, Survey

STRICT: Final = 1
LOOSE: Final = 2
MADE: Final = f"{OURS}made"

_ALONE: Final = 32


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run, and what it is told on its standard input."""

    words: tuple[str, ...]
    told: str = ""

    @property
    def spelled(self) -> str:
        """The same as a shell would be told."""
        line = shlex.join(self.words)
        return f"{line} <<'END'\n{self.told}END" if self.told else line


def prepare(network: Network, found: Survey) -> tuple[Command, ...]:
    """All that is missing, in the order to run it; nothing if the host is as wanted.

    Raises: Refused, with what somebody has to do first.
    """
    _refuse_taken(network, found)
    lines = [line for one in _stale(network, found) for line in _released(one, network, found)]
    for tap in network.taps:
        lines += _tap(tap, network, found)
    for bridge in network.bridges:
        lines += _bridge(bridge, network, found)
    rules, links = _rules(network, found), "".join(f"{line}\n" for line in lines)
    strict = _strictness(network, found)
    commands = [
        Command(("ip", "-batch", "-"), links) if links else None,
        Command(("sysctl", "-q", "-w", *strict)) if strict else None,
    ]
    filtering = Command(("nft", "-f", "-"), rules) if rules else None
    # Nobody is connected before the rules stand, and they stand until everybody is gone.
    commands.insert(0 if network.devices else len(commands), filtering)
    return tuple(command for command in commands if command is not None)


def unprepare(found: Survey) -> tuple[Command, ...]:
    """All that takes our doings away again. Raises: Refused."""
    return prepare(Network(endpoints=_endpoints_before(found) or (ENDPOINT,)), found)


def placed(command: Command, namespace: str | None) -> Command:
    """The same from outside the network namespace that it is run in."""
    if namespace is None:
        return command
    return Command(("nsenter", f"--net={path_of(namespace)}", "--", *command.words), command.told)


def notes(network: Network, found: Survey, loose: int) -> tuple[str, ...]:
    """What is not in the way, and somebody should know; `loose` is the host's rp_filter for all."""
    told = [
        f"{port.device}, a port of {bridge.device}, is not there yet: the rules wait for it"
        for bridge in network.bridges
        for port in bridge.guests
        if port.device not in found.devices
    ]
    if loose == LOOSE and network.devices:
        told.append(
            "net.ipv4.conf.all.rp_filter is 2 (loose), which wins over what is set for a device: "
            "the filters alone tell guests apart"
        )
    return tuple(told)


def _refuse_taken(network: Network, found: Survey) -> None:
    """Refuse to take an address that somebody uses on this host."""
    for device in found.devices.values():
        for address in device.addresses:
            if address.local in network.endpoints and not _is_ours(device, network):
                raise Refused(
                    f"{device.name} has {address.local} already: remove it there with `ip address "
                    f"del {_spelled(address)} dev {device.name}`, or declare {device.name} as a link"
                )
    for route in found.routes:
        asked = str(route.destination.network_address)
        is_alone = route.destination.prefixlen == _ALONE and asked in network.endpoints
        if is_alone and network.devices and route.device not in network.devices:
            raise Refused(
                f"this host itself asks {asked} on {route.device}, as VMs of a cloud do: name a "
                f"network namespace in the file, or give that up with `ip route del {asked} dev "
                f"{route.device}`"
            )


def _is_ours(device: Device, network: Network) -> bool:
    return device.is_marked or device.name in network.devices or not network.devices


def _stale(network: Network, found: Survey) -> Iterator[Device]:
    return (
        device
        for device in found.devices.values()
        if device.is_marked and device.name not in network.devices
    )


def _released(device: Device, network: Network, found: Survey) -> Iterator[str]:
    """Lines for `ip`, after which a device is as it was before us."""
    if device.alias == MADE:
        if device.has_carrier:
            raise Refused(
                f"{device.name} is in use, and would be removed: stop its VM first, or leave it in "
                "the network file"
            )
        yield f"link delete dev {device.name}"
        return
    # Routes first: they go by themselves with the last address of a device.
    yield from _unrouted(device.name, set(), found)
    for address in _ours(device, network, found):
        yield f"address delete {_spelled(address)} dev {device.name}"
    before = _before(device)
    if "mac" in before:
        yield f"link set dev {device.name} address {before['mac']}"
    if "down" in before:
        yield f"link set dev {device.name} down"
    yield f"link set dev {device.name} alias ''"


def _tap(tap: Guest, network: Network, found: Survey) -> Iterator[str]:
    name, device = tap.device, found.devices.get(tap.device)
    if device is None:
        yield f"tuntap add dev {name} mode tap"
        yield f"link set dev {name} alias {MADE}"
        device = Device(name=name, alias=MADE)
    elif device.master or device.kind == "bridge":
        what = f"a port of {device.master}" if device.master else "a bridge"
        raise Refused(
            f"{name} is {what}, and a tap stands alone: declare it under [[bridge]], or `ip link set "
            f"dev {name} nomaster`"
        )
    elif not device.kind or name in {route.device for route in found.routes if _is_default(route)}:
        what = (
            "this host's own way out" if device.kind else "no virtual device, but this host's own"
        )
        raise Refused(
            f"{name} is {what}, and a tap leads to one VM alone: give another name, and prepare makes "
            "that device; for a bridge, see [[bridge]]"
        )
    yield from _marked(device, f"mac={device.mac}")
    if device.mac != TAP_MAC:
        yield f"link set dev {name} address {TAP_MAC}"
    wanted = {
        Address(endpoint, _ALONE, address)
        for endpoint in network.endpoints
        for address in tap.addresses
    }
    yield from _addressed(device, wanted, _ours(device, network, found))


def _is_default(route: Route) -> bool:
    return route.destination.prefixlen == 0


def _bridge(bridge: Bridge, network: Network, found: Survey) -> Iterator[str]:
    name, device = bridge.device, found.devices.get(bridge.device)
    if device is None:
        raise Refused(
            f"there is no bridge {name}: make it with `ip link add {name} type bridge`, or as your "
            "distribution has it"
        )
    if device.kind != "bridge":
        raise Refused(
            f"{name} is no bridge: declare it under [[tap]], or give the name of the bridge"
        )
    for port in bridge.guests:
        master = found.devices[port.device].master if port.device in found.devices else name
        if master != name:
            raise Refused(
                f"{port.device} is no port of {name}: `ip link set dev {port.device} master {name}`, "
                "or declare it where it is"
            )
    yield from _marked(device)
    wanted = {Address(one, _ALONE) for one in network.endpoints}
    yield from _addressed(device, wanted, _ours(device, network, found))
    addresses = set(network.addresses_at(name))
    yield from _unrouted(name, addresses, found)
    for address in sorted(addresses):
        if not found.reaches(address, name):
            yield f"route add {address} dev {name} proto {ROUTE_PROTOCOL}"


def _unrouted(device: str, kept: set[str], found: Survey) -> Iterator[str]:
    for route in found.routes:
        address = str(route.destination.network_address)
        if (route.device, route.protocol) == (device, ROUTE_PROTOCOL) and address not in kept:
            yield f"route delete {address} dev {device} proto {ROUTE_PROTOCOL}"


def _marked(device: Device, *before: str) -> Iterator[str]:
    if device.is_marked:
        return
    if device.alias:
        raise Refused(
            f"{device.name} has the alias {device.alias!r}, where we would write what it was like: "
            f"clear it with `ip link set dev {device.name} alias ''`"
        )
    was = (*before, f"rp_filter={device.rp_filter}", *(() if device.is_up else ("down",)))
    yield f"link set dev {device.name} alias {OURS}{','.join(was)}"


def _ours(device: Device, network: Network, found: Survey) -> tuple[Address, ...]:
    """The endpoints' addresses of a device, now or before, in the order to delete them."""
    known = {*network.endpoints, *_endpoints_before(found)}
    # With the first of those that have one peer, the kernel deletes the others.
    return tuple(one for one in reversed(device.addresses) if one.local in known)


def _endpoints_before(found: Survey) -> tuple[str, ...]:
    return filters.members(found.tables.get(filters.ROUTED, ""), "endpoints")


def _addressed(device: Device, wanted: set[Address], ours: tuple[Address, ...]) -> Iterator[str]:
    surplus = [one for one in ours if one not in wanted]
    shared = {one.peer for one in surplus if one.peer is not None}
    # Those that have one peer go together; others last, since routes go with the last of all.
    first = [one for one in ours if one.peer in shared]
    last = [one for one in surplus if one.peer is None]
    for address in first:
        yield f"address delete {_spelled(address)} dev {device.name}"
    missing = wanted - (set(device.addresses) - set(first))
    for address in sorted(missing, key=_spelled):
        yield f"address add {_spelled(address)} dev {device.name}"
    for address in last:
        yield f"address delete {_spelled(address)} dev {device.name}"
    if not device.is_up:
        yield f"link set dev {device.name} up"


def _spelled(address: Address) -> str:
    if address.peer is None:
        return f"{address.local}/{address.prefix}"
    return f"{address.local} peer {address.peer}/{address.prefix}"


def _rules(network: Network, found: Survey) -> str:
    wanted = filters.tables(network)
    return "".join(
        filters.replacement(family, wanted.get(family))
        for family in filters.FAMILIES
        if (family in wanted or family in found.tables)
        and not filters.is_same(wanted.get(family, ""), found.tables.get(family, ""))
    )


def _strictness(network: Network, found: Survey) -> tuple[str, ...]:
    """Settings for `sysctl`: strict where links are, and elsewhere what there was before."""
    settings = {
        device.name: int(_before(device).get("rp_filter", device.rp_filter))
        for device in _stale(network, found)
        if device.alias != MADE
    }
    settings |= dict.fromkeys(network.devices, STRICT)
    return tuple(
        f"net/ipv4/conf/{name}/rp_filter={value}"
        for name, value in settings.items()
        if name not in found.devices or found.devices[name].rp_filter != value
    )


def _before(device: Device) -> dict[str, str]:
    """What a device was like, as we wrote it there."""
    pairs = (word.partition("=") for word in device.alias.removeprefix(OURS).split(","))
    return {key: value for key, _, value in pairs}
