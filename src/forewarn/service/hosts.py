"""The hosts, seen from what runs on them: nobody declares a host, machines name theirs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from forewarn.core.events import Event, EventStatus
from forewarn.core.ledgers import Ledger
from forewarn.core.names import HostName, MachineName, ScopeId
from forewarn.core.scopes import Presence
from forewarn.errors import Unknown
from forewarn.service.board import Board
from forewarn.service.directory import Directory


@dataclass(frozen=True, slots=True)
class Hosted:
    """The machines of one scope that run on a host."""

    ledger: Ledger
    # The host, as they spell it.
    host: HostName
    machines: tuple[MachineName, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        """The open events that concern one of them."""
        here = set(self.machines)
        return tuple(
            event for event in self.ledger.open_events if here.intersection(event.machines)
        )


@dataclass(frozen=True, slots=True)
class Host:
    """A host, and who runs on it, scope by scope."""

    name: HostName
    scopes: tuple[Hosted, ...]

    @property
    def is_busy(self) -> bool:
        """Whether an impact is under way on it."""
        return any(
            event.status is EventStatus.STARTED and set(event.unfinished) & set(hosted.machines)
            for hosted in self.scopes
            for event in hosted.events
        )

    def within(self, concerns: Callable[[str], bool]) -> Host:
        """The same host, with only those scopes whose resource group is somebody's business."""
        seen = tuple(h for h in self.scopes if concerns(h.ledger.scope.resource_group))
        return replace(self, scopes=seen)


@dataclass(frozen=True, slots=True)
class Hosts:
    """Answers from memory alone: what this process was told of."""

    board: Board
    directory: Directory

    def all(self) -> tuple[Host, ...]:
        """Every host that a machine runs on, by name."""
        found: list[Host] = []
        for name in self.directory.hosts():
            # Another thread may be taking the last machine off it.
            with suppress(Unknown):
                found.append(self.host(name))
        return tuple(found)

    def host(self, name: str) -> Host:
        """One host; names ignore case. Raises: Unknown."""
        scopes = sorted({scope for scope, _ in self.directory.host(name)})
        hosted = [found for scope in scopes if (found := self._hosted(scope, name))]
        if not hosted:
            # What the directory is told a moment before the board.
            raise Unknown(f"no VM runs on a host {name} yet: look again")
        return Host(hosted[0].host, tuple(hosted))

    def _hosted(self, scope: ScopeId, host: str) -> Hosted | None:
        ledger = self.board.ledger(scope)
        if ledger is None:
            return None
        running = [m for m in ledger.scope.machines if m.presence is Presence.RUNNING]
        spelled = {m.name: m.host for m in running if m.host and m.host.lower() == host.lower()}
        if not spelled:
            return None
        return Hosted(ledger, next(iter(spelled.values())), tuple(spelled))
