"""The ground under `forewarn emulate`: a clock that obeys, chance from a seed, nothing kept.

The control plane speaks plain HTTP here and knows one token, made anew for each start. It listens on
loopback only, where nobody reads along who could not read this process's memory as well; and the token
keeps other users' programs, and pages in a browser, from telling it anything. That spares whoever
tests a handler certificates, and each start the time that making them takes.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from forewarn.clocks import PacedClock, SystemClock
from forewarn.core.journal import Role
from forewarn.core.rights import Principal
from forewarn.errors import Refused
from forewarn.ids import RandomIds, SeededEventIds
from forewarn.ports.ids import Ids
from forewarn.ports.store import Store
from forewarn.service.logins import TOKEN_LASTS
from forewarn.stores.memory import MemoryStore
from forewarn.stores.sqlite import SqliteStore
from forewarn.trust.passes import Pass
from forewarn.trust.tokens import PassingTokens
from forewarn.web.emulator import EmulatorParts, Time
from forewarn.web.faults import Faults
from forewarn.web.listeners import Bound
from forewarn.web.visits import VisitorsBook
from forewarn.wiring.assembly import Assembly
from forewarn.wiring.directories import DataDirectory
from forewarn.wiring.grounds import Entrance, Footing
from forewarn.wiring.timekeeping import Timekeeper
from forewarn.wiring.trust import Doorkeeper, open_door
from forewarn.wiring.working import Workers

HOST: Final = "127.0.0.1"
# When it is, to whoever wants every run to be the same.
SEEDED_START: Final = datetime(2030, 1, 1, 12, tzinfo=UTC)
OPERATOR: Final = Principal(
    id="00000000-0000-0000-0000-000000000001", name="operator", role=Role.OPERATOR
)


@dataclass(frozen=True, slots=True)
class LoopbackEntrance:
    """Plain HTTP, for whoever shows the token."""

    token: str = field(repr=False)
    context: ssl.SSLContext | None = None

    def url(self, port: int) -> str:
        return f"http://{HOST}:{port}"

    def renew(self) -> bool:
        return False

    @property
    def trusted(self) -> Mapping[str, str]:
        return {"token": self.token}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedGround:
    """What an emulator stands on."""

    token: str = field(repr=False)
    # 0: time passes only when it is told to.
    speed: float = 1.0
    seed: int | None = None
    # Where everything is kept; None: it is forgotten at the end.
    kept: DataDirectory | None = None

    @property
    def is_renewable(self) -> bool:
        return self.kept is None

    @property
    def ends_with_its_terminal(self) -> bool:
        return True

    def entrance(self, _host: str) -> Entrance:
        return LoopbackEntrance(self.token)

    def footing(self, stack: ExitStack, seed: int | None) -> Footing:
        seed = self.seed if seed is None else seed
        start = SystemClock().now().replace(microsecond=0) if seed is None else SEEDED_START
        clock = PacedClock(start, self.speed)
        ids: Ids = RandomIds() if seed is None else SeededEventIds(seed)
        store: Store = MemoryStore(clock)
        backup: Callable[[Path], None] = _refuse_backup
        if self.kept is not None:
            file = stack.enter_context(closing(SqliteStore(self.kept.database, clock)))
            store, backup = file, file.backup_to
        return Footing(
            clock=clock,
            ids=ids,
            store=store,
            backup=backup,
            speed=self.speed,
            visitors=VisitorsBook(clock),
            faults=Faults(clock, speed=self.speed),
        )

    def door(self, assembly: Assembly, _subscription_id: str) -> Doorkeeper:
        door = open_door(assembly, PassingTokens, TOKEN_LASTS)
        return door.knowing(Pass(self.token, OPERATOR, door.logins))

    def emulator(
        self,
        footing: Footing,
        assembly: Assembly,
        workers: Workers,
        tell_guests: Callable[[], datetime | None],
        reset: Callable[[int | None], Time],
        bound: Sequence[Bound],
    ) -> EmulatorParts | None:
        assert isinstance(footing.clock, PacedClock), "see footing"
        assert footing.visitors is not None, "see footing"
        assert footing.faults is not None, "see footing"
        keeper = Timekeeper(footing.clock, workers, assembly.desk, assembly.store, tell_guests)
        return EmulatorParts(
            time=keeper,
            visitors=footing.visitors,
            faults=footing.faults,
            machine=assembly.directory.shortest,
            reset=self._guarded(reset),
            metadata=f"http://{bound[0].name}",
            machines={p.machine: f"http://{p.name}" for p in bound if p.machine is not None},
        )

    def _guarded(self, reset: Callable[[int | None], Time]) -> Callable[[int | None], Time]:
        return reset if self.kept is None else _refuse_reset


def _refuse_backup(_file: Path) -> None:
    raise Refused("this emulator keeps nothing: start it with --data DIR")


def _refuse_reset(_seed: int | None) -> Time:
    raise Refused(
        "this emulator was started with --data, and what is kept is not thrown away: start one "
        "without --data, or delete that directory and start again"
    )
