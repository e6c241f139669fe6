"""What a service stands on: its clock, its chance, its store, who may call it, and how.

There are two kinds of it: `RealGround` is that of `forewarn serve`, and `wiring.emulation` has that of
`forewarn emulate`. Everything that stands on them is the same.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from forewarn.clocks import SystemClock
from forewarn.errors import ForewarnError
from forewarn.ids import RandomIds
from forewarn.ports.clock import Clock
from forewarn.ports.ids import Ids
from forewarn.ports.store import Store
from forewarn.stores.sqlite import SqliteStore
from forewarn.web.emulator import EmulatorParts, Time
from forewarn.web.faults import Faults
from forewarn.web.listeners import Bound
from forewarn.web.visits import VisitorsBook
from forewarn.wiring.assembly import Assembly
from forewarn.wiring.directories import DataDirectory
from forewarn.wiring.trust import Doorkeeper, Tls, TrustSettings, keep_door
from forewarn.wiring.working import Workers

RENEW_SECONDS: Final = 24 * 60 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Footing:
    """The world under one run of a service."""

    clock: Clock
    ids: Ids
    store: Store
    backup: Callable[[Path], None]
    # How fast the clock goes; 0: it moves only when it is told to.
    speed: float = 1.0
    # Where the requests of guests are written down, if anywhere.
    visitors: VisitorsBook | None = None
    # What goes wrong on purpose, if anything ever does.
    faults: Faults | None = None


class Entrance(Protocol):
    """How the control plane is reached: the certificate that it shows, or none."""

    @property
    def context(self) -> ssl.SSLContext | None:
        """The certificate and its key; None: plain HTTP."""
        ...

    def url(self, port: int) -> str:
        """Where callers find us."""
        ...

    def renew(self) -> bool:
        """Take the certificate anew; whether another was made. Raises: Refused, Unavailable."""
        ...

    @property
    def trusted(self) -> Mapping[str, str]:
        """What the command line on this machine needs to know, to trust us and be trusted."""
        ...


class Ground(Protocol):
    """Everything that differs between a service and an emulated one."""

    @property
    def is_renewable(self) -> bool:
        """Whether a run may be followed by another one over the same sockets."""
        ...

    @property
    def ends_with_its_terminal(self) -> bool:
        """Whether SIGHUP ends the service; else it has the fleet file read again."""
        ...

    def entrance(self, host: str, /) -> Entrance:
        """How callers of this address come in. Raises: Refused, Unavailable."""
        ...

    def footing(self, stack: ExitStack, seed: int | None, /) -> Footing:
        """The world for one run, which ends with the stack. Raises: Refused, Unavailable."""
        ...

    def door(self, assembly: Assembly, subscription_id: str, /) -> Doorkeeper:
        """Who may call. Raises: Refused, Unavailable."""
        ...

    def emulator(
        self,
        footing: Footing,
        assembly: Assembly,
        workers: Workers,
        tell_guests: Callable[[], datetime | None],
        reset: Callable[[int | None], Time],
        bound: Sequence[Bound],
        /,
    ) -> EmulatorParts | None:
        """What lets callers tell time what to do; None where nobody can.

        `tell_guests` has the guests' endpoint look at the clock, and says when it should again;
        `reset` begins another run; `bound` is where guests are heard.
        """
        ...


@dataclass(frozen=True, slots=True)
class RealGround:
    """The machine's own clock, a database on its disk, certificates and logins."""

    data: DataDirectory
    trust: TrustSettings

    @property
    def is_renewable(self) -> bool:
        return False

    @property
    def ends_with_its_terminal(self) -> bool:
        return False

    def entrance(self, host: str) -> Entrance:
        return Tls(self.trust, self.data, host, SystemClock())

    def footing(self, stack: ExitStack, _seed: int | None) -> Footing:
        clock = SystemClock()
        file = stack.enter_context(closing(SqliteStore(self.data.database, clock)))
        return Footing(clock=clock, ids=RandomIds(), store=file, backup=file.backup_to)

    def door(self, assembly: Assembly, subscription_id: str) -> Doorkeeper:
        return keep_door(assembly, self.data, self.trust, subscription_id)

    def emulator(
        self,
        _footing: Footing,
        _assembly: Assembly,
        _workers: Workers,
        _tell_guests: Callable[[], datetime | None],
        _reset: Callable[[int | None], Time],
        _bound: Sequence[Bound],
    ) -> EmulatorParts | None:
        return None


async def keep_trust(entrance: Entrance, door: Doorkeeper, log: logging.Logger) -> None:
    """Look at the certificate each day: a service may well run for longer than it lasts."""
    if entrance.context is None:
        return
    # What the first call would otherwise wait for, and the guests with it.
    await asyncio.to_thread(door.tokens.warm_up)
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        try:
            if await asyncio.to_thread(entrance.renew):
                log.info("the certificate was renewed", extra={"action": "renewed"})
        except ForewarnError as error:
            log.warning(str(error), extra={"action": "not_renewed"})
