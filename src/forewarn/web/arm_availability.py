"""Availability sets, and the one kind of template that makes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus

from forewarn.core.ledgers import Ledger
from forewarn.core.rights import Right
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import UPDATE_DOMAINS_DEFAULT, Origin, Scope, ScopeKind
from forewarn.errors import Malformed, Refused
from forewarn.web import arm_declaring, arm_places
from forewarn.web.arm_calls import (
    ALL_COMPUTE,
    COMPUTE,
    GROUP,
    ArmParts,
    Handler,
    Saying,
    Shown,
    listed,
    nothing,
    route,
    shown,
)
from forewarn.web.calls import Answer, Call
from forewarn.web.routes import Route
from forewarn.wire import arm, arm_kept
from forewarn.wire.arm_requests import OURS_OF_A_SET, Wanted


def routes(parts: ArmParts) -> tuple[Route, ...]:
    """What is asked of availability sets."""
    many = f"{COMPUTE}/{arm.AVAILABILITY_SETS}"
    one = f"{many}/{{name}}"
    deployment = f"{GROUP}/providers/Microsoft.Resources/deployments/{{deployment}}"
    rows: list[tuple[str, str, Right, Handler]] = [
        ("GET", f"{ALL_COMPUTE}/{arm.AVAILABILITY_SETS}", Right.READ, _list),
        ("GET", many, Right.READ, _list),
        ("GET", one, Right.READ, _get),
        ("PUT", one, Right.OWN, _put),
        ("PATCH", one, Right.OWN, _patch),
        ("DELETE", one, Right.OWN, _delete),
        ("PUT", deployment, Right.OWN, _deploy),
    ]
    return tuple(route(parts, *row) for row in rows)


def found(parts: ArmParts, call: Call, group: str | None) -> Iterator[Shown]:
    """The availability sets of a group, or of all that concern the caller, in the order of names."""
    for ledger in arm_places.ledgers(parts, call, group):
        if ledger.scope.kind is ScopeKind.AVAILABILITY_SET:
            yield ledger.scope.id, partial(arm.availability_set, parts.names, ledger)


def _list(parts: ArmParts, call: Call) -> Answer:
    return listed(call, found(parts, call, arm_places.listed_group(parts, call)))


def _get(parts: ArmParts, call: Call) -> Answer:
    return shown(arm.availability_set(parts.names, _found(parts, call)))


def _found(parts: ArmParts, call: Call) -> Ledger:
    return arm_places.scope(parts, call, arm.AVAILABILITY_SETS)


def _put(parts: ArmParts, call: Call) -> Answer:
    ledger = _declared(parts, call, call.names["name"], Wanted(call.body))
    # Never 201: clients of this call take nothing else.
    return shown(arm.availability_set(parts.names, ledger))


def _patch(parts: ArmParts, call: Call) -> Answer:
    ledger = _amended(parts, call, _found(parts, call), Wanted(call.body))
    return shown(arm.availability_set(parts.names, ledger))


def _delete(parts: ArmParts, call: Call) -> Answer:
    group, name = call.names["group"], call.names["name"]
    ledger = arm_places.find_scope(parts, group, name, ScopeKind.AVAILABILITY_SET)
    if ledger is None:
        return nothing(HTTPStatus.NO_CONTENT)
    scope = ledger.scope
    there = arm.machines(scope)
    if there:
        names = ", ".join(machine.name for machine in there)
        raise Refused(f"availability set '{scope.name}' has VMs: delete {names} first")
    if scope.origin is not Origin.API:
        raise Refused(f"availability set '{scope.name}' is the fleet file's: take it out there")
    parts.registrar.withdraw(scope.id, Origin.API, call.actor, ledger.revision)
    return nothing()


def _declared(parts: ArmParts, call: Call, name: str, wanted: Wanted) -> Ledger:
    group = call.names["group"]
    known = arm_places.find_scope(parts, group, name, ScopeKind.AVAILABILITY_SET)
    if known is not None:
        return _amended(parts, call, known, wanted)
    scope = Scope(
        name=name,
        resource_group=arm_places.group_name(parts, call, group) or group,
        kind=ScopeKind.AVAILABILITY_SET,
        enabling=parts.enabling,
        location=wanted.location or "",
        update_domains=_count(wanted, UPDATE_DOMAINS_DEFAULT),
        kept=arm_kept.keep("", wanted.sent, OURS_OF_A_SET),
    )
    owned = replace(scope, owner=wanted.policies(scope))
    return arm_declaring.open_scope(parts, Declaration(owned), call.actor)


def _amended(parts: ArmParts, call: Call, ledger: Ledger, wanted: Wanted) -> Ledger:
    scope = ledger.scope
    arm_declaring.refuse_changes(scope, wanted)
    ledger = arm_declaring.amend_policies(
        parts,
        ledger,
        wanted,
        call.actor,
        lambda kept: arm_kept.keep(kept, wanted.sent, OURS_OF_A_SET),
    )
    count = _count(wanted, scope.update_domains)
    if count == scope.update_domains:
        return ledger
    return arm_declaring.amend_scope(
        parts,
        scope.id,
        lambda found: Declaration(arm_declaring.redeclared(found, update_domains=count)),
        call.actor,
    )


def _count(wanted: Wanted, otherwise: int) -> int:
    return otherwise if wanted.update_domains is None else wanted.update_domains


# -- by a template, as `az vm availability-set create` does it --------------------------------


def _deploy(parts: ArmParts, call: Call) -> Answer:
    """Make what a template says, which is availability sets in so many words."""
    resources = _resources(arm_kept.load_object(call.body))
    wanted = [(_name(resource), Wanted(arm.dump(resource))) for resource in resources]
    made = [_declared(parts, call, name, want) for name, want in wanted]
    group = call.names["group"]
    name = call.names["deployment"]
    ids = [parts.names.compute(m.scope, arm.AVAILABILITY_SETS, m.scope.name) for m in made]
    form: arm.Json = {
        "id": f"{parts.names.group(group)}/providers/Microsoft.Resources/deployments/{name}",
        "name": name,
        "type": "Microsoft.Resources/deployments",
        "properties": {
            "provisioningState": "Succeeded",
            "mode": "Incremental",
            "outputs": {},
            "outputResources": [{"id": resource} for resource in ids],
        },
    }
    return shown(form, HTTPStatus.CREATED)


def _resources(body: Mapping[str, object]) -> list[Mapping[str, object]]:
    properties = body.get("properties")
    template = properties.get("template") if isinstance(properties, dict) else None
    resources = template.get("resources") if isinstance(template, dict) else None
    if not isinstance(resources, list) or not all(isinstance(each, dict) for each in resources):
        raise Malformed("the body has no properties.template.resources")
    wanted = f"{arm.COMPUTE}/{arm.AVAILABILITY_SETS}".lower()
    for resource in resources:
        kind = resource.get("type")
        if not isinstance(kind, str) or kind.lower() != wanted:
            raise Saying(
                HTTPStatus.BAD_REQUEST,
                "InvalidTemplate",
                f"templates can have availability sets only, not {kind!r}",
            )
    return resources


def _name(resource: Mapping[str, object]) -> str:
    name = resource.get("name")
    if not isinstance(name, str):
        raise Malformed("a resource of the template has no name")
    return name
