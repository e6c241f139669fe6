"""Who came, what was asked and how it was answered: for the log, and for whoever keeps a book."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from forewarn.ports.clock import Clock
from forewarn.ports.identities import Caller
from forewarn.web.metadata import Decision

KEPT_MAX: Final = 10_000
# Addresses of strangers that are named in the log, each once.
STRANGERS_NAMED_MAX: Final = 1000

# To strangers at an emulator, where nobody needs an address of his own.
ASK_ELSEWHERE: Final = ": ask at the address that plays a VM, see `machines` of the line of JSON"


class Visitor(Protocol):
    """A connection, as far as it tells where somebody came from."""

    @property
    def listener(self) -> str: ...

    @property
    def address(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a guest, and its answer."""

    at: datetime
    caller: Caller | None
    address: str
    # None: what came was no request.
    decision: Decision | None
    status: int

    @property
    def machine(self) -> str | None:
        """Who asked; None: a stranger."""
        return None if self.caller is None else self.caller.machine

    @property
    def method(self) -> str:
        return "" if self.decision is None else self.decision.method

    @property
    def route(self) -> str:
        return "" if self.decision is None else self.decision.route

    @property
    def path(self) -> str:
        """The path as it was sent, or its beginning."""
        return "" if self.decision is None else self.decision.path

    @property
    def api_version(self) -> str | None:
        """The api-version as it was sent, be there one or not."""
        return None if self.decision is None else self.decision.api_version


class VisitorsBook:
    """The last visits. Written by the endpoint's thread, read by any."""

    def __init__(self, clock: Clock, kept_max: int = KEPT_MAX) -> None:
        self._clock = clock
        self._visits: deque[Visit] = deque(maxlen=kept_max)
        self._count = 0

    def enter(
        self, caller: Caller | None, address: str, decision: Decision | None, status: int
    ) -> None:
        """Write down a visit that is over now."""
        self._count += 1
        self._visits.append(Visit(self._clock.now(), caller, address, decision, status))

    @property
    def visits(self) -> tuple[Visit, ...]:
        """Those that are remembered, oldest first."""
        # In one go: the endpoint goes on writing meanwhile.
        return tuple(self._visits.copy())

    @property
    def count(self) -> int:
        """All that there were."""
        return self._count


class Strangers:
    """Names in the log who is turned away, within limits."""

    def __init__(self, log: logging.Logger, advice: str = "") -> None:
        """`advice` is what they might do, for whoever reads the log."""
        self._log = log
        self._advice = advice
        self._named: set[str] = set()

    def name(self, visitor: Visitor) -> None:
        """Name somebody who is none of our machines, once."""
        address = visitor.address
        if address not in self._named and len(self._named) < STRANGERS_NAMED_MAX:
            self._named.add(address)
            extra = {"action": "stranger", **origin(visitor)}
            told = f"%s is no VM of the fleet, and was turned away{self._advice}"
            self._log.warning(told, address, extra=extra)


def origin(visitor: Visitor) -> dict[str, str]:
    """Where somebody came from, as fields of the log."""
    return {"listener": visitor.listener, "address": visitor.address}


def named(caller: Caller) -> dict[str, str]:
    """Who a machine is, as fields of the log."""
    return {"scope": caller.scope, "machine": caller.machine, "address": caller.address}


def not_at_once(_decision: Decision, _address: str) -> None:
    """What the hatch answers where a book is kept: nothing, so that everybody comes in."""
