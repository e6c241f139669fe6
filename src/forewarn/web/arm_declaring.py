"""From what an owner sends to the fleet's records: machines and scopes made and changed by PUT.

What a fleet file declared is the file's to change; of that, owners set policies here, and have
kept for them what we do not understand.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from forewarn.core import scopes
from forewarn.core.journal import Actor
from forewarn.core.ledgers import Ledger
from forewarn.core.names import HostName, MachineName, Revision, ScopeId, scope_id
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import Machine, Origin, Scope
from forewarn.errors import Conflict, Unknown
from forewarn.web.arm_calls import ArmParts, Saying
from forewarn.web.arm_places import is_shown
from forewarn.wire import arm, arm_kept
from forewarn.wire.arm_requests import (
    OURS_OF_A_MACHINE,
    Wanted,
    check_name,
    normal_location,
)

ATTEMPTS_MAX: Final = 10


def open_scope(parts: ArmParts, declared: Declaration, actor: Actor) -> Ledger:
    """Make a new scope. Raises: Refused, Conflict, Unavailable."""
    scope = declared.scope
    check_name("resource group", scope.resource_group)
    check_name("resource", scope.name)
    before = stored(parts, scope.id)
    if before is not None and is_shown(before):
        raise Saying(
            HTTPStatus.CONFLICT,
            "Conflict",
            f"'{scope.name}' is the name of a {before.scope.kind.value} in resource group "
            f"'{scope.resource_group}': choose another one",
        )
    if before is not None and before.scope.origin is Origin.API:
        # What is left of one that was deleted: its policies died with it.
        before = parts.registrar.withdraw(scope.id, Origin.API, actor, before.revision)
    revision = Revision(0) if before is None else before.revision
    return parts.registrar.declare(declared, Origin.API, actor, revision)


def amend_scope(
    parts: ArmParts, scope: ScopeId, change: Callable[[Ledger], Declaration], actor: Actor
) -> Ledger:
    """Declare a scope of this API anew; decided again if somebody else changed it meanwhile.

    Raises: Refused, Conflict, Unavailable.
    """
    for _ in range(ATTEMPTS_MAX):
        ledger = parts.registrar.books.load(scope)
        declared = change(ledger)
        if declared.scope == ledger.scope:
            return ledger
        with suppress(Conflict):
            return parts.registrar.declare(declared, Origin.API, actor, ledger.revision)
    raise Conflict([scope])


def amend_policies(
    parts: ArmParts,
    ledger: Ledger,
    wanted: Wanted,
    actor: Actor,
    keep: Callable[[str], str] = str,
) -> Ledger:
    """Set what a scope's owner wants to be in force, and what is kept for the owner.

    Raises: Refused, Unavailable.
    """
    scope = ledger.scope
    if wanted.policies(scope) == scope.owner and keep(scope.kept) == scope.kept:
        return ledger
    return parts.registrar.amend_policies(
        scope.id, lambda owner: wanted.policies(replace(scope, owner=owner)), actor, keep
    )


def stored(parts: ArmParts, scope: ScopeId) -> Ledger | None:
    """A scope's ledger; None for one that nobody ever declared."""
    try:
        return parts.registrar.books.load(scope)
    except Unknown:
        return None


def redeclared(ledger: Ledger, *changed: Machine, **settings: object) -> Scope:
    """A scope with some machines in the place of those of the same name, or at its end."""
    wanted = {machine.name.lower(): machine for machine in changed}
    machines = [wanted.pop(machine.name.lower(), machine) for machine in arm.machines(ledger.scope)]
    return replace(ledger.scope, machines=(*machines, *wanted.values()), **settings)  # type: ignore[arg-type] # by name


# -- machines --------------------------------------------------------------------------------


def new_machine(parts: ArmParts, name: str, wanted: Wanted) -> Machine:
    """A machine that was not there before. Raises: Malformed."""
    machine = Machine(
        name=MachineName(check_name("VM", name)),
        origin=Origin.API,
        # Its own: one of the same name that was deleted is another machine.
        vm_id=parts.desk.ids.event_id().lower(),
    )
    return amended(machine, wanted)


def amended(machine: Machine, wanted: Wanted) -> Machine:
    """A machine as its owner wants it. Raises: Malformed."""
    ours = wanted.ours
    host = machine.host if wanted.host is None else HostName(wanted.host) or None
    return replace(
        machine,
        tags=machine.tags if wanted.tags is None else wanted.tags,
        size=wanted.size or machine.size,
        zone=wanted.zones[0] if wanted.zones else machine.zone,
        addresses=machine.addresses if wanted.addresses is None else wanted.addresses,
        host=host,
        update_domain=machine.update_domain if ours.update_domain is None else ours.update_domain,
        kept=_kept(machine.kept, wanted),
    )


def _kept(kept: str, wanted: Wanted) -> str:
    return arm_kept.keep(kept, wanted.sent, OURS_OF_A_MACHINE)


def settled(machine: Machine, wanted: Wanted) -> frozenset[MachineName]:
    """The machine, if its owner said which update domain it is in."""
    given = wanted.ours.update_domain
    return frozenset() if given is None else frozenset({machine.name})


def amend_machine(
    parts: ArmParts, ledger: Ledger, machine: Machine, wanted: Wanted, actor: Actor
) -> Ledger:
    """Change a machine as far as its owner may. Raises: Malformed, Refused, Unavailable."""
    changed = amended(machine, wanted)
    if replace(changed, kept=machine.kept) != machine:
        return amend_scope(
            parts,
            ledger.scope.id,
            lambda found: Declaration(
                redeclared(found, amended(_still(found, machine), wanted)), settled(machine, wanted)
            ),
            actor,
        )
    if changed.kept != machine.kept:
        return parts.registrar.keep(
            ledger.scope.id, machine.name, lambda kept: _kept(kept, wanted), actor
        )
    return ledger


def _still(ledger: Ledger, machine: Machine) -> Machine:
    found = ledger.scope.machine(machine.name)
    if found is None or not arm.is_there(found):
        raise Unknown(f"{machine.name} was deleted meanwhile")
    return found


# -- what cannot be changed ------------------------------------------------------------------


def refuse_changes(scope: Scope, wanted: Wanted) -> None:
    """Refuse what is settled when a resource is made, and policies that cannot be.

    Raises: Refused.
    """
    if wanted.location not in (None, normal_location(arm.location(scope))):
        raise Saying(
            HTTPStatus.CONFLICT,
            "InvalidResourceLocation",
            f"the resource is in location '{arm.location(scope)}' and cannot be moved to "
            f"'{wanted.location}'",
        )
    if wanted.spot not in (None, scope.spot):
        raise _unchangeable("priority")
    scopes.check_owner(replace(scope, owner=wanted.policies(scope)))


def refuse_move(scope: Scope, wanted: Wanted) -> None:
    """Refuse to take a machine from one availability set to another. Raises: Saying."""
    wanted_id = wanted.availability_set
    if wanted_id is not None and scope_of_set(scope.resource_group, wanted_id) != scope.id:
        raise _unchangeable("availabilitySet.id")


def scope_of_set(group: str, resource_id: str) -> ScopeId:
    """The scope that an availability set's resource id means, which must be of the group.

    Raises: Saying.
    """
    parts = [part for part in resource_id.split("/") if part]
    lowered = [part.lower() for part in parts]
    shape = ("subscriptions", "resourcegroups", "providers", "availabilitysets")
    if len(parts) != 8 or (lowered[0], lowered[2], lowered[4], lowered[6]) != shape:  # noqa: PLR2004 - 4 pairs
        raise Saying(
            HTTPStatus.BAD_REQUEST,
            "InvalidParameter",
            f"'{resource_id[:300]}' is no id of an availability set",
        )
    if lowered[3] != group.lower():
        raise Saying(
            HTTPStatus.BAD_REQUEST,
            "InvalidParameter",
            "a VM and its availability set are of one resource group",
        )
    return scope_id(group, parts[7])


def _unchangeable(what: str) -> Saying:
    return Saying(
        HTTPStatus.CONFLICT,
        "PropertyChangeNotAllowed",
        f"Changing property '{what}' is not allowed.",
    )
