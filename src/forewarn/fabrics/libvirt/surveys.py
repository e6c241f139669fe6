"""What was last seen on a host, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from forewarn.core.names import HostName
from forewarn.fabrics.libvirt.descriptions import Description


class State(Enum):
    """Whether a domain runs."""

    RUNNING = "running"
    PAUSED = "paused"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Sight:
    """One domain at one moment."""

    state: State
    # The number of this run of it on its host; None while it is off.
    number: int | None
    is_persistent: bool

    @property
    def is_active(self) -> bool:
        return self.state is not State.OFF


@dataclass(frozen=True, slots=True)
class Resident:
    """A domain that a host knows, running or not."""

    description: Description
    sight: Sight
    # Recreates it elsewhere.
    xml: str
    starts_with_host: bool = False

    @property
    def is_active(self) -> bool:
        return self.sight.is_active


@dataclass(frozen=True, slots=True)
class Survey:
    """A host and all that is on it."""

    host: HostName
    # Domains go from host to host of one kind only.
    kind: str
    memory_free_kib: int
    residents: tuple[Resident, ...]
    # Domains that could not be understood, and why.
    unread: tuple[str, ...] = ()
