"""Who is calling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from forewarn.core.names import MachineName, ScopeId
from forewarn.core.scopes import Scope


@dataclass(frozen=True, slots=True)
class Caller:
    """A machine that asks, as the network told us. Guests never name themselves."""

    scope: ScopeId
    machine: MachineName
    address: str


class Identities(Protocol):
    """Tells which machine speaks from where. What a request says of itself never counts."""

    def identify(self, listener: str, address: str) -> Caller | None:
        """The machine behind a connection to this listener from this address; None: a stranger."""
        ...

    def owner(self, address: str) -> Caller | None:
        """The machine that has this address, whichever way it is spelled; None if nobody has."""
        ...

    def glance(self, listener: str) -> Callable[[str], Caller | None]:
        """`identify` for one listener, at a glance: None may also mean that it takes `identify`.

        What it says is true at the moment it is asked, each time.
        """
        ...

    def enroll(self, scope: Scope) -> None:
        """Take note of a scope's roster, in the place of what was known of that scope."""
        ...
