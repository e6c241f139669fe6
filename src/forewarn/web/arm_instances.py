"""The instances of a scale set, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from typing import Final

from forewarn.core.ledgers import Ledger
from forewarn.core.rights import Right
from forewarn.core.scopes import Machine, ScopeKind
from forewarn.errors import Refused
from forewarn.web import arm_declaring, arm_places, arm_verbs
from forewarn.web.arm_calls import (
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
from forewarn.wire import arm, instance
from forewarn.wire.arm_requests import Wanted

VERBS: Final = (
    "restart",
    "redeploy",
    "powerOff",
    "start",
    "deallocate",
    "reimage",
    "reimageall",
    arm_verbs.MAINTAIN,
)


def routes(parts: ArmParts) -> tuple[Route, ...]:
    """What is asked of one instance."""
    many = f"{COMPUTE}/{arm.SCALE_SETS}/{{name}}/{arm.MACHINES}"
    one = f"{many}/{{instance}}"
    rows: list[tuple[str, str, Right, Handler]] = [
        ("GET", many, Right.READ, _list),
        ("GET", one, Right.READ, _get),
        ("PUT", one, Right.OWN, _put),
        ("DELETE", one, Right.OWN, _delete),
        ("GET", f"{one}/instanceView", Right.READ, _view),
        ("POST", f"{one}/simulateEviction", Right.OWN, _evict),
        *(("POST", f"{one}/{verb}", Right.OWN, partial(_act, verb)) for verb in VERBS),
    ]
    return tuple(route(parts, *row) for row in rows)


def _list(parts: ArmParts, call: Call) -> Answer:
    ledger = arm_places.scope(parts, call, arm.SCALE_SETS)
    return listed(call, _found(parts, call, ledger))


def _found(parts: ArmParts, call: Call, ledger: Ledger) -> Iterator[Shown]:
    with_view = wants_view(call)
    keys = {_key(ledger, machine): machine for machine in arm.machines(ledger.scope)}
    for key, machine in sorted(keys.items()):
        yield (
            key,
            partial(arm.scale_set_instance, parts.names, ledger, machine, with_view=with_view),
        )


def _key(ledger: Ledger, machine: Machine) -> str:
    """By number, then by name."""
    number = instance.instance_id(ledger.scope, machine)
    return f"{number:0>12}" if number.isdecimal() else f"n{number.lower()}"


def _get(parts: ArmParts, call: Call) -> Answer:
    place = arm_places.instance_place(parts, call)
    return shown(_form(parts, place, with_view=wants_view(call)))


def _view(parts: ArmParts, call: Call) -> Answer:
    place = arm_places.instance_place(parts, call)
    return shown(arm.instance_view(place.ledger, place.machine))


def _act(verb: str, parts: ArmParts, call: Call) -> Answer:
    place = arm_places.instance_place(parts, call)
    return arm_verbs.act(parts, call, _targets(parts, place), verb)


def _evict(parts: ArmParts, call: Call) -> Answer:
    place = arm_places.instance_place(parts, call)
    return arm_verbs.evict(parts, call, place.ledger, place.machine)


def _put(parts: ArmParts, call: Call) -> Answer:
    """Change an instance: scale sets make their instances themselves."""
    wanted = Wanted(call.body)
    place = arm_places.instance_place(parts, call)
    if place.machine.name in arm.leaving(place.ledger):
        raise Refused(f"{place.machine.name} is being deleted: wait until that is over")
    arm_declaring.refuse_changes(place.ledger.scope, wanted)
    arm_declaring.amend_machine(parts, place.ledger, place.machine, wanted, call.actor)
    return shown(_form(parts, arm_places.instance_place(parts, call), with_view=False))


def _delete(parts: ArmParts, call: Call) -> Answer:
    group, name = call.names["group"], call.names["name"]
    ledger = arm_places.find_scope(parts, group, name, ScopeKind.SCALE_SET)
    try:
        place = None if ledger is None else arm_places.instance_place(parts, call)
    except Saying:
        place = None
    if place is None:
        return nothing(HTTPStatus.NO_CONTENT)
    return arm_verbs.act(parts, call, _targets(parts, place), arm_verbs.DELETE)


def _targets(parts: ArmParts, place: Place) -> Targets:
    resource = parts.names.machine(place.ledger.scope, place.machine)
    return Targets(place.ledger, (place.machine,), resource)


def _form(parts: ArmParts, place: Place, *, with_view: bool) -> arm.Json:
    return arm.scale_set_instance(parts.names, place.ledger, place.machine, with_view=with_view)
