"""From surveys to the scopes and machines of a fleet: pure functions.

What a domain's metadata leaves out: its scope is a standalone one of its own name, in the resource
group "default". A domain that cannot be in a fleet is left out and named, and keeps nobody else out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from ipaddress import ip_address
from typing import Final, TypeVar

from forewarn.core import scopes
from forewarn.core.names import HostName, MachineName, ScopeId
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import Enabling, Interface, Machine, Origin, Presence, Scope, ScopeKind
from forewarn.errors import Malformed, Refused
from forewarn.fabrics.libvirt.descriptions import Description, Nic
from forewarn.fabrics.libvirt.surveys import Resident

_ChoiceT = TypeVar("_ChoiceT", bound=Enum)

# As in fleet files: a name is part of addresses and of command lines.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
# As in libvirt's own XML, and as in fleet files.
_YES_OR_NO: Final = {"yes": True, "no": False, "true": True, "false": False}
_KNOWN: Final = frozenset(
    {
        "name",
        "scope",
        "group",
        "kind",
        "update-domain",
        "update-domains",
        "size",
        "zone",
        "location",
        "spot",
        "enabled",
        "freeze",
    }
)


@dataclass(frozen=True, slots=True)
class Lodger:
    """A domain as a machine: which one it is, in which scope, and where."""

    scope: Scope
    machine: Machine
    # Whether its metadata gives its update domain.
    is_settled: bool
    # Whether its metadata says which scope it is of; else anybody may call it by its name.
    is_placed: bool
    resident: Resident

    @property
    def is_leased(self) -> bool:
        """Whether it got an address from a DHCP server, whom a guest may ask for any."""
        return any(nic.is_leased for nic in self.resident.description.nics)

    @property
    def key(self) -> tuple[ScopeId, str]:
        return (self.scope.id, self.machine.name.lower())


@dataclass(frozen=True, slots=True)
class Census:
    """Everybody, and whom it left out."""

    lodgers: tuple[Lodger, ...] = ()
    left_out: tuple[str, ...] = ()
    # The same, by scope and name; and by name alone those whom any scope may claim.
    by_key: Mapping[tuple[ScopeId, str], Lodger] = field(default_factory=dict)
    unplaced: Mapping[str, Sequence[Lodger]] = field(default_factory=dict)

    def declarations(self) -> tuple[Declaration, ...]:
        """The scopes, with their machines by name."""
        by_scope: dict[ScopeId, list[Lodger]] = {}
        for lodger in self.lodgers:
            by_scope.setdefault(lodger.scope.id, []).append(lodger)
        return tuple(_declaration(by_scope[scope]) for scope in sorted(by_scope))


def count(residents: Iterable[tuple[HostName, Resident]], default_enabling: Enabling) -> Census:
    """The census of these domains; of two of one name in one scope, the first is."""
    lodgers: dict[tuple[ScopeId, str], Lodger] = {}
    settings: dict[ScopeId, Lodger] = {}
    left_out: list[str] = []
    # libvirt lists them in any order, and nobody's place may depend on that.
    for host, resident in sorted(residents, key=lambda each: (each[1].description.name, each[0])):
        name = resident.description.name
        try:
            lodger = _lodger(resident, host, default_enabling)
            _refuse_discord(settings.setdefault(lodger.scope.id, lodger), lodger)
            _refuse_double(lodgers.get(lodger.key), lodger)
        except (Malformed, Refused) as error:
            left_out.append(f"{name} on {host} is left out: {error}")
            continue
        lodgers[lodger.key] = lodger
    ordered = sorted(lodgers.values(), key=lambda lodger: lodger.key)
    unplaced: dict[str, list[Lodger]] = {}
    for lodger in ordered:
        if not lodger.is_placed:
            unplaced.setdefault(lodger.machine.name.lower(), []).append(lodger)
    return Census(tuple(ordered), tuple(left_out), lodgers, unplaced)


def _declaration(lodgers: Sequence[Lodger]) -> Declaration:
    machines = tuple(lodger.machine for lodger in lodgers)
    settled = frozenset(lodger.machine.name for lodger in lodgers if lodger.is_settled)
    return Declaration(replace(lodgers[0].scope, machines=machines), settled)


def _refuse_discord(first: Lodger, lodger: Lodger) -> None:
    """The machines of one scope agree on what it is, since each of them says it."""
    if lodger is first:
        return
    if lodger.scope.kind is ScopeKind.STANDALONE:
        raise Refused(
            f"{lodger.scope.id} has {first.machine.name} already, and is standalone: give both a "
            'kind in their metadata, such as kind="availability-set", or another scope'
        )
    if lodger.scope != first.scope:
        raise Refused(
            f"its metadata says of scope {lodger.scope.id} other things than that of "
            f"{first.machine.name}: make them agree"
        )


def _refuse_double(other: Lodger | None, lodger: Lodger) -> None:
    if other is not None:
        where = other.machine.host
        raise Refused(
            f"scope {lodger.scope.id} has a {lodger.machine.name} on {where} already: give one of "
            "them another name in its metadata"
        )


def _lodger(resident: Resident, host: HostName, default_enabling: Enabling) -> Lodger:
    described = resident.description
    said = described.said or {}
    unknown = sorted(said.keys() - _KNOWN)
    if unknown:
        raise Malformed(
            f"its metadata says {unknown[0]}, which means nothing here: one of "
            f"{', '.join(sorted(_KNOWN))}"
        )
    name = _name(said.get("name", described.name), "name")
    kind = _choice(said, "kind", ScopeKind.STANDALONE)
    scope = Scope(
        name=_name(said.get("scope", name), "scope"),
        resource_group=_name(said.get("group", "default"), "group"),
        kind=kind,
        update_domains=_whole(said, "update-domains", scopes.UPDATE_DOMAINS_DEFAULT),
        enabling=_choice(said, "enabled", default_enabling),
        spot=_is_yes(said, "spot"),
        location=said.get("location", ""),
        origin=Origin.CENSUS,
    )
    machine = _machine(described, MachineName(name), host, resident)
    # What cannot be is refused here, where it costs one machine and not the whole census.
    scopes.check(replace(scope, machines=(machine,)))
    return Lodger(scope, machine, "update-domain" in said, "scope" in said, resident)


def _machine(
    described: Description, name: MachineName, host: HostName, resident: Resident
) -> Machine:
    said = described.said or {}
    interfaces = tuple(_interface(nic) for nic in described.nics)
    return Machine(
        name=name,
        addresses=tuple(a for interface in interfaces for a in interface.addresses),
        host=host,
        update_domain=_whole(said, "update-domain", 0),
        presence=Presence.RUNNING if resident.is_active else Presence.STOPPED,
        origin=Origin.CENSUS,
        vm_id=described.uuid,
        size=said.get("size", ""),
        zone=said.get("zone", ""),
        tags=described.tags,
        interfaces=interfaces,
    )


def _interface(nic: Nic) -> Interface:
    return Interface(nic.mac, tuple(map(_address, nic.addresses)))


def _address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError as error:
        raise Malformed(f'"{text}" is no IP address: correct its XML') from error


def _name(text: str, what: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise Malformed(
            f'its {what} "{text}" is none that a fleet can have: give it one in its metadata, with '
            "letters, digits, _ - and . only"
        )
    return text


def _choice(said: Mapping[str, str], key: str, default: _ChoiceT) -> _ChoiceT:
    kind = type(default)
    try:
        return kind(said[key]) if key in said else default
    except ValueError as error:
        allowed = ", ".join(str(member.value) for member in kind)
        raise Malformed(f'its metadata says {key}="{said[key]}": one of {allowed}') from error


def _whole(said: Mapping[str, str], key: str, default: int) -> int:
    text = said.get(key, str(default))
    if not (text.isascii() and text.isdecimal()):
        raise Malformed(f'its metadata says {key}="{text}": give a whole number')
    return int(text)


def _is_yes(said: Mapping[str, str], key: str) -> bool:
    text = said.get(key, "no")
    if text not in _YES_OR_NO:
        raise Malformed(f'its metadata says {key}="{text}": write yes or no')
    return _YES_OR_NO[text]


def find(census: Census, scope: ScopeId, machine: str) -> Lodger:
    """The domain that is meant by a scope and a machine's name.

    Its metadata says so; or it says nothing of a scope, and its name is enough: a fleet file may
    have put it anywhere.

    Raises: Refused if there is none, or if there are two.
    """
    exact = census.by_key.get((scope, machine.lower()))
    found = [exact] if exact is not None else census.unplaced.get(machine.lower(), [])
    if not found:
        raise Refused(f"no domain on any host is {machine} of scope {scope}")
    if len(found) > 1:
        hosts = " and ".join(str(lodger.machine.host) for lodger in found)
        raise Refused(
            f"{machine} of scope {scope} could be one of two domains, on {hosts}: give them their "
            "scope in their metadata"
        )
    return found[0]
