"""Hosts under /fabric/v1: who runs on them, what is announced to those, and that a host fails."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from forewarn.core.rights import Right
from forewarn.errors import Forbidden
from forewarn.service.desk import is_unannounced
from forewarn.service.hosts import Host, Hosted
from forewarn.web.calls import Answer, Call, reply
from forewarn.web.control_parts import ControlParts, placed_form
from forewarn.web.described import Described
from forewarn.web.rows import Row
from forewarn.wire import control as wire
from forewarn.wire import control_forms as forms
from forewarn.wire.control_forms import HostedForm, HostForm


def announce(parts: ControlParts, call: Call, asked: wire.Announcement) -> Answer:
    """Announce what is asked for. Raises: Malformed, Unknown, Refused, Unavailable."""
    made = parts.desk.announce(asked.wish, asked.hosts, call.actor)
    form = forms.AnnouncedForm(
        events=[placed_form(placed) for placed in made if not is_unannounced(placed.event)],
        unannounced=[placed_form(placed) for placed in made if is_unannounced(placed.event)],
    )
    return reply(form, status=HTTPStatus.CREATED)


def _hosts(parts: ControlParts, call: Call) -> Answer:
    seen = [host.within(call.sees) for host in parts.hosts.all()]
    return reply(forms.HostsForm(hosts=[_form(host) for host in seen if host.scopes]))


def _host(parts: ControlParts, call: Call) -> Answer:
    host = parts.hosts.host(call.names["host"]).within(call.sees)
    if not host.scopes:
        raise Forbidden(f"{call.caller.name} has no right to what runs on {host.name}")
    return reply(_form(host))


def _fail(parts: ControlParts, call: Call) -> Answer:
    asked = wire.load(wire.Failure, call.body)
    return announce(parts, call, asked.announcement(call.names["host"]))


def _form(host: Host) -> HostForm:
    return HostForm(
        host=host.name,
        scopes=[_hosted(hosted) for hosted in host.scopes],
        events=[
            forms.event_form(event, forms.names_in(hosted.ledger))
            for hosted in host.scopes
            for event in hosted.events
        ],
        is_busy=host.is_busy,
    )


def _hosted(hosted: Hosted) -> HostedForm:
    scope = hosted.ledger.scope
    return HostedForm(
        scope=scope.name, resource_group=scope.resource_group, machines=hosted.machines
    )


ROWS: Final = (
    Row(
        "GET",
        "/fabric/v1/hosts",
        Right.READ,
        _hosts,
        Described(
            name="listHosts",
            summary="List the hosts that VMs run on, with what is announced to those VMs.",
            answers={HTTPStatus.OK: forms.HostsForm},
        ),
    ),
    Row(
        "GET",
        "/fabric/v1/hosts/{host}",
        Right.READ,
        _host,
        Described(
            name="showHost",
            summary="Show who runs on one host, and whether an impact is under way there.",
            answers={HTTPStatus.OK: forms.HostForm},
        ),
    ),
    Row(
        "POST",
        "/fabric/v1/hosts/{host}/failures",
        Right.OPERATE,
        _fail,
        Described(
            name="reportFailure",
            summary="Tell that a host has failed (its VMs are hit at once, whatever runs there is "
            "overtaken), or that it will (announced seven days ahead unless told otherwise).",
            asks=wire.Failure,
            answers={HTTPStatus.CREATED: forms.AnnouncedForm},
        ),
    ),
)
