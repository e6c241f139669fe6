"""The machinery that really freezes, reboots and moves machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from forewarn.core.hosts import Standing
from forewarn.core.names import MachineName, ScopeId
from forewarn.core.orders import Order, Report
from forewarn.core.rosters import Declaration


class Fabric(Protocol):
    """A driver of machines. Every call returns at once: work is begun, then observed.

    Every implementation passes `forewarn.testing.fabric_contract`.
    """

    def begin(self, order: Order) -> None:
        """Start carrying out an order. Beginning it a second time changes nothing.

        Raises: Refused if the machine cannot undergo this impact, Unavailable.
        """
        ...

    def observe(self, order: Order) -> Report:
        """How far the order has come; UNKNOWN if this fabric does not know of it.

        Raises: Unavailable.
        """
        ...

    def census(self) -> Sequence[Declaration] | None:
        """The scopes and machines that this fabric knows of; None if it keeps no list.

        Raises: Unavailable.
        """
        ...


class Metal(Protocol):
    """The hosts of a fabric that has some of its own. Every call answers from memory."""

    def standings(self) -> Sequence[Standing]:
        """Every host, whether machines are on it or not."""
        ...

    def is_moved_live(self, scope: ScopeId, machine: MachineName) -> bool:
        """Whether a machine's Freeze is a move to another host while it runs."""
        ...
