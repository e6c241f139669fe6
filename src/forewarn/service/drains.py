"""Drains: the hosts where nobody is to be placed, in the store and in memory.

Whoever looks for a place asks memory, which follows the store: by what this process commits at once, and
by the feed for what others commit.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Final

from forewarn.core.hosts import Drain
from forewarn.core.journal import Actor, Entry, What
from forewarn.core.names import HostName, ScopeId
from forewarn.errors import Conflict
from forewarn.ports.clock import Clock
from forewarn.ports.ids import Ids
from forewarn.ports.store import Record, Store, Write
from forewarn.service.commits import commit
from forewarn.wire import drain_records as spelling
from forewarn.wire import records

CONFLICTS_MAX: Final = 20


class Drains:
    """Knows which hosts are drained, and drains and undrains them. Names ignore case."""

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        store: Store,
        turn: AbstractContextManager[object] | None = None,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._store = store
        # Where several threads commit, a lock: what is old never takes the place of what is new.
        self._turn = nullcontext() if turn is None else turn
        self._known: dict[str, tuple[int, Drain | None]] = {}

    def hear(self, record: Record) -> None:
        """Take note of a record as it is stored. Raises: Refused, Damaged."""
        drain = None if record.value is None else spelling.load(record.value)
        self._note(record.key, record.version, drain)

    def of(self, host: str) -> Drain | None:
        """How a host came to be drained; None if it is not. From memory."""
        return self._known.get(host.lower(), (0, None))[1]

    def is_drained(self, host: str) -> bool:
        return self.of(host) is not None

    def all(self) -> tuple[Drain, ...]:
        """Every drained host, by name."""
        found = (drain for _, drain in list(self._known.values()) if drain is not None)
        return tuple(sorted(found, key=lambda drain: drain.host.lower()))

    def drain(self, host: HostName, actor: Actor) -> Drain:
        """Place nobody there from now on; a host that is drained stays so. Raises: Unavailable."""
        made = Drain(host, self._clock.now(), actor.name)
        return self._amend(host, made, What.DRAINED, actor) or made

    def undrain(self, host: HostName, actor: Actor) -> None:
        """Let machines be placed there again. Raises: Unavailable."""
        self._amend(host, None, What.UNDRAINED, actor)

    def _amend(
        self, host: HostName, wanted: Drain | None, what: What, actor: Actor
    ) -> Drain | None:
        key = spelling.key(host)
        for _ in range(CONFLICTS_MAX):
            record = self._store.get([key])[key]
            self.hear(record)
            if (record.value is None) == (wanted is None):
                return self.of(host)
            entry = Entry(
                at=self._clock.now(), scope=ScopeId(""), what=what, actor=actor, note=f"host {host}"
            )
            value = None if wanted is None else spelling.dump(wanted)
            write = Write(key, record.version, value)
            with suppress(Conflict):
                versions = commit(
                    self._store, self._ids.commit_id(), (write,), (records.dump_entry(entry),)
                )
                self._note(key, versions[key], wanted)
                return wanted
        raise Conflict([key])

    def _note(self, key: str, version: int, drain: Drain | None) -> None:
        host = spelling.host_of(key)
        with self._turn:
            known, _ = self._known.get(host, (0, None))
            if known < version:
                self._known[host] = (version, drain)
