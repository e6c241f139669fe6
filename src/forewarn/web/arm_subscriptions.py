"""The subscription, what is in it by group, place and kind, and its long-running operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from operator import itemgetter

from forewarn.core.operations import OperationStatus
from forewarn.core.rights import Right
from forewarn.errors import Unknown
from forewarn.web import arm_availability, arm_machines, arm_places, arm_scale_sets
from forewarn.web.arm_calls import (
    ALL_COMPUTE,
    GROUP,
    RETRY_AFTER,
    SUBSCRIPTION,
    ArmParts,
    Handler,
    Shown,
    accepted,
    fault,
    listed,
    nothing,
    query,
    route,
    shown,
)
from forewarn.web.calls import Answer, Call
from forewarn.web.routes import Route
from forewarn.wire import arm, arm_frames


def routes(parts: ArmParts) -> tuple[Route, ...]:
    """What is asked of the subscription as a whole."""
    rows: list[tuple[str, str, Right, Handler]] = [
        ("GET", "/subscriptions", Right.READ, _subscriptions),
        ("GET", SUBSCRIPTION, Right.READ, _subscription),
        ("GET", f"{SUBSCRIPTION}/locations", Right.READ, _locations),
        ("GET", f"{SUBSCRIPTION}/resourceGroups", Right.READ, _groups),
        ("GET", GROUP, Right.READ, _group),
        ("GET", f"{SUBSCRIPTION}/resources", Right.READ, _resources),
        ("GET", f"{GROUP}/resources", Right.READ, _resources),
        ("GET", f"{SUBSCRIPTION}/providers", Right.READ, _providers),
        ("GET", ALL_COMPUTE, Right.READ, _provider),
        (
            "GET",
            f"{ALL_COMPUTE}/locations/{{place}}/operations/{{operation}}",
            Right.READ,
            _operation,
        ),
    ]
    return tuple(route(parts, *row) for row in rows)


def _subscriptions(parts: ArmParts, _call: Call) -> Answer:
    return shown({"value": [arm_frames.subscription(parts.names, parts.tenant_id)]})


def _subscription(parts: ArmParts, _call: Call) -> Answer:
    return shown(arm_frames.subscription(parts.names, parts.tenant_id))


def _locations(parts: ArmParts, call: Call) -> Answer:
    return shown(
        {"value": [arm_frames.region(parts.names, where) for where in _regions(parts, call)]}
    )


def _regions(parts: ArmParts, call: Call) -> list[str]:
    known = {arm.location(ledger.scope) for ledger in arm_places.ledgers(parts, call)}
    return sorted(known | {arm.LOCATION_DEFAULT})


def _groups(parts: ArmParts, call: Call) -> Answer:
    known: dict[str, Shown] = {
        group: (group, partial(arm_frames.resource_group, parts.names, group, arm.LOCATION_DEFAULT))
        for group in call.caller.groups
    }
    for ledger in arm_places.ledgers(parts, call):
        key = ledger.scope.resource_group.lower()
        where = arm.location(ledger.scope)
        name = ledger.scope.resource_group
        known[key] = (key, partial(arm_frames.resource_group, parts.names, name, where))
    return listed(call, sorted(known.values(), key=itemgetter(0)))


def _group(parts: ArmParts, call: Call) -> Answer:
    group = arm_places.insist_on_group(parts, call, call.names["group"])
    first = next(arm_places.ledgers(parts, call, group), None)
    where = arm.LOCATION_DEFAULT if first is None else arm.location(first.scope)
    return shown(arm_frames.resource_group(parts.names, group, where))


def _resources(parts: ArmParts, call: Call) -> Answer:
    asked = query(call).get("$filter", "")
    wanted = re.search(r"resourceType\s+eq\s+'([^']+)'", asked, re.IGNORECASE)
    kind = None if wanted is None else wanted[1].lower()
    return listed(call, _all(parts, call, arm_places.listed_group(parts, call), kind))


def _all(parts: ArmParts, call: Call, group: str | None, kind: str | None) -> Iterator[Shown]:
    """Resources of all kinds, each kind in its order."""
    finders = {
        arm.AVAILABILITY_SETS: arm_availability.found,
        arm.SCALE_SETS: arm_scale_sets.found,
        arm.MACHINES: arm_machines.found,
    }
    for number, (name, find) in enumerate(finders.items()):
        if kind in (None, f"{arm.COMPUTE}/{name}".lower()):
            for key, show in find(parts, call, group):
                yield f"{number} {key}", partial(_summarized, show)


def _summarized(show: Callable[[], arm.Json]) -> arm.Json:
    return arm.summary(show())


def _providers(parts: ArmParts, call: Call) -> Answer:
    return shown({"value": [arm_frames.provider(parts.names, _regions(parts, call))]})


def _provider(parts: ArmParts, call: Call) -> Answer:
    return shown(arm_frames.provider(parts.names, _regions(parts, call)))


def _operation(parts: ArmParts, call: Call) -> Answer:
    """How far an operation is; or, where its result will be, whether it is there."""
    wanted = call.names["operation"]
    operation = parts.operations.find(wanted)
    if not call.sees(operation.group):
        # Whose it is, is nobody else's business.
        raise Unknown(f"no operation {wanted} is known here")
    is_monitor = query(call).get("monitor", "").lower() == "true"
    if operation.status is OperationStatus.IN_PROGRESS:
        if is_monitor:
            return accepted(parts, call, operation)
        return shown(arm_frames.operation(operation), HTTPStatus.OK, RETRY_AFTER)
    if not is_monitor:
        return shown(arm_frames.operation(operation))
    ending = operation.ending
    assert ending is not None, "what is not in progress has ended"
    if ending.status is OperationStatus.SUCCEEDED:
        return nothing()
    return fault(HTTPStatus.CONFLICT, ending.code, ending.message)
