"""Scripts: what shall happen in a simulation, as data, written by chance from a seed.

A script is written before anything happens, so that it can be told again, shortened, and printed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random  # noqa: TID251 - seeded
from typing import Final

from forewarn.core.events import ANNOUNCED_TYPES, Cause, EventSource, EventType, Result
from forewarn.core.names import HostName, MachineName
from forewarn.core.scopes import Enabling, Scope
from forewarn.core.starting import MAINTENANCE_TYPES
from forewarn.core.wishes import IfNotTold, Wish
from forewarn.fabrics.simulated import Behaviour
from forewarn.testing.acts import (
    Act,
    Amnesia,
    Announce,
    Approve,
    Await,
    Beat,
    Behave,
    Calm,
    Cancel,
    Declare,
    Die,
    Garble,
    Intrude,
    Jump,
    Part,
    Pass,
    Permit,
    Poll,
    Postpone,
    Resolve,
    Rise,
    Sleep,
    Spoil,
    Work,
)
from forewarn.testing.faults import Fault
from forewarn.testing.sample_fleet import ALL

SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
BEATS: Final = 100


@dataclass(frozen=True, slots=True)
class Script:
    """A whole story: who there is, and what happens."""

    seed: int
    services: int
    fleet: tuple[Scope, ...]
    beats: tuple[Beat, ...]


def write(seed: int, beats: int = BEATS) -> Script:
    """The script of a seed: always the same one."""
    return _Writer(seed).script(beats)


class _Writer:
    """Makes up acts by chance."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._chance = Random(seed)  # noqa: S311 - repeatable on purpose
        self._services = self._chance.choice((1, 2, 2, 3))
        # Where there are few scopes, more things get into each other's way.
        count = self._chance.choice((1, 2, 2, 3, 4, len(ALL)))
        self._fleet = tuple(self._chance.sample(ALL, count))
        self._machines = [m for scope in self._fleet for m in scope.machines]
        self._deeds: list[tuple[int, Callable[[], Act]]] = [
            (24, self._announce),
            (20, self._approve),
            (2, self._permit),
            (4, self._cancel),
            (7, self._postpone),
            (3, self._resolve),
            (14, self._poll),
            (3, self._declare),
            (9, lambda: Pass(self._span())),
            (3, lambda: Sleep(self._span())),
            (14, Await),
            (3, self._jump),
            (5, self._behave),
            (5, self._garble),
            (1, Amnesia),
            (5, self._spoil),
            (2, lambda: Part(self._service(), is_away=True)),
            (8, lambda: Part(self._service(), is_away=False)),
            (4, lambda: Die(self._service(), self._chance.choice((0, *range(1, 25))))),
            (20, lambda: Rise(self._service())),
            (20, self._intrude),
            (2, Calm),
        ]

    def script(self, beats: int) -> Script:
        # Most scopes are enabled when it all begins.
        opening = [
            Beat(Poll(scope.machines[0].addresses[0]), timedelta(), ())
            for scope in self._fleet
            if self._chance.random() < 0.8
        ]
        told = [*opening, *(self._beat() for _ in range(beats))]
        return Script(self._seed, self._services, self._fleet, tuple(told))

    def _beat(self) -> Beat:
        gap = self._chance.choice((0, 0, 1, 10, 900, 1003, 2500, 20_007))
        order = self._chance.sample(range(self._services), self._services)
        workers = tuple(order[: self._chance.randint(0, self._services)])
        return Beat(self._act(), timedelta(milliseconds=gap), workers)

    def _act(self) -> Act:
        weights = [weight for weight, _ in self._deeds]
        return self._chance.choices(self._deeds, weights)[0][1]()

    # -- what people and guests do -------------------------------------------------------

    def _work(self) -> Act:
        return Work(self._service())

    def _announce(self) -> Act:
        scope = self._chance.choice(self._fleet)
        event_type = self._chance.choice(ANNOUNCED_TYPES)
        is_users = event_type is not EventType.PREEMPT and self._chance.random() < 0.4
        cause = Cause.MAINTENANCE
        if not is_users and event_type in MAINTENANCE_TYPES and self._chance.random() < 0.3:
            cause = self._chance.choice((Cause.PREDICTED_FAILURE, Cause.HARDWARE_FAILURE))
        names = [machine.name for machine in scope.machines]
        notice = None
        if cause is not Cause.HARDWARE_FAILURE and self._chance.random() < 0.3:
            notice = self._chance.choice((15 * MINUTE, 20 * MINUTE, 3 * HOUR, MINUTE))
        wish = Wish(
            type=event_type,
            source=EventSource.USER if is_users else EventSource.PLATFORM,
            cause=cause,
            machines=tuple(self._some(names, 3)),
            duration=self._chance.choice((None, None, SECOND, 2 * MINUTE)),
            notice=notice,
            if_not_told=self._chance.choice(tuple(IfNotTold)),
        )
        if self._chance.random() < 0.15:
            host = self._chance.choice(("host-0", "host-1", "host-2", "nowhere"))
            return Announce(self._service(), replace(wish, machines=()), (host,))
        return Announce(self._service(), wish)

    def _approve(self) -> Act:
        events = tuple(self._event() for _ in range(self._chance.choice((1, 1, 1, 2))))
        times = self._chance.choice((1, 1, 2))
        return Approve(self._event(), events, times, and_nobodys=self._chance.random() < 0.1)

    def _permit(self) -> Act:
        return Permit(self._service(), self._event())

    def _cancel(self) -> Act:
        return Cancel(self._service(), self._event())

    def _postpone(self) -> Act:
        by = self._chance.choice((SECOND, MINUTE, HOUR, 13 * HOUR, 25 * HOUR))
        return Postpone(self._service(), self._event(), by)

    def _resolve(self) -> Act:
        result = self._chance.choice((Result.DONE, Result.FAILED))
        return Resolve(self._service(), self._event(), result)

    def _poll(self) -> Act:
        return Poll(self._address())

    def _declare(self) -> Act:
        scopes = tuple(self._otherwise(scope) for scope in self._fleet)
        if self._chance.random() < 0.2:
            scopes = scopes[1:]
        return Declare(self._service(), scopes)

    def _otherwise(self, scope: Scope) -> Scope:
        """A scope as it may be declared, too: fewer machines, others' places, other policies."""
        machines = [m for m in scope.machines if self._chance.random() < 0.9]
        if machines and self._chance.random() < 0.2:
            at = self._chance.randrange(len(machines))
            domain = self._chance.randrange(scope.update_domains)
            host = HostName(self._chance.choice(("host-0", "host-1")))
            machines[at] = replace(machines[at], update_domain=domain, host=host)
        if self._chance.random() < 0.1:
            scope = replace(scope, enabling=self._chance.choice(tuple(Enabling)))
        if self._chance.random() < 0.2:
            limit = self._chance.choice((None, 0, 1, 3))
            scope = replace(scope, user_operations_max=limit)
        return replace(scope, machines=tuple(machines))

    # -- what goes wrong -----------------------------------------------------------------

    def _jump(self) -> Act:
        by = self._chance.choice((MINUTE, 14 * MINUTE, HOUR, 5 * HOUR, DAY))
        return Jump(self._chance.choice((-1, 1)) * by + timedelta(microseconds=self._event()))

    def _behave(self) -> Act:
        machine = self._chance.choice(self._machines).name
        return Behave(machine, self._chance.choice((Behaviour.OBEYS, *Behaviour)))

    def _garble(self) -> Act:
        return Garble(
            self._service(),
            self._chance.choice(("away", "repeats", "loses", "well", "well", "well")),
        )

    def _spoil(self) -> Act:
        if self._chance.random() < 0.1:
            return Spoil(self._service(), (Fault.CONFLICT,) * 120)
        faults = self._chance.choices(tuple(Fault), k=self._chance.randint(1, 8))
        return Spoil(self._service(), tuple(faults))

    def _intrude(self) -> Act:
        deed = self._chance.choice(
            (
                *(self._announce, self._approve, self._approve, self._permit, self._cancel),
                *(self._postpone, self._resolve, self._poll, self._declare),
                *(self._work, self._work, self._work),
                lambda: Rise(self._service()),
                lambda: Die(self._service(), 0),
            )
        )
        return Intrude(self._service(), self._chance.choice((0, 0, 0, *range(1, 9))), deed())

    # -- chance --------------------------------------------------------------------------

    def _service(self) -> int:
        return self._chance.randrange(self._services)

    def _event(self) -> int:
        return self._chance.randrange(1000)

    def _address(self) -> str:
        return self._chance.choice(self._machines).addresses[0]

    def _span(self) -> timedelta:
        spans = (SECOND, 31 * SECOND, 5 * MINUTE, 10 * MINUTE, 16 * MINUTE, HOUR, 23 * HOUR, DAY)
        weights = (3, 3, 3, 3, 3, 3, 1, 1)
        millis = self._chance.randrange(2000)
        return self._chance.choices(spans, weights)[0] + timedelta(milliseconds=millis)

    def _some(self, names: Sequence[MachineName], most: int) -> list[MachineName]:
        return self._chance.sample(names, self._chance.randint(1, min(most, len(names))))
