"""The directory: which scope a machine, a host or an event belongs to, by name.

Built in memory from the ledgers told, as every index is; the store has no queries. Readers in other
threads need no lock: each question is answered by reading one key of one dict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forewarn.core.ledgers import Ledger
from forewarn.core.names import EventId, MachineName, Revision, ScopeId
from forewarn.core.scopes import Machine, Presence
from forewarn.errors import Refused, Unknown, UnknownEvent

_Place = tuple[ScopeId, MachineName]


class Directory:
    """Finds scopes by what people call things."""

    def __init__(self) -> None:
        self._revisions: dict[ScopeId, Revision] = {}
        self._rosters: dict[ScopeId, tuple[Machine, ...]] = {}
        # By name in lower case.
        self._machines: dict[str, tuple[_Place, ...]] = {}
        self._hosts: dict[str, tuple[_Place, ...]] = {}
        self._events: dict[EventId, ScopeId] = {}
        self._of_scope: dict[ScopeId, tuple[EventId, ...]] = {}

    def note(self, ledger: Ledger) -> None:
        """Take note of a committed ledger, unless a newer one was noted already."""
        scope = ledger.scope.id
        if self._revisions.get(scope, Revision(0)) >= ledger.revision:
            return
        self._revisions[scope] = ledger.revision
        self._note_roster(scope, ledger.scope.machines)
        self._note_events(scope, tuple(event.id for event in ledger.events))

    def scopes(self) -> tuple[ScopeId, ...]:
        """Every scope ever declared, sorted."""
        return tuple(sorted(self._revisions))

    @property
    def has_machines(self) -> bool:
        """Whether any machine is known at all."""
        return bool(self._machines)

    def eventful(self) -> tuple[ScopeId, ...]:
        """The scopes whose ledgers hold events, sorted."""
        return tuple(sorted(self._of_scope))

    def event(self, event_id: str) -> ScopeId:
        """The scope of an event. Raises: UnknownEvent."""
        scope = self._events.get(EventId(event_id.strip("{}").upper()))
        if scope is None:
            raise UnknownEvent(event_id)
        return scope

    def namesakes(self, name: str) -> tuple[tuple[ScopeId, MachineName], ...]:
        """All machines of that name, in whichever scopes."""
        return self._machines.get(name.lower(), ())

    def machine(self, name: str) -> tuple[ScopeId, MachineName]:
        """A machine called `web-0`, `rg1/web-0` or `rg1/web/web-0`. Raises: Unknown, Refused."""
        *path, short = name.lower().split("/")
        prefix = "/".join(path)
        found = [
            (scope, machine)
            for scope, machine in self._machines.get(short, ())
            if not path or scope == prefix or scope.startswith(f"{prefix}/")
        ]
        if not found:
            raise Unknown(f"no VM {name}; `forewarn fleet` lists them")
        if len(found) > 1:
            choices = ", ".join(f"{scope}/{machine}" for scope, machine in found)
            raise Refused(f"{name} is the name of several VMs: say which of {choices}")
        return found[0]

    def shortest(self, name: str) -> str:
        """A machine's own name, or its whole one if that is shared. Raises: Unknown, Refused."""
        scope, machine = self.machine(name)
        return machine if len(self.namesakes(machine)) == 1 else f"{scope}/{machine}"

    def machines(self, names: Sequence[str]) -> list[tuple[ScopeId, MachineName]]:
        """Several machines. Raises: Unknown, with all names that nothing has; Refused."""
        found: list[tuple[ScopeId, MachineName]] = []
        unknown: list[str] = []
        for name in names:
            try:
                found.append(self.machine(name))
            except Unknown:
                unknown.append(name)
        if unknown:
            raise Unknown(f"no VM {', '.join(unknown)}; `forewarn fleet` lists them")
        return found

    def host(self, name: str) -> tuple[tuple[ScopeId, MachineName], ...]:
        """The machines that run on a host. Raises: Unknown."""
        found = self._hosts.get(name.lower())
        if found is None:
            raise Unknown(f"no VM runs on a host {name}; `forewarn host list` has those there are")
        return found

    def hosts(self) -> tuple[str, ...]:
        """Every host that a machine runs on, in lower case, sorted."""
        return tuple(sorted(self._hosts))

    def _note_roster(self, scope: ScopeId, machines: tuple[Machine, ...]) -> None:
        before = self._rosters.get(scope, ())
        if before == machines:
            return
        _replace(self._machines, scope, _by_name(before), _by_name(machines))
        _replace(self._hosts, scope, _by_host(before), _by_host(machines))
        self._rosters[scope] = machines

    def _note_events(self, scope: ScopeId, events: tuple[EventId, ...]) -> None:
        before = self._of_scope.get(scope, ())
        for event in events:
            self._events[event] = scope
        for gone in set(before) - set(events):
            del self._events[gone]
        if events:
            self._of_scope[scope] = events
        elif before:
            del self._of_scope[scope]


def _by_name(machines: tuple[Machine, ...]) -> dict[str, list[MachineName]]:
    return {machine.name.lower(): [machine.name] for machine in machines}


def _by_host(machines: tuple[Machine, ...]) -> dict[str, list[MachineName]]:
    hosts: dict[str, list[MachineName]] = {}
    for machine in machines:
        if machine.host is not None and machine.presence is Presence.RUNNING:
            hosts.setdefault(machine.host.lower(), []).append(machine.name)
    return hosts


def _replace(
    index: dict[str, tuple[_Place, ...]],
    scope: ScopeId,
    before: Mapping[str, list[MachineName]],
    after: Mapping[str, list[MachineName]],
) -> None:
    """Put what a scope has now in the place of what it had."""
    for name in before.keys() | after.keys():
        places = tuple([(scope, machine) for machine in after.get(name, ())])
        if name in index:
            places = tuple([place for place in index[name] if place[0] != scope]) + places
        if places:
            index[name] = places
        else:
            del index[name]
