"""SimulatedRuns: hooks that take their time by any clock, and end as they were told to."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from forewarn.agent.names import file_name
from forewarn.agent.runs import Absent, CutOff, Going, Look, Over

_BY_TERM: Final = 128 + signal.SIGTERM
_NOT_FOUND: Final = 127


class Obedience(Enum):
    """What a hook does when it is asked to end."""

    ENDS = "ends"
    IGNORES = "ignores it"
    SAYS_READY = "ends, and says that it is ready"


@dataclass(frozen=True, slots=True)
class Manner:
    """How a hook behaves."""

    code: int = 0
    takes: timedelta = timedelta()
    obedience: Obedience = Obedience.ENDS


@dataclass(slots=True)
class SimulatedRun:
    """A run, from its beginning to its end."""

    id: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    manner: Manner
    began: datetime
    # When it is over if nobody interferes, and when it was.
    due: datetime
    ended: datetime | None = None
    # None while it goes on, and if it was cut off.
    code: int | None = None
    signals: list[tuple[datetime, signal.Signals]] = field(default_factory=list)

    @property
    def was_cut_off(self) -> bool:
        return self.ended is not None and self.code is None


class SimulatedRuns:
    """Runs without processes; whoever holds this is the VM, and agents come and go."""

    def __init__(self, now: Callable[[], datetime], manners: Mapping[str, Manner]) -> None:
        """How a hook behaves is found by the first word of its command."""
        self._now = now
        self._manners = dict(manners)
        self._kept: dict[str, SimulatedRun] = {}
        # Every run that ever was, oldest first.
        self.all: Final[list[SimulatedRun]] = []

    def begin(self, run: str, command: tuple[str, ...], environment: Mapping[str, str]) -> None:
        if run in self._kept:
            return
        now = self._now()
        manner = self._manners.get(command[0], Manner(_NOT_FOUND))
        begun = SimulatedRun(run, command, dict(environment), manner, now, now + manner.takes)
        self._kept[run] = begun
        self.all.append(begun)

    def look(self, run: str) -> Look:
        self.settle()
        found = self._kept.get(run)
        if found is None:
            return Absent()
        if found.ended is None:
            return Going()
        return CutOff() if found.code is None else Over(found.code)

    def signal(self, run: str, number: signal.Signals) -> None:
        self.settle()
        found = self._kept.get(run)
        if found is None or found.ended is not None:
            return
        found.signals.append((self._now(), number))
        if number is signal.SIGKILL:
            found.ended = self._now()
        elif found.manner.obedience is not Obedience.IGNORES:
            is_ready = found.manner.obedience is Obedience.SAYS_READY
            found.ended, found.code = self._now(), 0 if is_ready else _BY_TERM

    def forget(self, event_id: str) -> None:
        place = f"{file_name(event_id)}/"
        self._kept = {run: one for run, one in self._kept.items() if not run.startswith(place)}

    # -- what a test has in its hands ------------------------------------------------------------

    @property
    def kept(self) -> tuple[str, ...]:
        """The ids that are not forgotten."""
        return tuple(self._kept)

    @property
    def going(self) -> tuple[SimulatedRun, ...]:
        self.settle()
        return tuple(run for run in self.all if run.ended is None)

    def cut_off(self) -> None:
        """End all that goes on without a word, as a reboot does."""
        for run in self.going:
            run.ended = self._now()

    def settle(self) -> None:
        """Have those be over whose time it is."""
        for run in self.all:
            if run.ended is None and run.due <= self._now():
                run.ended, run.code = run.due, run.manner.code
