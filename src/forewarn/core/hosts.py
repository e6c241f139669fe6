"""Hosts as values: what a fabric sees of one, and that nobody is to be placed on it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from forewarn.core.names import HostName


@dataclass(frozen=True, slots=True)
class Drain:
    """A host that is to become empty: no machine is placed there until it is undrained."""

    host: HostName
    at: datetime
    # Whoever wanted it so.
    by: str


@dataclass(frozen=True, slots=True)
class Standing:
    """A host as its fabric last saw it."""

    host: HostName
    # None: it was never seen.
    memory_free_mib: int | None = None
    # Why it cannot be asked at the moment; "" if it can.
    trouble: str = ""
