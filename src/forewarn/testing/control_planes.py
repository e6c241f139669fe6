"""The control plane of a world on real sockets, and callers of every role."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from forewarn.clocks import PacedClock
from forewarn.config.fleets import parse_fleet
from forewarn.core import rights
from forewarn.core.journal import Actor, Role
from forewarn.core.rights import Principal
from forewarn.core.scopes import Enabling, Origin
from forewarn.core.targets import Target
from forewarn.core.webhooks import Wanted
from forewarn.errors import Refused
from forewarn.fabrics.simulated import Behaviour
from forewarn.service.deliveries import Counts
from forewarn.service.logins import TOKEN_LASTS
from forewarn.service.webhooks import Subscription
from forewarn.testing.receivers import SimulatedPost
from forewarn.testing.worlds import NOON, World
from forewarn.trust.tokens import PassingTokens
from forewarn.web.app import ControlServer, build_app
from forewarn.web.arm_calls import ArmParts
from forewarn.web.control_parts import ControlParts
from forewarn.web.counters import Counters
from forewarn.web.emulator import EmulatorParts
from forewarn.web.faults import Faults
from forewarn.web.streaming import Pace
from forewarn.web.visits import VisitorsBook
from forewarn.wiring.carrying import assemble_hooks
from forewarn.wiring.faces import Faces
from forewarn.wiring.trust import open_door

PATIENCE_SECONDS: Final = 10
SEND_BYTES: Final = 16 * 1024
# In reach of a simulated post.
RECEIVER: Final = Target(scheme="https", host="hooks.example.org", port=443, path="/hook")
SUBSCRIPTION: Final = "11111111-1111-1111-1111-111111111111"
TENANT: Final = "22222222-2222-2222-2222-222222222222"
OPERATOR: Final = Principal(id="1", name="ada", role=Role.OPERATOR)


class KnownTokens:
    """An authority that knows these tokens; one can be taken back. Remembers whom it refused."""

    def __init__(self, principals: Mapping[str, Principal]) -> None:
        self._principals = dict(principals)
        self.refused: list[tuple[Principal | None, str, str]] = []

    def principal(self, bearer: str) -> Principal | None:
        return self._principals.get(bearer)

    def note_refusal(self, principal: Principal | None, address: str, what: str) -> None:
        self.refused.append((principal, address, what))

    def take_back(self, token: str) -> None:
        del self._principals[token]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a caller was answered; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON is anything
        return json.loads(self.body)


class EmptyTime:
    """An emulator's time (`web.emulator`) that moves when it is told to, and brings nothing."""

    def __init__(self, clock: PacedClock) -> None:
        self._clock = clock

    @property
    def speed(self) -> float:
        return self._clock.speed

    def now(self) -> datetime:
        return self._clock.now()

    def settle(self) -> None:
        """Nothing is ever due."""

    def advance(self, until: datetime) -> bool:
        self._clock.advance_to(until)
        return False

    def advance_to_next(self) -> bool:
        return False


@dataclass
class Extras:
    """What the world itself has no part of, for as long as nobody looks closer."""

    saved: list[Path] = field(default_factory=list)
    unready: str | None = None
    post: SimulatedPost = field(default_factory=SimulatedPost)


def control_parts(world: World, extras: Extras, hooks: Counts) -> ControlParts:
    """What the operators' API stands on, in a world."""
    parts = world.parts

    def apply_fleet(text: str, name: str, actor: Actor) -> tuple[str, ...]:
        fleet = parse_fleet(text, name, Enabling.ALWAYS)
        if not fleet.declarations:
            raise Refused("the fleet file declares nothing")
        return parts.registrar.apply(fleet.declarations, Origin.FILE, actor)

    def reload_fleet(_actor: Actor) -> tuple[str, ...]:
        raise Refused("this world has no fleet file of its own")

    return ControlParts(
        clock=parts.clock,
        books=parts.books,
        desk=parts.desk,
        journals=parts.journals,
        operations=parts.operations,
        apply_fleet=apply_fleet,
        reload_fleet=reload_fleet,
        backup=extras.saved.append,
        ready=lambda: extras.unready,
        counters=Counters(),
        setbacks=lambda: 0,
        hooks=hooks,
        behave=lambda machine, word: world.fabric.behave(
            parts.directory.machine(machine)[1], Behaviour(word)
        ),
        take=lambda machine, impact, takes: world.fabric.take(
            parts.directory.machine(machine)[1], impact, takes
        ),
    )


def faces(world: World, extras: Extras) -> Faces:
    """Everything that the control plane answers, in a world: a new face is added here once."""
    door = open_door(world.parts, PassingTokens, TOKEN_LASTS)
    hooks = assemble_hooks(world.parts, extras.post, SUBSCRIPTION)
    return Faces(
        control=control_parts(world, extras, hooks.counts),
        principals=door.principals(hooks.webhooks.pause_all_of),
        logins=door.logins,
        webhooks=hooks.parts,
        arm=arm_parts(world),
        emulator=emulator_parts(world),
    )


def arm_parts(world: World) -> ArmParts:
    """What the owners' API stands on, in a world."""
    parts = world.parts
    return ArmParts(
        desk=parts.desk,
        registrar=parts.registrar,
        operations=parts.operations,
        subscription_id=SUBSCRIPTION,
        tenant_id=TENANT,
    )


def emulator_parts(world: World) -> EmulatorParts:
    """What the emulator's paths stand on, beside a world: its time is not the world's."""
    clock = PacedClock(NOON, speed=0)
    time = EmptyTime(clock)
    return EmulatorParts(
        time=time,
        visitors=VisitorsBook(clock),
        faults=Faults(clock, speed=0),
        machine=world.parts.directory.shortest,
        reset=lambda _seed: time,
        metadata="http://127.0.0.1:80",
        machines={},
    )


class ControlPlane:
    """The control plane of a world, in a thread of its own, for as long as the `with` lasts.

    Whoever calls is known by the token it shows, which is the principal's name.
    """

    def __init__(self, world: World, *principals: Principal, pace: Pace | None = None) -> None:
        known = principals or (OPERATOR,)
        self.world = world
        self.extras = Extras()
        self.authority = KnownTokens({principal.name: principal for principal in known})
        self.faces = faces(world, self.extras)
        self.table = self.faces.table()
        self._first = known[0].name
        self._bound = socket.socket()
        # A caller that does not read is felt soon.
        self._bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        self._bound.bind(("127.0.0.1", 0))
        # Listening before the thread runs: a client that comes early waits its turn.
        self._bound.listen()
        self.port: int = self._bound.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        self._server = ControlServer(
            build_app(self.table, self.authority, pace or Pace()), self._bound
        )
        self._thread = threading.Thread(target=lambda: asyncio.run(self._server.serve()))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop serving, and wait for it."""
        self._server.stop()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the server came to its end"

    def ask(
        self, method: str, target: str, body: object = None, *, token: str | None = None
    ) -> Reply:
        """One call, as the first principal unless another token is given; "" shows none."""
        with self.asking(method, target, body, token=token) as response:
            fields = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, fields, response.read())

    def webhook(self, group: str) -> str:
        """The id of a webhook that is told of one resource group; added if there is none."""
        kept = self.faces.webhooks.webhooks
        for known in kept.all():
            if known.wanted.groups == (group,):
                return known.id
        wanted = Wanted(groups=(group,))
        asked = Subscription(name=f"of {group}", target=RECEIVER, wanted=wanted)
        return kept.add(asked, rights.actor(OPERATOR, "127.0.0.1")).id

    @contextmanager
    def asking(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[HTTPResponse]:
        """One call whose answer may go on for as long as the `with` lasts."""
        shown = self._first if token is None else token
        given = {"Authorization": f"Bearer {shown}"} if shown else {}
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, target, sent, {**given, **(headers or {})})
            with connection.getresponse() as response:
                yield response
        finally:
            connection.close()
