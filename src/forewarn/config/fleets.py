"""The fleet file: the scopes and machines there are, and how long things take, as TOML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from forewarn.core.names import HostName, MachineName, ScopeId
from forewarn.core.periods import TERMINATE_NOTICE_MAX, TERMINATE_NOTICE_MIN, Periods, spell
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import (
    UPDATE_DOMAINS_DEFAULT,
    UPDATE_DOMAINS_MAX,
    AutoApproval,
    Enabling,
    Machine,
    Scope,
    ScopeKind,
)
from forewarn.errors import Malformed
from forewarn.identities.addresses import canonical
from forewarn.tables.places import Place
from forewarn.tables.reading import Fault, Faults, Faulty, Table, parse_toml, shown

SUBSCRIPTION_DEFAULT: Final = "00000000-0000-0000-0000-000000000000"
USER_OPERATIONS_MAX: Final = 1_000_000
NAME_LENGTH_MAX: Final = 80
HOST_LENGTH_MAX: Final = 253

_TOP, _PERIODS, _SCOPE, _MACHINE = "the top level", "[periods]", "[[scope]]", "[[scope.machine]]"
_MEMBERS: Final[Mapping[str, Collection[str]]] = {
    _TOP: ("scope", "periods", "subscription_id"),
    _PERIODS: tuple(one.name for one in fields(Periods)),
    _SCOPE: (
        "name",
        "kind",
        "resource_group",
        "update_domains",
        "user_operations_max",
        "terminate_notice",
        "spot",
        "enabled",
        "auto_approve",
        "recovery",
        "location",
        "machine",
    ),
    _MACHINE: (
        "name",
        "address",
        "host",
        "update_domain",
        "vm_id",
        "size",
        "zone",
        "tags",
    ),
}
# The least that makes sense; the others may be nothing at all.
_PERIODS_MIN: Final[Mapping[str, timedelta]] = {
    "remember": timedelta(hours=24),
    "freeze_limit": timedelta(seconds=1),
    "reboot_limit": timedelta(seconds=1),
    "redeploy_limit": timedelta(seconds=1),
    "preempt_limit": timedelta(seconds=1),
    "terminate_limit": timedelta(seconds=1),
}

# A name is part of addresses and of command lines: no leading dot, no leading dash.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")

# The addresses given so far: where, and to which machine.
_Owners = dict[str, tuple[Place, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFile:
    """A fleet file, understood."""

    declarations: tuple[Declaration, ...] = ()
    periods: Periods = field(default_factory=Periods)
    subscription_id: str = SUBSCRIPTION_DEFAULT

    @property
    def machine_names(self) -> tuple[str, ...]:
        """Every machine, by a name that is nobody else's: its own, or else with its scope's."""
        found = [
            (machine.name, f"{declared.scope.id}/{machine.name}")
            for declared in self.declarations
            for machine in declared.scope.machines
        ]
        count = Counter(name.lower() for name, _ in found)
        return tuple(name if count[name.lower()] == 1 else whole for name, whole in found)


def load_fleet(path: Path, default_enabling: Enabling = Enabling.ON_REQUEST) -> FleetFile:
    """The fleet that is written in a file.

    Raises: Malformed, with all that is wrong and one line for each fault.
    """
    return parse_fleet(read_fleet(path), str(path), default_enabling)


def read_fleet(path: Path) -> str:
    """The text of a fleet file. Raises: Malformed."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Malformed(
            f"{path}: cannot be read ({error.strerror}): check the path and its permissions"
        ) from error
    try:
        # Some editors begin a file with a byte order mark.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Faulty(f"{path}:{line}: not UTF-8: save the file in that encoding") from error


def parse_fleet(
    text: str, name: str, default_enabling: Enabling = Enabling.ON_REQUEST
) -> FleetFile:
    """The fleet that is written in a text, which errors call by the given name.

    Raises: Malformed, with all that is wrong and one line for each fault.
    """
    faults = Faults()
    top = Table(_TOP, parse_toml(text, name), (), faults)
    top.refuse_unknown(_MEMBERS)
    fleet = fleet_in(top, default_enabling)
    faults.raise_any(name, text)
    return fleet


def fleet_in(top: Table, default_enabling: Enabling) -> FleetFile:
    """The fleet among the members of a file; what is wrong with it is noted with the table."""
    scopes = top.tables("scope", _SCOPE)
    owners: _Owners = {}
    declarations = tuple(_declaration(table, default_enabling, owners) for table in scopes)
    _refuse_same_scopes(scopes, declarations)
    return FleetFile(
        declarations=declarations,
        periods=_periods(top.table("periods", _PERIODS)),
        subscription_id=_subscription_id(top),
    )


def _periods(table: Table) -> Periods:
    table.refuse_unknown(_MEMBERS)
    given: dict[str, timedelta] = {}
    for key in _MEMBERS[_PERIODS]:
        duration = table.duration(key)
        least = _PERIODS_MIN.get(key, timedelta())
        if duration is not None and duration < least:
            remedy = f'give "{spell(least)}" or more'
            table.fault(key, f"{key} = {shown(table.members[key])} is too short", remedy)
        elif duration is not None:
            given[key] = duration
    return Periods(**given)


def _subscription_id(top: Table) -> str:
    given = top.text("subscription_id", SUBSCRIPTION_DEFAULT)
    if top.is_sound("subscription_id") and _UUID.fullmatch(given) is None:
        what = f"subscription_id = {shown(given)} is not a UUID"
        top.fault("subscription_id", what, f'write it like "{SUBSCRIPTION_DEFAULT}"')
    return given


def _declaration(table: Table, default_enabling: Enabling, owners: _Owners) -> Declaration:
    table.refuse_unknown(_MEMBERS)
    count = table.whole("update_domains", 1, UPDATE_DOMAINS_MAX) or UPDATE_DOMAINS_DEFAULT
    scope = Scope(
        name=_name(table, "name", NAME_LENGTH_MAX),
        resource_group=_name(table, "resource_group", NAME_LENGTH_MAX, "default"),
        kind=table.choice("kind", ScopeKind.STANDALONE),
        update_domains=count,
        enabling=table.choice("enabled", default_enabling),
        terminate_notice=table.duration("terminate_notice"),
        spot=table.flag("spot"),
        user_operations_max=table.whole("user_operations_max", 1, USER_OPERATIONS_MAX),
        auto_approve=table.choices("auto_approve", AutoApproval),
        recovery=table.duration("recovery"),
        location=table.text("location"),
    )
    below = count if table.is_sound("update_domains") else UPDATE_DOMAINS_MAX
    tables = table.tables("machine", _MACHINE)
    machines = tuple(_machine(one, below, scope.id, owners) for one in tables)
    _refuse_notice(table, scope)
    _refuse_crowd(table, scope, len(machines))
    _refuse_same_machines(tables, machines)
    settled = (
        machine.name
        for machine, one in zip(machines, tables, strict=True)
        if "update_domain" in one.members
    )
    return Declaration(replace(scope, machines=machines), frozenset(settled))


def _machine(table: Table, below: int, scope_id: ScopeId, owners: _Owners) -> Machine:
    table.refuse_unknown(_MEMBERS)
    update_domain = table.whole("update_domain", 0, UPDATE_DOMAINS_MAX - 1) or 0
    if update_domain >= below:
        what = f"update_domain = {update_domain} is not below the scope's update_domains, {below}"
        remedy = f"give 0 to {below - 1}, or raise update_domains"
        table.fault("update_domain", what, remedy)
    name = MachineName(_name(table, "name", NAME_LENGTH_MAX))
    return Machine(
        name=name,
        addresses=_addresses(table, f"{scope_id}/{name}", owners),
        host=HostName(_name(table, "host", HOST_LENGTH_MAX)) if "host" in table.members else None,
        update_domain=update_domain,
        vm_id=table.text("vm_id"),
        size=table.text("size"),
        zone=table.text("zone"),
        tags=table.pairs("tags"),
    )


def _name(table: Table, key: str, length_max: int, default: str = "") -> str:
    given = table.text(key, default)
    if not table.is_sound(key):
        return default
    if key not in table.members and not default:
        table.fault(key, f"{table.title} without a {key}", f'add {key} = "…"')
    elif _NAME.fullmatch(given) is None:
        remedy = "use letters, digits, _ - and . only, and begin with a letter, a digit or _"
        table.fault(key, f"{key} = {shown(given)} is not a name", remedy)
    elif len(given) > length_max:
        what = f"{key} = {shown(given)} is too long"
        table.fault(key, what, f"use at most {length_max} characters")
    return given


def _addresses(table: Table, label: str, owners: _Owners) -> tuple[str, ...]:
    found: list[str] = []
    for place, given in table.strings("address"):
        address = canonical(given)
        if address is None:
            what = f"address {shown(given)} is no IP address"
            remedy = 'write it like "10.77.0.11" or "fd00::11", without a port or a prefix length'
            table.faults.add(Fault(place, what, remedy))
            continue
        if ip_address(address).is_unspecified or ip_address(address).is_multicast:
            what = f"nobody speaks from address {shown(given)}"
            table.faults.add(Fault(place, what, "give the address of the VM itself"))
        other, owner = owners.setdefault(address, (place, label))
        if other != place:
            what = f"address {address} of {label} is already that of {owner}"
            table.faults.add(Fault(place, what, "give every VM its own", other))
        found.append(address)
    return tuple(found)


def _refuse_crowd(table: Table, scope: Scope, count: int) -> None:
    standalone = scope.kind is ScopeKind.STANDALONE and table.is_sound("kind", "machine")
    if standalone and count != 1:
        others = ", ".join(kind.value for kind in ScopeKind if kind is not ScopeKind.STANDALONE)
        what = f"a standalone scope has one VM, this one has {count}"
        table.fault("kind", what, f"give it one [[scope.machine]], or another kind: {others}")


def _refuse_notice(table: Table, scope: Scope) -> None:
    notice = scope.terminate_notice
    if notice is None:
        return
    if scope.kind is not ScopeKind.SCALE_SET and table.is_sound("kind"):
        what = f"a scope of kind {scope.kind.value} has no terminate_notice"
        table.fault("terminate_notice", what, 'remove it, or make it kind = "scale-set"')
    if not TERMINATE_NOTICE_MIN <= notice <= TERMINATE_NOTICE_MAX:
        what = f"terminate_notice = {shown(table.members['terminate_notice'])} is out of bounds"
        table.fault("terminate_notice", what, 'give "5m" to "15m"')
    if scope.spot:
        what = "spot VMs get no terminate_notice"
        table.fault("terminate_notice", what, "remove terminate_notice, or spot = true")


def _refuse_same_machines(tables: list[Table], machines: tuple[Machine, ...]) -> None:
    seen: dict[str, Place] = {}
    for table, machine in zip(tables, machines, strict=True):
        place = (*table.place, "name")
        other = seen.setdefault(machine.name.lower(), place)
        if other != place and table.is_sound("name"):
            what = f"VM {machine.name} is in this scope already"
            remedy = "give it another name; capitals make no difference"
            table.fault("name", what, remedy, other)


def _refuse_same_scopes(tables: list[Table], declarations: tuple[Declaration, ...]) -> None:
    seen: dict[ScopeId, Place] = {}
    for table, declared in zip(tables, declarations, strict=True):
        place = (*table.place, "name")
        other = seen.setdefault(declared.scope.id, place)
        if other != place and table.is_sound("name", "resource_group"):
            what = f"scope {declared.scope.id} is in this file already"
            remedy = "give it another name or resource_group; capitals make no difference"
            table.fault("name", what, remedy, other)
