"""The guests that wait for another document."""

from __future__ import annotations

from dataclasses import dataclass

from forewarn.core.names import Incarnation, ScopeId
from forewarn.web.connection import Connection
from forewarn.web.metadata import Decision, ReadDocument


@dataclass(frozen=True, slots=True)
class Waiter:
    """A long poll: what was asked, and the document that the guest knows."""

    decision: Decision
    action: ReadDocument
    scope: ScopeId
    incarnation: Incarnation


class WaitingRoom:
    """All long polls, by scope: those of one scope are woken together."""

    def __init__(self) -> None:
        self._waiters: dict[Connection, Waiter] = {}
        # In the order in which they came, which is about how they lie in memory.
        self._of_scope: dict[ScopeId, dict[Connection, None]] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    @property
    def connections(self) -> tuple[Connection, ...]:
        return tuple(self._waiters)

    def enter(self, connection: Connection, waiter: Waiter) -> None:
        """Take in a long poll."""
        self._waiters[connection] = waiter
        self._of_scope.setdefault(waiter.scope, {})[connection] = None

    def leave(self, connection: Connection) -> Waiter | None:
        """Let go of a connection; None if it was not waiting."""
        waiter = self._waiters.pop(connection, None)
        if waiter is not None:
            others = self._of_scope[waiter.scope]
            del others[connection]
            if not others:
                del self._of_scope[waiter.scope]
        return waiter

    def is_behind(self, connection: Connection, incarnation: Incarnation) -> bool:
        """Whether it waits, and knows another document than this one."""
        waiter = self._waiters.get(connection)
        return waiter is not None and waiter.incarnation != incarnation

    def behind(self, scope: ScopeId, incarnation: Incarnation) -> tuple[Connection, ...]:
        """Those of a scope that know another document than this one."""
        return tuple(
            connection
            for connection in self._of_scope.get(scope, ())
            if self._waiters[connection].incarnation != incarnation
        )
