"""The directory: which scope a machine, a host or an event belongs to, by name.

Built in memory from the ledgers told, as every index is; the store has no queries.
"""

from __future__ import annotations

from forewarn.core.ledgers import Ledger
from forewarn.core.names import EventId, MachineName, Revision, ScopeId
from forewarn.core.scopes import Machine, Presence
from forewarn.errors import Refused, Unknown, UnknownEvent


class Directory:
    """Finds scopes by what people call things."""

    def __init__(self) -> None:
        self._revisions: dict[ScopeId, Revision] = {}
        self._rosters: dict[ScopeId, tuple[Machine, ...]] = {}
        self._machines: dict[str, tuple[ScopeId, ...]] = {}
        self._hosts: dict[str, tuple[ScopeId, ...]] = {}
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

    def eventful(self) -> tuple[ScopeId, ...]:
        """The scopes whose ledgers hold events, sorted."""
        return tuple(sorted(self._of_scope))

    def event(self, event_id: str) -> ScopeId:
        """The scope of an event. Raises: UnknownEvent."""
        scope = self._events.get(EventId(event_id.strip("{}").upper()))
        if scope is None:
            raise UnknownEvent(event_id)
        return scope

    def machine(self, name: str) -> tuple[ScopeId, MachineName]:
        """A machine called `web-0`, `rg1/web-0` or `rg1/web/web-0`. Raises: Unknown, Refused."""
        *path, short = name.lower().split("/")
        prefix = "/".join(path)
        found = [
            scope
            for scope in self._machines.get(short, ())
            if not path or scope == prefix or scope.startswith(f"{prefix}/")
        ]
        if not found:
            raise Unknown(f"no VM {name}; `forewarn fleet` lists them")
        if len(found) > 1:
            choices = ", ".join(f"{scope}/{short}" for scope in found)
            raise Refused(f"{name} is the name of several VMs: say which of {choices}")
        exact = next(m.name for m in self._rosters[found[0]] if m.name.lower() == short)
        return found[0], exact

    def host(self, name: str) -> tuple[tuple[ScopeId, MachineName], ...]:
        """The machines that run on a host. Raises: Unknown."""
        found = tuple(
            (scope, machine.name)
            for scope in self._hosts.get(name.lower(), ())
            for machine in self._rosters[scope]
            if (machine.host or "").lower() == name.lower()
            and machine.presence is Presence.RUNNING
        )
        if not found:
            raise Unknown(f"no VM runs on a host {name}; `forewarn fleet` lists the hosts")
        return found

    def _note_roster(self, scope: ScopeId, machines: tuple[Machine, ...]) -> None:
        before = self._rosters.get(scope, ())
        if before == machines:
            return
        _move(self._machines, scope, {m.name.lower() for m in before}, {m.name.lower() for m in machines})
        _move(self._hosts, scope, _hosts(before), _hosts(machines))
        self._rosters[scope] = machines

    def _note_events(self, scope: ScopeId, events: tuple[EventId, ...]) -> None:
        for gone in set(self._of_scope.pop(scope, ())) - set(events):
            del self._events[gone]
        for event in events:
            self._events[event] = scope
        if events:
            self._of_scope[scope] = events


def _hosts(machines: tuple[Machine, ...]) -> set[str]:
    return {machine.host.lower() for machine in machines if machine.host is not None}


def _move(
    index: dict[str, tuple[ScopeId, ...]], scope: ScopeId, before: set[str], after: set[str]
) -> None:
    for name in before - after:
        rest = tuple(known for known in index[name] if known != scope)
        if rest:
            index[name] = rest
        else:
            del index[name]
    for name in after - before:
        index[name] = (*index.get(name, ()), scope)
