"""What may happen in a simulation, as data.

Services are named by their number. A number also stands for an event, whichever it is by then. An
act whose name says all has no words of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from forewarn.core.events import Result
from forewarn.core.names import MachineName
from forewarn.core.scopes import Scope
from forewarn.core.wishes import Wish
from forewarn.fabrics.simulated import Behaviour
from forewarn.testing.faults import Fault


@dataclass(frozen=True, slots=True)
class Announce:
    """An operator or a user announces something at a service."""

    service: int
    wish: Wish
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Approve:
    """A guest approves events, and perhaps one that never was.

    An even number stands for a guest whom the first of the events concerns, an odd one for any.
    """

    guest: int
    events: tuple[int, ...]
    times: int = 1
    and_nobodys: bool = False


@dataclass(frozen=True, slots=True)
class Permit:
    """An operator approves an event."""

    service: int
    event: int


@dataclass(frozen=True, slots=True)
class Cancel:
    service: int
    event: int


@dataclass(frozen=True, slots=True)
class Postpone:
    service: int
    event: int
    by: timedelta


@dataclass(frozen=True, slots=True)
class Resolve:
    service: int
    event: int
    result: Result


@dataclass(frozen=True, slots=True)
class Poll:
    """A guest reads its document."""

    address: str


@dataclass(frozen=True, slots=True)
class Declare:
    """The fleet file says something else now."""

    service: int
    scopes: tuple[Scope, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """A service hears what the others did, and does what is due."""

    service: int


@dataclass(frozen=True, slots=True)
class Pass:
    """Time passes, and the services that live do what is due."""

    span: timedelta


@dataclass(frozen=True, slots=True)
class Sleep:
    """Time passes, and nobody does anything."""

    span: timedelta


@dataclass(frozen=True, slots=True)
class Await:
    """Time passes until something is due."""


@dataclass(frozen=True, slots=True)
class Jump:
    """The hands of the clock are set."""

    by: timedelta


@dataclass(frozen=True, slots=True)
class Behave:
    """A machine does something else with its orders from now on."""

    machine: MachineName
    behaviour: Behaviour


@dataclass(frozen=True, slots=True)
class Garble:
    """A service's way to the fabric breaks, or says old things again, or loses what was begun."""

    service: int
    how: str


@dataclass(frozen=True, slots=True)
class Amnesia:
    """The fabric forgets everything."""


@dataclass(frozen=True, slots=True)
class Spoil:
    """The next commits of a service fail."""

    service: int
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A service loses the store, or finds it again."""

    service: int
    is_away: bool


@dataclass(frozen=True, slots=True)
class Die:
    """A service dies at its next-but-so-many call of a port; 0: now."""

    service: int
    after: int


@dataclass(frozen=True, slots=True)
class Rise:
    """A service is started, unless it lives."""

    service: int


@dataclass(frozen=True, slots=True)
class Intrude:
    """In the middle of what a service does, something else happens.

    At its next-but-so-many call of a port; 0: when it is about to commit.
    """

    service: int
    after: int
    act: Act


@dataclass(frozen=True, slots=True)
class Calm:
    """All faults end, the dead rise, and everybody does what is due."""


Act: TypeAlias = (
    Announce
    | Approve
    | Permit
    | Cancel
    | Postpone
    | Resolve
    | Poll
    | Declare
    | Work
    | Pass
    | Sleep
    | Await
    | Jump
    | Behave
    | Garble
    | Amnesia
    | Spoil
    | Part
    | Die
    | Rise
    | Intrude
    | Calm
)


@dataclass(frozen=True, slots=True)
class Beat:
    """Something happens; after a while, some services work for a moment, one after another."""

    act: Act
    gap: timedelta
    workers: tuple[int, ...]
