"""Microsoft.Maintenance: scheduled events, acknowledged from outside the machines.

Equal to a guest's approval, which is one for all machines of the event; several are acknowledged
together, or none of them.
"""

from __future__ import annotations

from http import HTTPStatus

from forewarn.core.ledgers import Ledger
from forewarn.core.rights import Right
from forewarn.errors import UnknownEvent
from forewarn.web import arm_places
from forewarn.web.arm_calls import COMPUTE, ArmParts, Handler, Saying, route, shown
from forewarn.web.calls import Answer, Call
from forewarn.web.routes import Route
from forewarn.wire import arm, arm_frames
from forewarn.wire.arm_requests import event_ids


def routes(parts: ArmParts) -> tuple[Route, ...]:
    """What is asked of scheduled events."""
    many = f"{COMPUTE}/{{kind}}/{{name}}/providers/Microsoft.Maintenance/scheduledevents"
    rows: list[tuple[str, str, Right, Handler]] = [
        ("POST", f"{many}/{{event}}/acknowledge", Right.OWN, _acknowledge),
        ("POST", many, Right.OWN, _acknowledge_several),
    ]
    return tuple(route(parts, *row) for row in rows)


def _acknowledge(parts: ArmParts, call: Call) -> Answer:
    ledger = _concerned(parts, call)
    event = call.names["event"]
    try:
        parts.desk.approve_together(ledger.scope.id, (event,), call.actor)
    except UnknownEvent as error:
        raise Saying(
            HTTPStatus.NOT_FOUND,
            "ScheduledEventNotFound",
            f"no event {event} is known to {call.names['kind']}/{call.names['name']}",
        ) from error
    return _approved()


def _acknowledge_several(parts: ArmParts, call: Call) -> Answer:
    ledger = _concerned(parts, call)
    wanted = event_ids(call.body)
    unknown = [event for event in wanted if ledger.find(event) is None]
    if unknown:
        details: list[arm.Json] = [
            {
                "target": event,
                "code": "ScheduledEventNotFound",
                "message": f"no event {event} is known here",
            }
            for event in unknown
        ]
        text = "some events are not known here, and so none was acknowledged"
        form = arm_frames.fault("ScheduledEventNotFound", text, details)
        return shown(form, HTTPStatus.NOT_FOUND)
    parts.desk.approve_together(ledger.scope.id, wanted, call.actor)
    return _approved()


def _approved() -> Answer:
    return shown({"value": "Successfully approved"})


def _concerned(parts: ArmParts, call: Call) -> Ledger:
    """The scope whose events are meant. Raises: Saying."""
    kind = call.names["kind"].lower()
    if kind == arm.MACHINES.lower():
        return arm_places.machine(parts, call).ledger
    for known in arm_places.KIND_OF:
        if kind == known.lower():
            return arm_places.scope(parts, call, known)
    raise Saying(
        HTTPStatus.BAD_REQUEST,
        "InvalidResourceType",
        f"{call.names['kind']} have no scheduled events",
    )
