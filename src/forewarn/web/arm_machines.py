"""Virtual machines: those on their own, in availability sets and in cloud services."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Final

from forewarn.core.ledgers import Ledger
from forewarn.core.rights import Right
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import Machine, Scope, ScopeKind
from forewarn.errors import Refused
from forewarn.web import arm_declaring, arm_places, arm_verbs
from forewarn.web.arm_calls import (
    ALL_COMPUTE,
    COMPUTE,
    ArmParts,
    Handler,
    Saying,
    Shown,
    listed,
    nothing,
    route,
    shown,
    wants_view,
)
from forewarn.web.arm_places import Place
from forewarn.web.arm_verbs import Targets
from forewarn.web.calls import Answer, Call
from forewarn.web.routes import Route
from forewarn.wire import arm
from forewarn.wire.arm_requests import Wanted

VERBS: Final = (
    "restart",
    "redeploy",
    "powerOff",
    "start",
    "deallocate",
    "reimage",
    arm_verbs.REAPPLY,
    arm_verbs.MAINTAIN,
)


def routes(parts: ArmParts) -> tuple[Route, ...]:
    """What is asked of virtual machines."""
    many = f"{COMPUTE}/{arm.MACHINES}"
    one = f"{many}/{{name}}"
    rows: list[tuple[str, str, Right, Handler]] = [
        ("GET", f"{ALL_COMPUTE}/{arm.MACHINES}", Right.READ, _list),
        ("GET", many, Right.READ, _list),
        ("GET", one, Right.READ, _get),
        ("PUT", one, Right.OWN, _put),
        ("PATCH", one, Right.OWN, _patch),
        ("DELETE", one, Right.OWN, _delete),
        ("GET", f"{one}/instanceView", Right.READ, _view),
        ("POST", f"{one}/simulateEviction", Right.OWN, _evict),
        *(("POST", f"{one}/{verb}", Right.OWN, partial(_act, verb)) for verb in VERBS),
    ]
    return tuple(route(parts, *row) for row in rows)


def found(parts: ArmParts, call: Call, group: str | None) -> Iterator[Shown]:
    """The virtual machines of a group, or of all that concern the caller, in the order of names."""
    with_view = wants_view(call)
    for ledger in arm_places.ledgers(parts, call, group):
        if ledger.scope.kind is ScopeKind.SCALE_SET:
            continue
        for machine in sorted(arm.machines(ledger.scope), key=lambda m: m.name.lower()):
            show = partial(arm.virtual_machine, parts.names, ledger, machine, with_view=with_view)
            # A blank sorts before whatever a name goes on with, as ids of scopes are sorted.
            yield f"{ledger.scope.id} {machine.name.lower()}", show


def _list(parts: ArmParts, call: Call) -> Answer:
    return listed(call, found(parts, call, arm_places.listed_group(parts, call)))


def _get(parts: ArmParts, call: Call) -> Answer:
    place = arm_places.machine(parts, call)
    return shown(_form(parts, place.ledger, place.machine, with_view=wants_view(call)))


def _view(parts: ArmParts, call: Call) -> Answer:
    place = arm_places.machine(parts, call)
    return shown(arm.instance_view(place.ledger, place.machine))


def _act(verb: str, parts: ArmParts, call: Call) -> Answer:
    return arm_verbs.act(parts, call, _targets(parts, arm_places.machine(parts, call)), verb)


def _evict(parts: ArmParts, call: Call) -> Answer:
    place = arm_places.machine(parts, call)
    return arm_verbs.evict(parts, call, place.ledger, place.machine)


def _delete(parts: ArmParts, call: Call) -> Answer:
    place = arm_places.find_machine(parts, call.names["group"], call.names["name"])
    if place is None:
        return nothing(HTTPStatus.NO_CONTENT)
    return arm_verbs.act(parts, call, _targets(parts, place), arm_verbs.DELETE)


def _targets(parts: ArmParts, place: Place) -> Targets:
    resource = parts.names.machine(place.ledger.scope, place.machine)
    return Targets(place.ledger, (place.machine,), resource)


# -- made and changed ------------------------------------------------------------------------


def _put(parts: ArmParts, call: Call) -> Answer:
    wanted = Wanted(call.body)
    place = arm_places.find_machine(parts, call.names["group"], call.names["name"])
    if place is not None:
        return _amended(parts, call, place, wanted)
    if wanted.availability_set is None:
        ledger = _alone(parts, call, wanted)
    else:
        ledger = _in_a_set(parts, call, wanted, wanted.availability_set)
    machine = ledger.scope.machine(call.names["name"])
    assert machine is not None, "it was declared just now"
    return shown(_form(parts, ledger, machine), HTTPStatus.CREATED)


def _patch(parts: ArmParts, call: Call) -> Answer:
    place = arm_places.machine(parts, call)
    return _amended(parts, call, place, Wanted(call.body))


def _amended(parts: ArmParts, call: Call, place: Place, wanted: Wanted) -> Answer:
    scope, machine = place.ledger.scope, place.machine
    if machine.name in arm.leaving(place.ledger):
        raise Refused(f"{machine.name} is being deleted: wait until that is over")
    arm_declaring.refuse_changes(scope, wanted)
    arm_declaring.refuse_move(scope, wanted)
    # The machine first: what a fleet file declared is not changed here, and then nothing is.
    arm_declaring.amend_machine(parts, place.ledger, machine, wanted, call.actor)
    arm_declaring.amend_policies(parts, place.ledger, wanted, call.actor)
    now = arm_places.machine(parts, call)
    return shown(_form(parts, now.ledger, now.machine))


def _alone(parts: ArmParts, call: Call, wanted: Wanted) -> Ledger:
    """Make a machine, and the scope that it is alone in."""
    group, name = call.names["group"], call.names["name"]
    machine = arm_declaring.new_machine(parts, name, wanted)
    scope = Scope(
        name=name,
        resource_group=arm_places.group_name(parts, call, group) or group,
        kind=ScopeKind.STANDALONE,
        enabling=parts.enabling,
        spot=bool(wanted.spot),
        location=wanted.location or "",
        machines=(machine,),
    )
    declared = Declaration(_owned(scope, wanted), arm_declaring.settled(machine, wanted))
    return arm_declaring.open_scope(parts, declared, call.actor)


def _in_a_set(parts: ArmParts, call: Call, wanted: Wanted, set_id: str) -> Ledger:
    """Make a machine in an availability set."""
    group = call.names["group"]
    scope = arm_declaring.scope_of_set(group, set_id)
    known = parts.desk.board.ledger(scope)
    is_set = known is not None and known.scope.kind is ScopeKind.AVAILABILITY_SET
    if known is None or not is_set or not arm_places.is_shown(known):
        raise Saying(
            HTTPStatus.BAD_REQUEST, "InvalidParameter", f"there is no availability set {scope}"
        )
    machine = arm_declaring.new_machine(parts, call.names["name"], wanted)
    arm_declaring.refuse_changes(known.scope, wanted)
    pinned = arm_declaring.settled(machine, wanted)
    return arm_declaring.amend_scope(
        parts,
        scope,
        lambda ledger: Declaration(
            _owned(arm_declaring.redeclared(ledger, machine), wanted), pinned
        ),
        call.actor,
    )


def _owned(scope: Scope, wanted: Wanted) -> Scope:
    return replace(scope, owner=wanted.policies(scope))


def _form(
    parts: ArmParts, ledger: Ledger, machine: Machine, *, with_view: bool = False
) -> arm.Json:
    return arm.virtual_machine(parts.names, ledger, machine, with_view=with_view)
