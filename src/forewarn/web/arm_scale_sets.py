"""Scale sets: records of the fleet whose machines come and go by number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Final

from forewarn.core.ledgers import Ledger
from forewarn.core.names import MachineName
from forewarn.core.rights import Right
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import Machine, Origin, Scope, ScopeKind
from forewarn.errors import Refused
from forewarn.web import arm_declaring, arm_places, arm_verbs
from forewarn.web.arm_calls import (
    ALL_COMPUTE,
    COMPUTE,
    ArmParts,
    Handler,
    Shown,
    accepted,
    listed,
    nothing,
    progressing,
    route,
    shown,
)
from forewarn.web.arm_verbs import Targets
from forewarn.web.calls import Answer, Call
from forewarn.web.routes import Route
from forewarn.wire import arm, arm_kept, instance
from forewarn.wire.arm_requests import OURS_OF_A_SCALE_SET, Wanted, check_name, instance_ids

VERBS: Final = (
    "restart",
    "redeploy",
    "powerOff",
    "start",
    "deallocate",
    "reimage",
    "reimageall",
    arm_verbs.REAPPLY,
    arm_verbs.MAINTAIN,
)


def routes(parts: ArmParts) -> tuple[Route, ...]:
    """What is asked of scale sets as a whole, or of several of their instances."""
    many = f"{COMPUTE}/{arm.SCALE_SETS}"
    one = f"{many}/{{name}}"
    rows: list[tuple[str, str, Right, Handler]] = [
        ("GET", f"{ALL_COMPUTE}/{arm.SCALE_SETS}", Right.READ, _list),
        ("GET", many, Right.READ, _list),
        ("GET", one, Right.READ, _get),
        ("PUT", one, Right.OWN, _put),
        ("PATCH", one, Right.OWN, _patch),
        ("DELETE", one, Right.OWN, _delete),
        ("GET", f"{one}/instanceView", Right.READ, _view),
        ("POST", f"{one}/delete", Right.OWN, _delete_instances),
        *(("POST", f"{one}/{verb}", Right.OWN, partial(_act, verb)) for verb in VERBS),
    ]
    return tuple(route(parts, *row) for row in rows)


def found(parts: ArmParts, call: Call, group: str | None) -> Iterator[Shown]:
    """The scale sets of a group, or of all that concern the caller, in the order of names."""
    for ledger in arm_places.ledgers(parts, call, group):
        if ledger.scope.kind is ScopeKind.SCALE_SET:
            yield ledger.scope.id, partial(arm.scale_set, parts.names, ledger)


def _list(parts: ArmParts, call: Call) -> Answer:
    return listed(call, found(parts, call, arm_places.listed_group(parts, call)))


def _get(parts: ArmParts, call: Call) -> Answer:
    return shown(arm.scale_set(parts.names, _found(parts, call)))


def _view(parts: ArmParts, call: Call) -> Answer:
    return shown(arm.scale_set_view(_found(parts, call)))


def _found(parts: ArmParts, call: Call) -> Ledger:
    return arm_places.scope(parts, call, arm.SCALE_SETS)


def _act(verb: str, parts: ArmParts, call: Call) -> Answer:
    ledger = _found(parts, call)
    asked = instance_ids(call.body)
    machines = arm_verbs.fit(ledger, verb) if asked is None else _chosen(ledger, asked)
    return arm_verbs.act(parts, call, _targets(parts, ledger, machines), verb)


def _delete_instances(parts: ArmParts, call: Call) -> Answer:
    ledger = _found(parts, call)
    asked = instance_ids(call.body)
    machines = arm.machines(ledger.scope) if asked is None else _chosen(ledger, asked)
    targets = _targets(parts, ledger, machines)
    return arm_verbs.act(parts, call, targets, arm_verbs.DELETE)


def _chosen(ledger: Ledger, asked: tuple[str, ...]) -> tuple[Machine, ...]:
    """The instances meant; a star stands for all, as az sends it."""
    if asked == ("*",):
        return arm.machines(ledger.scope)
    return tuple(arm_places.instance_of(ledger, one) for one in asked)


def _targets(parts: ArmParts, ledger: Ledger, machines: tuple[Machine, ...]) -> Targets:
    resource = parts.names.compute(ledger.scope, arm.SCALE_SETS, ledger.scope.name)
    return Targets(ledger, machines, resource)


def _delete(parts: ArmParts, call: Call) -> Answer:
    """Delete all instances; with the last of them the scale set is gone."""
    group, name = call.names["group"], call.names["name"]
    ledger = arm_places.find_scope(parts, group, name, ScopeKind.SCALE_SET)
    if ledger is None:
        return nothing(HTTPStatus.NO_CONTENT)
    # Said first: whatever happens to the last instance, it is known what was wanted.
    parts.registrar.keep(ledger.scope.id, None, _marked, call.actor)
    targets = _targets(parts, ledger, arm.machines(ledger.scope))
    try:
        operation = arm_verbs.begin(parts, call, targets, arm_verbs.DELETE)
    except Refused:
        # It is not to go: its last instance must not take it along one day.
        parts.registrar.keep(ledger.scope.id, None, _unmarked, call.actor)
        raise
    return accepted(parts, call, operation)


def _marked(kept: str) -> str:
    """What is kept, with the word that the scale set is to go."""
    mark = {"properties": {"forewarn": {"deleting": True}}}
    return json.dumps(arm_kept.overlaid(arm_kept.kept_members(kept), mark))


def _unmarked(kept: str) -> str:
    return arm_kept.keep(kept, {}, [("properties", "forewarn", "deleting")])


# -- made and changed ------------------------------------------------------------------------


def _put(parts: ArmParts, call: Call) -> Answer:
    wanted = Wanted(call.body)
    ledger = arm_places.find_scope(
        parts, call.names["group"], call.names["name"], ScopeKind.SCALE_SET
    )
    if ledger is not None:
        return _amended(parts, call, ledger, wanted)
    ledger = _made(parts, call, wanted)
    return shown(arm.scale_set(parts.names, ledger), HTTPStatus.CREATED)


def _patch(parts: ArmParts, call: Call) -> Answer:
    return _amended(parts, call, _found(parts, call), Wanted(call.body))


def _made(parts: ArmParts, call: Call, wanted: Wanted) -> Ledger:
    group, name = call.names["group"], call.names["name"]
    scope = Scope(
        name=name,
        resource_group=arm_places.group_name(parts, call, group) or group,
        kind=ScopeKind.SCALE_SET,
        enabling=parts.enabling,
        spot=bool(wanted.spot),
        location=wanted.location or "",
        kept=arm_kept.keep("", wanted.sent, OURS_OF_A_SCALE_SET),
    )
    machines = tuple(
        _instance(parts, scope, number, wanted.size or "", wanted)
        for number in range(wanted.capacity or 0)
    )
    scope = replace(scope, machines=machines, owner=wanted.policies(scope))
    return arm_declaring.open_scope(parts, Declaration(scope), call.actor)


def _amended(parts: ArmParts, call: Call, ledger: Ledger, wanted: Wanted) -> Answer:
    """Change a scale set; it grows at once, and becomes smaller by an operation."""
    arm_declaring.refuse_changes(ledger.scope, wanted)
    staying = arm.staying(ledger)
    capacity = len(staying) if wanted.capacity is None else wanted.capacity
    if capacity > len(staying):
        ledger = arm_declaring.amend_scope(
            parts,
            ledger.scope.id,
            lambda found: Declaration(_grown(parts, found, wanted, capacity)),
            call.actor,
        )
    ledger = arm_declaring.amend_policies(
        parts,
        ledger,
        wanted,
        call.actor,
        lambda kept: arm_kept.keep(kept, wanted.sent, OURS_OF_A_SCALE_SET),
    )
    # As Azure does where nothing else is said: the newest go first.
    going = staying[capacity:]
    if not going:
        return shown(arm.scale_set(parts.names, ledger))
    operation = arm_verbs.begin(parts, call, _targets(parts, ledger, going), arm_verbs.DELETE)
    return progressing(parts, call, operation, arm.scale_set(parts.names, _found(parts, call)))


def _grown(parts: ArmParts, ledger: Ledger, wanted: Wanted, capacity: int) -> Scope:
    """The scale set with new instances; no number of one that is known is given again."""
    scope = ledger.scope
    missing = capacity - len(arm.staying(ledger))
    numbers = [instance.instance_id(scope, machine) for machine in scope.machines]
    first = max((int(number) for number in numbers if number.isdecimal()), default=-1) + 1
    size = wanted.size or arm.size(scope)
    new = (_instance(parts, scope, first + n, size, wanted) for n in range(missing))
    return arm_declaring.redeclared(ledger, *new)


def _instance(parts: ArmParts, scope: Scope, number: int, size: str, wanted: Wanted) -> Machine:
    """A new instance: what is sent for the set as a whole is kept there, not with each of them."""
    zones = wanted.zones or ("",)
    return Machine(
        name=MachineName(check_name("VM", f"{scope.name}_{number}")),
        origin=Origin.API,
        vm_id=parts.desk.ids.event_id().lower(),
        size=size,
        zone=zones[number % len(zones)],
    )
