"""Hosts under /fabric/v1: who runs on them, that nobody shall be placed there, and that one fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from forewarn.core.rights import Right
from forewarn.errors import Forbidden, Refused
from forewarn.service.desk import Placed, is_unannounced
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
    return reply(_announced(made), status=HTTPStatus.CREATED)


def _announced(made: Sequence[Placed]) -> forms.AnnouncedForm:
    return forms.AnnouncedForm(
        events=[placed_form(placed) for placed in made if not is_unannounced(placed.event)],
        unannounced=[placed_form(placed) for placed in made if is_unannounced(placed.event)],
    )


def _hosts(parts: ControlParts, call: Call) -> Answer:
    seen = [host.within(call.sees) for host in parts.hosts.all()]
    # Who sees everything sees empty hosts, too.
    shown = [_form(host) for host in seen if host.scopes or call.sees(None)]
    return reply(forms.HostsForm(hosts=shown))


def _host(parts: ControlParts, call: Call) -> Answer:
    host = parts.hosts.host(call.names["host"]).within(call.sees)
    if not host.scopes and not call.sees(None):
        raise Forbidden(f"{call.caller.name} has no right to what runs on {host.name}")
    return reply(_form(host))


def _drain(parts: ControlParts, call: Call) -> Answer:
    asked = wire.load(wire.Draining, call.body)
    host = parts.hosts.host(call.names["host"])
    parts.drains.drain(host.name, call.actor)
    made: list[Placed] = []
    try:
        for impact, machines in parts.hosts.leaving(host).items() if asked.move else ():
            told = asked.announcement(impact, machines)
            made += parts.desk.announce(told.wish, (), call.actor)
    except Refused as error:
        raise Refused(
            f"{host.name} is drained, but not all of its VMs are to go: {error}"
        ) from error
    return reply(_announced(made))


def _undrain(parts: ControlParts, call: Call) -> Answer:
    wire.load(wire.Nothing, call.body)
    host = parts.hosts.host(call.names["host"])
    parts.drains.undrain(host.name, call.actor)
    return reply(_form(replace(host, drain=None)))


def _fail(parts: ControlParts, call: Call) -> Answer:
    asked = wire.load(wire.Failure, call.body)
    return announce(parts, call, asked.announcement(call.names["host"]))


def _form(host: Host) -> HostForm:
    standing = host.standing
    return HostForm(
        host=host.name,
        scopes=[_hosted(hosted) for hosted in host.scopes],
        events=[
            forms.event_form(event, forms.names_in(hosted.ledger))
            for hosted in host.scopes
            for event in hosted.events
        ],
        is_busy=host.is_busy,
        is_drained=host.drain is not None,
        memory_free_mib=None if standing is None else standing.memory_free_mib,
        trouble=None if standing is None else standing.trouble or None,
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
            summary="List the hosts that VMs run on or could run on, with what is announced there.",
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
        "/fabric/v1/hosts/{host}/drain",
        Right.OPERATE,
        _drain,
        Described(
            name="drainHost",
            summary="Place no VM on a host any more, and on request announce to its VMs that they move: "
            "live where their Freeze is a live migration, else by a Redeploy.",
            asks=wire.Draining,
            answers={HTTPStatus.OK: forms.AnnouncedForm},
        ),
    ),
    Row(
        "POST",
        "/fabric/v1/hosts/{host}/undrain",
        Right.OPERATE,
        _undrain,
        Described(
            name="undrainHost",
            summary="Let VMs be placed on a host again.",
            asks=wire.Nothing,
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
