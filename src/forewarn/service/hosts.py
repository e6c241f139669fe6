"""The hosts, seen from what runs on them, and from their fabric where that has some of its own.

Nobody declares a host: machines name theirs, and a fabric knows those it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from forewarn.core.events import Event, EventStatus, EventType
from forewarn.core.hosts import Drain, Standing
from forewarn.core.ledgers import Ledger
from forewarn.core.names import HostName, MachineName, ScopeId
from forewarn.core.scopes import Presence
from forewarn.errors import Unknown
from forewarn.ports.fabric import Metal
from forewarn.service.board import Board
from forewarn.service.directory import Directory
from forewarn.service.drains import Drains

# After these a machine is no longer where it was.
_LEAVING = frozenset({EventType.REDEPLOY, EventType.PREEMPT, EventType.TERMINATE})


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
    # How it came that nobody is placed there; None: anybody may be.
    drain: Drain | None = None
    # What its fabric sees of it; None where hosts are but names.
    standing: Standing | None = None

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
    drains: Drains
    metal: Metal | None = None

    def all(self) -> tuple[Host, ...]:
        """Every host that a machine runs on, that the fabric has or that is drained, by name."""
        standings = self._standings()
        names = {*self.directory.hosts(), *standings}
        names.update(drain.host.lower() for drain in self.drains.all())
        found: list[Host] = []
        for name in sorted(names):
            # Another thread may be taking the last machine off it.
            with suppress(Unknown):
                found.append(self._host(name, standings.get(name)))
        return tuple(found)

    def host(self, name: str) -> Host:
        """One host; names ignore case. Raises: Unknown."""
        return self._host(name, self._standings().get(name.lower()))

    def leaving(self, host: Host) -> Mapping[EventType, tuple[str, ...]]:
        """The impacts by which each machine of a host would leave it, unless it is about to.

        Machines are named in full, for the desk.
        """
        found: dict[EventType, list[str]] = {}
        for hosted in host.scopes:
            scope = hosted.ledger.scope.id
            for machine in hosted.machines:
                is_live = self.metal is not None and self.metal.is_moved_live(scope, machine)
                way = EventType.FREEZE if is_live else EventType.REDEPLOY
                told = {event.type for event in hosted.events if machine in event.machines}
                if not told & {*_LEAVING, way}:
                    found.setdefault(way, []).append(f"{scope}/{machine}")
        return {way: tuple(names) for way, names in found.items()}

    def _standings(self) -> Mapping[str, Standing]:
        found = () if self.metal is None else self.metal.standings()
        return {standing.host.lower(): standing for standing in found}

    def _host(self, name: str, standing: Standing | None) -> Host:
        drain = self.drains.of(name)
        is_known = drain is not None or standing is not None
        try:
            scopes = sorted({scope for scope, _ in self.directory.host(name)})
        except Unknown:
            if not is_known:
                raise
            scopes = []
        hosted = tuple(found for scope in scopes if (found := self._hosted(scope, name)))
        if hosted:
            spelled = hosted[0].host
        elif is_known:
            spelled = next(known.host for known in (standing, drain) if known is not None)
        else:
            # What the directory is told a moment before the board.
            raise Unknown(f"no VM runs on a host {name} yet: look again")
        return Host(spelled, hosted, drain, standing)

    def _hosted(self, scope: ScopeId, host: str) -> Hosted | None:
        ledger = self.board.ledger(scope)
        if ledger is None:
            return None
        running = [m for m in ledger.scope.machines if m.presence is Presence.RUNNING]
        spelled = {m.name: m.host for m in running if m.host and m.host.lower() == host.lower()}
        if not spelled:
            return None
        return Hosted(ledger, next(iter(spelled.values())), tuple(spelled))
