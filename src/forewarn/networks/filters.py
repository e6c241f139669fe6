"""What the kernel lets through: rules for nftables, in tables of our own that come and go whole.

Spelled as `nft list table` spells them, so that what is there can be compared with what is wanted.
The rules are always the same; sets say for whom they hold. They name devices, so they stand before
the devices do.

Theory. On a tap, whatever is not from its guest's card and one of its addresses is dropped, and so
is whatever is for the endpoint and comes in elsewhere. On a bridge that is too late: a guest could make
the bridge believe that its neighbor's card is here, or make the neighbor believe that the endpoint
is. So frames are looked at where they enter the bridge, before it learns from them; and nobody but
the bridge itself may speak to guests as the endpoint. Who is at no declared port may be anybody, such
as a whole other network: it does not reach the endpoint, and the host does not believe it where a
guest is.

Allowed besides: asking for an address by DHCP, and asking by ARP whether anybody has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from forewarn.networks.links import Guest, Network

TABLE: Final = "forewarn"
ROUTED: Final = "inet"
BRIDGED: Final = "bridge"
FAMILIES: Final = (ROUTED, BRIDGED)

_ROUTED_CHAINS: Final = """\
	chain incoming {
		type filter hook prerouting priority -350; policy accept;
		iifname @taps jump guest
		ip daddr @endpoints iifname != @links iifname != "lo" drop
	}

	chain guest {
		ip saddr 0.0.0.0 ip daddr 255.255.255.255 udp dport 67 return
		iifname . ether saddr . ip saddr != @guests drop
	}
"""
_BRIDGED_CHAINS: Final = """\
	chain incoming {
		type filter hook prerouting priority -350; policy accept;
		iifname @ports jump guest
	}

	chain guest {
		iifname . ether saddr != @cards drop
		vlan id 0-4095 drop
		ether type != { ip, arp, ip6 } drop
		iifname . arp saddr ether != @cards drop
		arp saddr ip 0.0.0.0 return
		iifname . arp saddr ether . arp saddr ip != @guests drop
		ip saddr 0.0.0.0 ip daddr 255.255.255.255 udp dport 67 return
		iifname . ether saddr . ip saddr != @guests drop
	}

	chain arriving {
		type filter hook input priority -350; policy accept;
		iifname != @ports ip daddr @endpoints drop
		iifname != @ports arp daddr ip @endpoints drop
		iifname != @ports arp saddr ip @addresses drop
	}

	chain passing {
		type filter hook forward priority -350; policy accept;
		oifname @ports ip saddr @endpoints drop
		oifname @ports arp saddr ip @endpoints drop
	}
"""

_SET: Final = re.compile(r"\bset (\w+) \{(.*?)^\t\}", re.DOTALL | re.MULTILINE)
_ELEMENTS: Final = re.compile(r"elements = \{(.*?)\}", re.DOTALL)


def tables(network: Network) -> Mapping[str, str]:
    """The tables that a network needs, by family; the same text as `nft -s list table`."""
    wanted: dict[str, str] = {}
    if network.devices:
        sets: tuple[str, ...] = (
            _set("endpoints", "ipv4_addr", network.endpoints),
            _set("links", "ifname", map(_quoted, network.devices)),
            _set("taps", "ifname", (_quoted(tap.device) for tap in network.taps)),
            _guests(network.taps),
        )
        wanted[ROUTED] = _table(ROUTED, sets, _ROUTED_CHAINS)
    if network.bridges:
        ports = [port for bridge in network.bridges for port in bridge.guests]
        cards = (f"{_quoted(port.device)} . {port.mac}" for port in ports)
        sets = (
            _set("endpoints", "ipv4_addr", network.endpoints),
            _set("ports", "ifname", (_quoted(port.device) for port in ports)),
            _set("cards", "ifname . ether_addr", cards),
            _set("addresses", "ipv4_addr", (one for port in ports for one in port.addresses)),
            _guests(ports),
        )
        wanted[BRIDGED] = _table(BRIDGED, sets, _BRIDGED_CHAINS)
    return wanted


def is_same(one: str, other: str) -> bool:
    """Whether two listings of a table mean the same, whatever the order of sets' elements."""
    return _normal(one) == _normal(other)


def members(listing: str, name: str) -> tuple[str, ...]:
    """The elements of a set, as a listing has them."""
    return tuple(sorted(_sets(listing).get(name, ())))


def replacement(family: str, text: str | None) -> str:
    """What `nft -f` is told to have this table in place of the one there may be; None: no table."""
    # One that is not there cannot be deleted; one that is there is not made anew.
    return f"table {family} {TABLE}\ndelete table {family} {TABLE}\n{text or ''}"


def _table(family: str, sets: Sequence[str], chains: str) -> str:
    return f"table {family} {TABLE} {{\n" + "\n".join((*sets, chains)) + "}\n"


def _guests(guests: Iterable[Guest]) -> str:
    elements = (
        f"{_quoted(guest.device)} . {guest.mac} . {address}"
        for guest in guests
        for address in guest.addresses
    )
    return _set("guests", "ifname . ether_addr . ipv4_addr", elements)


def _set(name: str, kind: str, elements: Iterable[str]) -> str:
    listed = ",\n\t\t\t     ".join(elements)
    line = f"\t\telements = {{ {listed} }}\n" if listed else ""
    return f"\tset {name} {{\n\t\ttype {kind}\n{line}\t}}\n"


def _quoted(device: str) -> str:
    return f'"{device}"'


def _normal(listing: str) -> tuple[Mapping[str, frozenset[str]], str]:
    return _sets(listing), " ".join(_ELEMENTS.sub("", listing).split())


def _sets(listing: str) -> Mapping[str, frozenset[str]]:
    return {name: _elements(body) for name, body in _SET.findall(listing)}


def _elements(body: str) -> frozenset[str]:
    found = _ELEMENTS.search(body)
    words = found[1].split(",") if found else []
    return frozenset(" ".join(word.split()) for word in words)
