"""`forewarn serve`, `demo`, `check-config` and `restore`: what runs on the service's own machine."""

from __future__ import annotations

import json
import re
import shlex
import socket
import sys
from collections.abc import Sequence
from datetime import timedelta
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from forewarn.cli.options import WEBHOOK_ALLOW_HELP, AsJson
from forewarn.cli.tables import print_json, print_line
from forewarn.cli.trusting import USUAL, Trusting
from forewarn.clocks import SystemClock
from forewarn.config.fleets import load_fleet
from forewarn.config.surroundings import Surroundings
from forewarn.core.events import Event, EventType
from forewarn.core.journal import Actor, Role
from forewarn.core.periods import Periods
from forewarn.core.restoring import Overdue
from forewarn.core.wishes import Wish
from forewarn.errors import Malformed, Refused
from forewarn.ids import RandomIds
from forewarn.networks.links import parse_device
from forewarn.systemd import Systemd
from forewarn.tables.durations import parse_duration
from forewarn.web.listeners import Listener
from forewarn.web.metadata import Manners
from forewarn.wire.targets import load_allowed
from forewarn.wiring.directories import DataDirectory
from forewarn.wiring.hosting import LibvirtSettings
from forewarn.wiring.logs import start_logging
from forewarn.wiring.restore import RestoreSettings
from forewarn.wiring.restore import restore as restore_backup
from forewarn.wiring.serving import serve as serve_forever
from forewarn.wiring.settings import ServeSettings, Serving

METADATA_DEFAULT: Final = "169.254.169.254:80"
# A docstring would keep its line breaks.
METADATA_HELP: Final = (
    f"ADDR:PORT where guests ask, {METADATA_DEFAULT} if none is given; may be given several times; "
    "port 0 chooses one. ADDR:PORT%DEVICE listens on that device only. On loopback, or on a device "
    "that leads to it alone, ADDR:PORT=VM plays that VM."
)
LIBVIRT_HELP: Final = (
    "URI or NAME=URI of a host whose libvirt has the VMs; may be given several times. Without it, VMs "
    "are simulated."
)
SERVE_JSON_HELP: Final = "Print the addresses as one line of JSON, once it serves."
DATA_DEFAULT: Final = Path(".forewarn")
_HOST: Final = re.compile(
    r"(?:(?P<name>[A-Za-z0-9_][A-Za-z0-9_.-]*)=)?(?P<uri>[a-z0-9]+(?:\+[a-z0-9]+)?://.*)"
)
OPERATOR: Final = Actor(Role.OPERATOR, "operator", "local")

# The demo's listeners: the first knows VMs by source address, the others each play one VM.
DEMO_PORT: Final = 8169
DEMO_MACHINES: Final = ("web-0", "web-1", "web-2", "batch_0", "batch_1", "db", "spot")


def serve(
    *,
    fleet: Path | None = None,
    data: Path | None = None,
    metadata: Annotated[tuple[str, ...], Parameter(help=METADATA_HELP)] = (),
    network: tuple[Path, ...] = (),
    control: str = "127.0.0.1:0",
    log_format: Literal["text", "json"] = "text",
    lenient_post: bool = False,
    impacts_take: str | None = None,
    libvirt: Annotated[tuple[str, ...], Parameter(help=LIBVIRT_HELP)] = (),
    stop_within: str | None = None,
    webhook_allow: Annotated[tuple[str, ...], Parameter(help=WEBHOOK_ALLOW_HELP)] = (),
    as_json: Annotated[bool, Parameter(name="--json", help=SERVE_JSON_HELP)] = False,
    trusting: Trusting = USUAL,
) -> None:
    """Serve scheduled events to a fleet.

    It serves until it is stopped by SIGTERM or Ctrl-C. SIGHUP reads the fleet
    file again; a file with errors changes nothing.

    For example, at the real address, then on loopback, where a port plays web-0,
    then for the VMs of this host and another one:

        forewarn serve --fleet fleet.toml --data /var/lib/forewarn
        forewarn serve --fleet fleet.toml --metadata 127.0.0.1:8170=web-0
        forewarn serve --libvirt qemu:///system --libvirt b=qemu+ssh://root@b/system

    Args:
        fleet: The fleet file: scopes, VMs, their addresses. Without one, the fleet of the last start.
        data: Where the database, keys and operator.json are; FOREWARN_DATA, else .forewarn.
        network: A network file: guests are answered on each of its links; may be given several times.
        control: ADDR:PORT of the control API (https); port 0 chooses one.
        log_format: How the log on the standard error looks.
        lenient_post: Accept approvals without the Metadata header, as old clients send them.
        impacts_take: How long whatever happens to a simulated VM takes, such as 2s; else as on real ones.
        stop_within: How long a guest of --libvirt may take to stop when asked, such as 2m; 60s if not given.
    """
    surroundings = Surroundings.of_this_process()
    settings = ServeSettings(
        data=DataDirectory(data or surroundings.data_directory or DATA_DEFAULT),
        fleet=fleet,
        metadata=_listeners(metadata, network),
        networks=network,
        control=_control(control),
        manners=Manners(lenient_post=lenient_post),
        impacts_take=None if impacts_take is None else parse_duration(impacts_take),
        libvirt=_libvirt(libvirt, stop_within, impacts_take),
        webhook_allow=load_allowed(webhook_allow),
        systemd=Systemd(surroundings.notify_socket),
        trust=trusting.settings(),
    )
    serve_forever(settings, start_logging(log_format), _say_json if as_json else _say)


def demo(*, data: Path = DATA_DEFAULT) -> None:
    """Serve a sample fleet on loopback, and say what to try.

    For example:

        forewarn demo

    Args:
        data: Where the demo keeps its database; it goes on where it was left.
    """
    directory = DataDirectory(data)
    directory.prepare()
    fleet = directory.path / "fleet.toml"
    if not fleet.exists():
        fleet.write_text(
            files("forewarn.cli").joinpath("sample.toml").read_text(), encoding="utf-8"
        )
    machines = (None, *DEMO_MACHINES)
    ports = [DEMO_PORT + number for number in range(len(machines))]
    if not all(map(_is_free, ports)):
        ports = [0] * len(machines)
    listeners = (
        Listener("127.0.0.1", port, machine) for port, machine in zip(ports, machines, strict=True)
    )
    settings = ServeSettings(
        data=directory, fleet=fleet, metadata=tuple(listeners), control=("127.0.0.1", 0)
    )
    serve_forever(settings, start_logging("text"), _show_demo)


def check_config(
    file: Annotated[Path, Parameter(name="FILE")], /, *, as_json: AsJson = False
) -> None:
    """Say all that is wrong with a fleet file.

    Nothing is changed.

    For example:

        forewarn check-config fleet.toml

    Args:
        file: The fleet file.
    """
    declarations = load_fleet(file).declarations
    machines = sum(len(declared.scope.machines) for declared in declarations)
    if not declarations:
        sys.stderr.write(
            f"forewarn: {file} declares no scope: it would leave a fleet without VMs\n"
        )
    if as_json:
        print_json({"scopes": len(declarations), "machines": machines})
        return
    counts = f"{_counted(len(declarations), 'scope')}, {_counted(machines, 'VM')}"
    print_line(f"{file}: {counts}, no errors")


def restore(
    backup: Path,
    *,
    data: Path | None = None,
    overdue: Literal["cancel", "reannounce"] = "reannounce",
    replace: bool = False,
    as_json: AsJson = False,
) -> None:
    """Put a backup in the place of the service's database.

    The service must not be running. Incarnations leap ahead of all that guests
    can have seen since the backup. Events that would have started meanwhile are
    canceled, and announced again with full notice unless told otherwise.

    For example:

        forewarn restore /var/backups/forewarn.db --data /var/lib/forewarn

    Args:
        backup: A file made by `forewarn backup`.
        data: The data directory; FOREWARN_DATA, else .forewarn.
        overdue: What becomes of events that would have started since the backup.
        replace: Set a database that is there already aside, under another name.
    """
    directory = DataDirectory(data or Surroundings.of_this_process().data_directory or DATA_DEFAULT)
    settings = RestoreSettings(
        backup=backup, data=directory, overdue=Overdue(overdue), replace=replace, rules=Periods()
    )
    restored = restore_backup(settings, SystemClock(), RandomIds(), OPERATOR)
    if as_json:
        told = {
            "data": str(directory.path.absolute()),
            "taken_at": f"{restored.taken_at:%Y-%m-%dT%H:%M:%SZ}",
            "scopes": restored.scopes,
            "raised_by": restored.leap,
        }
        print(json.dumps(told))  # noqa: T201
        return
    print(  # noqa: T201
        f"restored the backup of {restored.taken_at:%Y-%m-%d %H:%M:%S} UTC into {directory.path}: "
        f"{restored.scopes} scopes, every incarnation raised by {restored.leap}"
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _listeners(metadata: tuple[str, ...], network: tuple[Path, ...]) -> tuple[Listener, ...]:
    """What was said; else the usual address, unless it is on links. Raises: Malformed, Refused."""
    usual = () if network else (METADATA_DEFAULT,)
    return tuple(map(_listener, metadata or usual))


def _listener(text: str) -> Listener:
    """`ADDR:PORT[%DEVICE]` or, where that is safe, with `=VM`. Raises: Malformed, Refused."""
    place, _, machine = text.partition("=")
    place, device = _place_and_device(place)
    host, port = _host_and_port(place, "--metadata")
    if machine and not device and not ip_address(host).is_loopback:
        raise Refused(
            f"--metadata {text}: only an address on loopback, or on a device (ADDR:PORT%DEVICE=VM), "
            "may play a VM, since anybody who reaches it is taken for that VM"
        )
    return Listener(host, port, machine or None, device)


def _place_and_device(text: str) -> tuple[str, str | None]:
    place, percent, device = text.rpartition("%")
    # Such a sign before the port belongs to the address.
    if not percent or "]" in device:
        return text, None
    return place, parse_device(device)


def _libvirt(
    given: tuple[str, ...], stop_within: str | None, impacts_take: str | None
) -> LibvirtSettings:
    """The hosts, each as `URI` or `NAME=URI`, and what goes with them. Raises: Malformed."""
    if given and impacts_take is not None:
        raise Malformed(
            "--impacts-take is for simulated VMs, and --libvirt has real ones: give one"
        )
    if stop_within is not None and not given:
        raise Malformed("--stop-within is for real VMs: give --libvirt too, or leave it out")
    hosts = tuple(map(_host, given))
    _refuse_twice([uri for _, uri in hosts])
    _refuse_twice([name for name, _ in hosts if name])
    if stop_within is None:
        return LibvirtSettings(hosts)
    return LibvirtSettings(hosts, parse_duration(stop_within))


def _refuse_twice(given: Sequence[str]) -> None:
    """One host under two names would be a place for its own VMs to move to."""
    twice = [one for number, one in enumerate(given) if one in given[:number]]
    if twice:
        raise Malformed(
            f"--libvirt has {twice[0]} twice: give each host once, with a name of its own"
        )


def _host(text: str) -> tuple[str, str]:
    parts = _HOST.fullmatch(text)
    if parts is None:
        raise Malformed(
            f"--libvirt {text}: say URI or NAME=URI, such as qemu:///system or "
            "b=qemu+ssh://root@b.example/system"
        )
    return parts["name"] or "", parts["uri"]


def _control(text: str) -> tuple[str, int]:
    return _host_and_port(text, "--control")


def _host_and_port(text: str, option: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        ip_address(host)
    except ValueError:
        colon = ""
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:  # noqa: PLR2004
        raise Malformed(
            f"{option} {text}: say ADDR:PORT, such as 127.0.0.1:8169 or [::1]:8169; "
            "port 0 chooses a free one"
        )
    return host, int(port)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _say(serving: Serving) -> None:
    for place in serving.metadata:
        print(f"metadata {place.told}")  # noqa: T201
    print(f"control {serving.control} (credentials in {serving.data.operator})", flush=True)  # noqa: T201


def _say_json(serving: Serving) -> None:
    addresses = {
        "metadata": list(dict.fromkeys(place.url for place in serving.metadata)),
        "control": serving.control,
        "data": str(serving.data.path.absolute()),
    }
    print(json.dumps(addresses), flush=True)  # noqa: T201


def _show_demo(serving: Serving) -> None:
    event = _demo_event(serving)
    anybody, web_0 = (place.url for place in serving.metadata[:2])
    path = "/metadata/scheduledevents?api-version=2020-07-01"
    approval = json.dumps({"StartRequests": [{"EventId": event.id}]}, separators=(",", ":"))
    forewarn = _command()
    data = shlex.quote(str(serving.data.path.absolute()))
    print(  # noqa: T201
        f"""
forewarn is serving {serving.data.path / "fleet.toml"}: an availability set (web-0, web-1, web-2), a scale
set (batch_0, batch_1), a VM on its own (db) and a spot VM (spot). A {event.type.value} of
{", ".join(event.machines)} is scheduled for {event.not_before:%H:%M:%S} UTC, unless a VM approves it before.

Paste these into another terminal:

1. Read it, as web-0 does:
   curl -s -H Metadata:true "{web_0}{path}"

2. Approve it:
   curl -s -H Metadata:true -d '{approval}' "{web_0}{path}"

3. See it go: Started for some seconds, then gone. Ask again:
   curl -s -H Metadata:true "{web_0}{path}"

4. See its record, then announce another:
   {forewarn} show {event.id} --data {data}
   {forewarn} announce Reboot web-1 --data {data}

A VM is known by the address it calls from, or on loopback by the port it calls:
   curl -s -H Metadata:true --interface 127.0.1.20 "{anybody}{path}"    # is batch_0
""".rstrip()
        + "\n"
        + "\n".join(
            f"   {place.url} is {machine}"
            for place, machine in zip(serving.metadata[1:], DEMO_MACHINES, strict=True)
        )
        + "\n\nCtrl-C stops it.\n",
        flush=True,
    )


def _demo_event(serving: Serving) -> Event:
    """The event to play with: one that is there already, or a new one."""
    desk = serving.assembly.desk
    for placed in desk.events():
        if placed.event.is_open and "web-0" in placed.event.machines:
            return placed.event
    wish = Wish(type=EventType.FREEZE, machines=("rg1/web/web-0",), duration=timedelta(seconds=9))
    try:
        (placed,) = desk.announce(wish, (), OPERATOR)
    except Refused as error:
        raise Refused(f"{error}; delete {serving.data.path} for a new sample fleet") from error
    return placed.event


def _command() -> str:
    """How this program was called, to be pasted again."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m forewarn"
    return shlex.quote(str(program.absolute()))
