"""Faults at the metadata endpoint of an emulated world, as a test asks for them."""

from __future__ import annotations

from collections.abc import Callable

from forewarn.errors import Malformed
from forewarn.testing import sayings
from forewarn.testing.sayings import Span
from forewarn.web.faults import Fault, FaultKind, Faults

# These happen to webhooks, and a world without a control plane tells none.
_ELSEWHERE = (FaultKind.WEBHOOK_DUPLICATE, FaultKind.WEBHOOK_REORDERED)


class GuestFaults:
    """What goes wrong on purpose when VMs ask."""

    def __init__(self, faults: Faults, named: Callable[[str], str]) -> None:
        """`named` gives the one name of a VM. Raises: Unknown, Refused."""
        self._faults = faults
        self._named = named

    def add(
        self,
        kind: FaultKind | str | int,
        *,
        vm: str | None = None,
        times: int | None = None,
        seconds: float | None = None,
        delay: Span | None = None,
    ) -> Fault:
        """Put a fault in force: for a VM or for all, for so many requests, for so long, or until removed.

        Lengths of time are the emulated clock's. Raises: Malformed, Unknown, Refused.
        """
        # A status is as well a number as a word.
        kind = kind if isinstance(kind, FaultKind) else str(kind)
        if kind in _ELSEWHERE or kind in [one.value for one in _ELSEWHERE]:
            raise Malformed("no webhook is told of anything here: use `forewarn emulate` for that")
        return self._faults.add(
            kind,
            machine=None if vm is None else self._named(vm),
            times=times,
            lasts=sayings.span("seconds", seconds),
            delay=sayings.span("delay", delay),
        )

    @property
    def in_force(self) -> tuple[Fault, ...]:
        """Those that may still strike, oldest first."""
        return self._faults.in_force

    def remove(self, fault: Fault) -> None:
        """End a fault. Raises: Unknown."""
        self._faults.remove(fault.id)

    def clear(self) -> None:
        """End all of them."""
        self._faults.clear()
