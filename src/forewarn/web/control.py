"""The operators' API under /fabric/v1, and the probes beside it.

Each handler is a plain function from a Call to an Answer: no socket, no framework, no waiting.
`web.app` turns HTTP into a Call and an Answer into HTTP, and asks again where an Answer says so.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Final, Literal

from forewarn.core.journal import Entry, What
from forewarn.core.names import ScopeId
from forewarn.core.rights import Right
from forewarn.errors import Malformed, Refused, Unknown, UnknownEvent
from forewarn.web import changes, hosts, journal
from forewarn.web.calls import Answer, Call, reply
from forewarn.web.control_parts import ControlParts as ControlParts
from forewarn.web.control_parts import names as scope_names
from forewarn.web.control_parts import placed_form
from forewarn.web.described import Described, Parameter
from forewarn.web.metrics import CONTENT_TYPE
from forewarn.web.routes import Route
from forewarn.web.rows import Row, routes_of
from forewarn.wire import control as wire
from forewarn.wire import control_forms as forms
from forewarn.wire.control_forms import names_of
from forewarn.wire.principals import CallerForm

_GUID: Final = re.compile(r"\{?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}?")


# -- probes ----------------------------------------------------------------------------------


def _health(_parts: ControlParts, _call: Call) -> Answer:
    return reply(forms.StatusForm(status="ok"))


def _readiness(parts: ControlParts, _call: Call) -> Answer:
    reason = parts.ready()
    if reason is None:
        return reply(forms.StatusForm(status="ok"))
    form = forms.StatusForm(status="not ready", reason=reason)
    return reply(form, status=HTTPStatus.SERVICE_UNAVAILABLE)


def _metrics(parts: ControlParts, _call: Call) -> Answer:
    body = parts.metrics.exposition()
    return Answer(status=HTTPStatus.OK, body=body, content_type=CONTENT_TYPE)


# -- the caller ------------------------------------------------------------------------------


def _caller(_parts: ControlParts, call: Call) -> Answer:
    who = call.caller
    return reply(CallerForm(id=who.id, name=who.name, role=who.role.value, groups=who.groups))


# -- fleet -----------------------------------------------------------------------------------


def _fleet(parts: ControlParts, call: Call) -> Answer:
    scopes = [
        forms.scope_form(ledger)
        for ledger in parts.books.all()
        # A scope that is gone keeps its ledger for the sake of its incarnation.
        if (ledger.scope.machines or ledger.open_events) and call.sees(ledger.scope.resource_group)
    ]
    return reply(forms.FleetForm(scopes=scopes))


def _apply_fleet(parts: ControlParts, call: Call) -> Answer:
    asked = wire.load(wire.FleetFile, call.body)
    changes = parts.apply_fleet(asked.toml, asked.name, call.actor)
    return reply(forms.ChangesForm(changes=changes))


def _reload_fleet(parts: ControlParts, call: Call) -> Answer:
    wire.load(wire.Nothing, call.body)
    return reply(forms.ChangesForm(changes=parts.reload_fleet(call.actor)))


# -- events ----------------------------------------------------------------------------------


def _events(parts: ControlParts, call: Call) -> Answer:
    status = call.asked.get("status", "open")
    if status not in {"open", "all"}:
        raise Malformed(f"status is open or all, not {status[:50]!r}")
    found = [
        placed_form(placed)
        for placed in parts.desk.events()
        if (status == "all" or placed.event.is_open)
        and call.sees(placed.ledger.scope.resource_group)
    ]
    return reply(forms.EventsForm(events=found))


def _announce(parts: ControlParts, call: Call) -> Answer:
    return hosts.announce(parts, call, wire.load(wire.Announcement, call.body))


def _show(parts: ControlParts, call: Call) -> Answer:
    event_id = call.names["event"]
    try:
        placed = parts.desk.event(event_id)
        call.insist(placed.ledger.scope.resource_group)
        return reply(placed_form(placed))
    except UnknownEvent:
        # The whole journal is read only for what can be an event at all.
        if _GUID.fullmatch(event_id) is None:
            raise
    scope, event = parts.journals.event(event_id)
    names = scope_names(parts, scope)
    call.insist(names.resource_group)
    return reply(forms.event_form(event, names))


def _approve(parts: ControlParts, call: Call) -> Answer:
    event = _own_event(parts, call)
    wire.load(wire.Nothing, call.body)
    return reply(placed_form(parts.desk.approve(event, call.actor)))


def _cancel(parts: ControlParts, call: Call) -> Answer:
    event = _own_event(parts, call)
    wire.load(wire.Nothing, call.body)
    return reply(placed_form(parts.desk.cancel(event, call.actor)))


def _postpone(parts: ControlParts, call: Call) -> Answer:
    event = _own_event(parts, call)
    later = wire.load(wire.Postponement, call.body).later
    return reply(placed_form(parts.desk.postpone(event, later, call.actor)))


def _resolve(parts: ControlParts, call: Call) -> Answer:
    result = wire.load(wire.Resolution, call.body).word
    return reply(placed_form(parts.desk.resolve(call.names["event"], result, call.actor)))


def _own_event(parts: ControlParts, call: Call) -> str:
    """The event that the path names, which may be none. Raises: Forbidden if it is not the caller's."""
    event_id = call.names["event"]
    # Whether there is such an event is the desk's to say.
    with suppress(UnknownEvent):
        call.insist(names_of(parts.desk.directory.event(event_id)).resource_group)
    return event_id


# -- upkeep ------------------------------------------------------------------------------------


def _backup(parts: ControlParts, call: Call) -> Answer:
    file = Path(wire.load(wire.Backup, call.body).file)
    _refuse_target(file)
    # Written first: the last entry in a backup says when it was taken.
    parts.books.journalize(
        Entry(
            at=parts.clock.now(),
            scope=ScopeId(""),
            what=What.BACKED_UP,
            actor=call.actor,
            note=f"to {file}",
        )
    )
    parts.backup(file)
    return reply(forms.BackupForm(path=str(file)))


def _refuse_target(file: Path) -> None:
    """Refuse a file that this process cannot make. Raises: Refused."""
    if file.exists():
        raise Refused(f"{file} exists already: name a new file")
    if not file.parent.is_dir():
        raise Refused(
            f"there is no directory {file.parent} on the service's machine: make it first"
        )
    if not os.access(file.parent, os.W_OK):
        raise Refused(f"the service may not write to {file.parent}: name another directory")


def _behave(parts: ControlParts, call: Call) -> Answer:
    asked = wire.load(wire.Behavior, call.body)
    taking = asked.taking
    if parts.behave is None or parts.take is None:
        raise Unknown("this service has no simulated fabric: its VMs behave as they do")
    if asked.behavior is not None:
        parts.behave(asked.machine, asked.behavior)
    if taking is not None:
        parts.take(asked.machine, *taking)
    return reply(forms.NothingForm())


# What a route of events answers, all but two.
_EVENT: Final = {HTTPStatus.OK: forms.EventForm}
_STATUS: Final = Parameter(
    name="status", about="Whether those that ended lately are listed.", kind=Literal["open", "all"]
)
_UNKNOWN: Final = frozenset({HTTPStatus.NOT_FOUND})

ROWS: Final = (
    Row("GET", "/healthz", Right.ANYBODY, _health),
    Row("GET", "/readyz", Right.ANYBODY, _readiness),
    Row("GET", "/metrics", Right.ANYBODY, _metrics),
    Row(
        "GET",
        "/fabric/v1/whoami",
        Right.READ,
        _caller,
        Described(
            name="showCaller",
            summary="Show who is calling: its name, its role and its resource groups.",
            answers={HTTPStatus.OK: CallerForm},
        ),
    ),
    Row(
        "GET",
        "/fabric/v1/fleet",
        Right.READ,
        _fleet,
        Described(
            name="showFleet",
            summary="Show every scope with its policies and VMs.",
            answers={HTTPStatus.OK: forms.FleetForm},
        ),
    ),
    Row(
        "POST",
        "/fabric/v1/fleet",
        Right.OPERATE,
        _apply_fleet,
        Described(
            name="applyFleet",
            summary="Put a fleet file in force.",
            asks=wire.FleetFile,
            answers={HTTPStatus.OK: forms.ChangesForm},
        ),
    ),
    Row(
        "POST",
        "/fabric/v1/fleet/reload",
        Right.OPERATE,
        _reload_fleet,
        Described(
            name="reloadFleet",
            summary="Read the service's own fleet file again.",
            asks=wire.Nothing,
            answers={HTTPStatus.OK: forms.ChangesForm},
        ),
    ),
    Row(
        "GET",
        "/fabric/v1/events",
        Right.READ,
        _events,
        Described(
            name="listEvents",
            summary="List events, oldest first.",
            query=(_STATUS,),
            answers={HTTPStatus.OK: forms.EventsForm},
        ),
    ),
    Row(
        "POST",
        "/fabric/v1/events",
        Right.OPERATE,
        _announce,
        Described(
            name="announce",
            summary="Announce an impact of any type on VMs, or on all VMs of hosts.",
            asks=wire.Announcement,
            answers={HTTPStatus.CREATED: forms.AnnouncedForm},
            refusals=_UNKNOWN,
        ),
    ),
    Row(
        "GET",
        "/fabric/v1/events/{event}",
        Right.READ,
        _show,
        Described(
            name="showEvent",
            summary="Show the record of one event, however long ago it was.",
            answers=_EVENT,
        ),
    ),
    Row(
        "POST",
        "/fabric/v1/events/{event}/approve",
        Right.OWN,
        _approve,
        Described(
            name="approve",
            summary="Let an event start before its notice has run out.",
            asks=wire.Nothing,
            answers=_EVENT,
        ),
    ),
    Row(
        "POST",
        "/fabric/v1/events/{event}/cancel",
        Right.OWN,
        _cancel,
        Described(
            name="cancel",
            summary="Call an event off that has not started.",
            asks=wire.Nothing,
            answers=_EVENT,
        ),
    ),
    Row(
        "POST",
        "/fabric/v1/events/{event}/postpone",
        Right.OWN,
        _postpone,
        Described(
            name="postpone",
            summary="Move an event later, to an instant or by a while.",
            asks=wire.Postponement,
            answers=_EVENT,
        ),
    ),
    Row(
        "POST",
        "/fabric/v1/events/{event}/resolve",
        Right.OPERATE,
        _resolve,
        Described(
            name="resolve",
            summary="End an event that hangs, by an operator's word.",
            asks=wire.Resolution,
            answers=_EVENT,
        ),
    ),
    Row(
        "POST",
        "/fabric/v1/backup",
        Right.OPERATE,
        _backup,
        Described(
            name="backUp",
            summary="Write a backup on the service's machine.",
            asks=wire.Backup,
            answers={HTTPStatus.OK: forms.BackupForm},
        ),
    ),
    Row(
        "POST",
        "/fabric/v1/simulated-fabric",
        Right.OPERATE,
        _behave,
        Described(
            name="behave",
            summary="Tell a VM of the simulated fabric what to do with its orders, or how long those "
            "of one type take.",
            asks=wire.Behavior,
            answers={HTTPStatus.OK: forms.NothingForm},
            refusals=_UNKNOWN,
        ),
    ),
    *hosts.ROWS,
    *journal.ROWS,
    *changes.ROWS,
)


def routes(parts: ControlParts) -> tuple[Route, ...]:
    """What is asked here, each with the right that it takes."""
    # Both count from the start, not from the first question.
    _ = parts.metrics, parts.news
    health, *others = routes_of(ROWS, parts)
    return (replace(health, at_once=True), *others)
