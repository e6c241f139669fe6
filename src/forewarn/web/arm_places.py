"""Which machine or scope a path of Azure's means. Looked up in memory; names ignore case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, NoReturn

from forewarn.core.ledgers import Ledger
from forewarn.core.names import scope_id
from forewarn.core.scopes import Machine, ScopeKind
from forewarn.web.arm_calls import ArmParts, Saying
from forewarn.web.calls import Call
from forewarn.wire import arm, instance
from forewarn.wire.arm_kept import kept_members

KIND_OF: Final = {
    arm.SCALE_SETS: ScopeKind.SCALE_SET,
    arm.AVAILABILITY_SETS: ScopeKind.AVAILABILITY_SET,
}


@dataclass(frozen=True, slots=True)
class Place:
    """A machine, and the ledger that has it."""

    ledger: Ledger
    machine: Machine


def ledgers(parts: ArmParts, call: Call, group: str | None = None) -> Iterator[Ledger]:
    """The ledgers of a group, or of all that concern the caller, sorted by their ids."""
    prefix = "" if group is None else f"{group.lower()}/"
    for scope in parts.desk.directory.scopes():
        if not scope.startswith(prefix) or not call.sees(scope.partition("/")[0]):
            continue
        ledger = parts.desk.board.ledger(scope)
        assert ledger is not None, "what is in the directory is on the board as well"
        if is_shown(ledger):
            yield ledger


def is_shown(ledger: Ledger) -> bool:
    """Whether owners see a scope, or machines of it; it never ends, for its incarnation's sake."""
    if arm.machines(ledger.scope):
        return True
    is_set = ledger.scope.kind in KIND_OF.values()
    return is_set and ledger.scope.origin is not None and not is_deleted(ledger)


def is_deleted(ledger: Ledger) -> bool:
    """Whether somebody has asked to delete the scope as such, with all its machines."""
    properties = kept_members(ledger.scope.kept).get("properties")
    ours = properties.get("forewarn") if isinstance(properties, dict) else None
    return isinstance(ours, dict) and ours.get("deleting") is True


def listed_group(parts: ArmParts, call: Call) -> str | None:
    """The group whose resources are listed; None: the whole subscription. Raises: Saying."""
    group = call.names.get("group")
    if group is not None:
        insist_on_group(parts, call, group)
    return group


def insist_on_group(parts: ArmParts, call: Call, group: str) -> str:
    """A group's name as it was first spelled. Raises: Saying."""
    known = group_name(parts, call, group)
    if known is None:
        raise Saying(
            HTTPStatus.NOT_FOUND,
            "ResourceGroupNotFound",
            f"Resource group '{group}' could not be found.",
        )
    return known


def group_name(parts: ArmParts, call: Call, group: str) -> str | None:
    """A group's name as it was first spelled; None if nothing is in it.

    Groups that owners are named for are there before anything is in them.
    """
    first = next(ledgers(parts, call, group), None)
    if first is not None:
        return first.scope.resource_group
    return group if group.lower() in call.caller.groups else None


def machine(parts: ArmParts, call: Call) -> Place:
    """The virtual machine that a path names. Raises: Saying."""
    found = find_machine(parts, call.names["group"], call.names["name"])
    return found or _missing(parts, call, arm.MACHINES)


def find_machine(parts: ArmParts, group: str, name: str) -> Place | None:
    """The virtual machine of that name, if it is there; instances of scale sets are none."""
    for scope, known in parts.desk.directory.namesakes(name):
        ledger = parts.desk.board.ledger(scope)
        if ledger is None or not scope.startswith(f"{group.lower()}/"):
            continue
        machine = ledger.scope.machine(known)
        is_vm = ledger.scope.kind is not ScopeKind.SCALE_SET
        if is_vm and machine is not None and arm.is_there(machine):
            return Place(ledger, machine)
    return None


def scope(parts: ArmParts, call: Call, kind: str) -> Ledger:
    """The scale set or availability set that a path names. Raises: Saying."""
    found = find_scope(parts, call.names["group"], call.names["name"], KIND_OF[kind])
    return found or _missing(parts, call, kind)


def find_scope(parts: ArmParts, group: str, name: str, kind: ScopeKind) -> Ledger | None:
    """The scope of that name and kind, if owners see it."""
    ledger = parts.desk.board.ledger(scope_id(group, name))
    if ledger is None or ledger.scope.kind is not kind:
        return None
    return ledger if is_shown(ledger) else None


def instance_of(ledger: Ledger, wanted: str) -> Machine:
    """An instance of a scale set, by its number or by its name. Raises: Saying."""
    for machine in arm.machines(ledger.scope):
        number = instance.instance_id(ledger.scope, machine)
        if wanted.lower() in {number.lower(), machine.name.lower()}:
            return machine
    raise Saying(
        HTTPStatus.NOT_FOUND,
        "ResourceNotFound",
        f"The VM instance '{wanted}' of scale set '{ledger.scope.name}' was not found.",
    )


def instance_place(parts: ArmParts, call: Call) -> Place:
    """The instance that a path names. Raises: Saying."""
    ledger = scope(parts, call, arm.SCALE_SETS)
    return Place(ledger, instance_of(ledger, call.names["instance"]))


def _missing(parts: ArmParts, call: Call, kind: str) -> NoReturn:
    group = insist_on_group(parts, call, call.names["group"])
    raise Saying(
        HTTPStatus.NOT_FOUND,
        "ResourceNotFound",
        f"The Resource 'Microsoft.Compute/{kind}/{call.names['name']}' under resource group "
        f"'{group}' was not found.",
    )
