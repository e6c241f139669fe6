"""`forewarn emulate`: the service with made-up VMs and a clock of its own, to test handlers with."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from forewarn.cli.options import WEBHOOK_ALLOW_HELP
from forewarn.config.fleets import load_fleet
from forewarn.config.sketches import Sketch
from forewarn.core.scopes import Enabling
from forewarn.errors import Malformed
from forewarn.web.listeners import PORT_MAX, Listener
from forewarn.wire.targets import load_allowed
from forewarn.wiring.directories import DataDirectory
from forewarn.wiring.emulation import HOST, EmulatedGround
from forewarn.wiring.logs import start_logging
from forewarn.wiring.serving import serve
from forewarn.wiring.settings import ServeSettings, Serving

# An hour in a second. Faster, and a poll each second would be one each day.
SPEED_MAX: Final = 3600.0
TOKEN_BYTES: Final = 32
JSON_HELP: Final = "Print all addresses as one line of JSON, once ready."

Names = tuple[str, ...]


def emulate(
    *,
    vm: Annotated[Names, Parameter(help="A VM on its own; may be given several times.")] = (),
    availability_set: Annotated[
        Names, Parameter(help="NAME:COUNT, such as web:3 for web-0, web-1, web-2; several times.")
    ] = (),
    scale_set: Annotated[
        Names, Parameter(help="NAME:COUNT, such as batch:2 for batch_0, batch_1; several times.")
    ] = (),
    spot: Annotated[Names, Parameter(help="A spot VM; may be given several times.")] = (),
    fleet: Path | None = None,
    clock: Literal["real", "manual"] = "real",
    speed: float = 1.0,
    seed: int | None = None,
    port: int = 0,
    control_port: int = 0,
    webhook_allow: Annotated[Names, Parameter(help=WEBHOOK_ALLOW_HELP)] = (),
    data: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", help=JSON_HELP)] = False,
) -> None:
    """Serve made-up VMs on loopback, on a clock of your own: to test handlers with.

    It is the service itself, until SIGTERM, Ctrl-C or the end of its terminal, and
    keeps nothing.

    For example, one VM called vm-0; three, whose time stands still until told:

        forewarn emulate
        forewarn emulate --availability-set web:3 --clock manual --json
        forewarn emulate --vm web-0 --spot cheap --speed 60

    Args:
        fleet: A fleet file, instead of VMs by name.
        clock: Whether time passes by itself, or only when it is told to.
        speed: How many seconds pass in one, with the real clock; at most 3600.
        seed: Make the ids of events and the time of the start the same each time.
        port: Where VMs are known by their address; the ports after it are one for each VM. 0: any.
        control_port: Port of the control API; 0 chooses one.
        data: Keep everything in this directory, and go on from there.
    """
    sketch = Sketch(
        machines=vm, availability_sets=availability_set, scale_sets=scale_set, spots=spot
    )
    pace = _pace(clock, speed)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with _directory(data) as directory:
        file = _fleet_file(directory, fleet, sketch)
        settings = ServeSettings(
            data=directory,
            fleet=file,
            metadata=_listeners(file, port),
            control=(HOST, control_port),
            default_enabling=Enabling.ALWAYS,
            webhook_allow=load_allowed(webhook_allow),
            ground=EmulatedGround(
                token=token, speed=pace, seed=seed, kept=None if data is None else directory
            ),
        )
        say = partial(_say_json if as_json else _say, token, pace)
        serve(settings, start_logging("text"), say)


def _pace(clock: str, speed: float) -> float:
    if clock == "manual":
        if speed != 1:
            raise Malformed("--clock manual has no --speed: give one of them")
        return 0.0
    if not 0 < speed <= SPEED_MAX:
        raise Malformed(f"--speed {speed:g}: give more than 0, and at most {SPEED_MAX:g}")
    return speed


@contextmanager
def _directory(data: Path | None) -> Iterator[DataDirectory]:
    """The directory to use: the one that was named, or one that is gone afterwards."""
    if data is not None:
        directory = DataDirectory(data)
        directory.prepare()
        yield directory
        return
    path = Path(tempfile.mkdtemp(prefix="forewarn-"))
    try:
        yield DataDirectory(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _fleet_file(directory: DataDirectory, fleet: Path | None, sketch: Sketch) -> Path:
    if fleet is None:
        fleet = directory.path / "fleet.toml"
        fleet.write_text(sketch.toml, encoding="utf-8")
    elif sketch != Sketch():
        raise Malformed("--fleet says which VMs there are: leave the other options for VMs out")
    return fleet


def _listeners(fleet: Path, port: int) -> tuple[Listener, ...]:
    """One that knows VMs by their address, then one for each VM, which plays it."""
    machines = load_fleet(fleet).machine_names
    if not 0 <= port <= PORT_MAX - len(machines):
        raise Malformed(f"--port {port}: give 0, or a port that has {len(machines)} more after it")
    ports = range(port, port + len(machines) + 1) if port else [0] * (len(machines) + 1)
    return tuple(
        Listener(HOST, number, machine)
        for number, machine in zip(ports, (None, *machines), strict=True)
    )


def _say(_token: str, pace: float, serving: Serving) -> None:
    print(f"metadata http://{serving.metadata[0].name} (VMs are known by their address)")  # noqa: T201
    for machine, url in _played(serving).items():
        print(f"metadata {url} is {machine}")  # noqa: T201
    print(f"control {serving.control} (token in {serving.data.path / 'endpoint.json'})")  # noqa: T201
    spelled = f"goes at {pace:g} times the speed" if pace else "moves when it is told to"
    print(f"the clock {spelled}; commands take --data {serving.data.path}", flush=True)  # noqa: T201


def _say_json(token: str, pace: float, serving: Serving) -> None:
    told = {
        "metadata": f"http://{serving.metadata[0].name}",
        "machines": _played(serving),
        "control": serving.control,
        "token": token,
        "data": str(serving.data.path.absolute()),
        "speed": pace,
    }
    print(json.dumps(told), flush=True)  # noqa: T201


def _played(serving: Serving) -> dict[str, str]:
    return {
        place.machine: f"http://{place.name}"
        for place in serving.metadata
        if place.machine is not None
    }
