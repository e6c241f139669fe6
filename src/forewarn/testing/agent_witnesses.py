"""A witness of an agent: what it was shown, what it began, and what it asked for, as seen from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from forewarn.agent.hooks import Phase
from forewarn.agent.news import News
from forewarn.agent.rules import Peers
from forewarn.client.documents import Event
from forewarn.testing.agent_plans import NAME, Plan
from forewarn.testing.simulated_runs import SimulatedRun, SimulatedRuns

# Longer than the agent takes to try anything again.
QUIET: Final = timedelta(seconds=7)


@dataclass(frozen=True, slots=True)
class Begun:
    """A hook that was begun, and how things stood then."""

    run: SimulatedRun
    event_id: str
    phase: Phase
    number: int
    attempt: int
    # The how manieth boot of the VM it was.
    boot: int
    # The events of this VM that the agent had read of last.
    document: Mapping[str, Event]
    # What went on at that moment.
    going: tuple[SimulatedRun, ...]

    @property
    def event(self) -> Event | None:
        return self.document.get(self.event_id)

    @property
    def has_failed(self) -> bool:
        return self.run.ended is not None and self.run.code not in (0, 70)

    def is_next_to(self, other: SimulatedRun) -> bool:
        """Whether another run is of the same event."""
        return other.environment["EVENT_ID"] == self.event_id


@dataclass(frozen=True, slots=True)
class Asked:
    """An approval that the agent asked for, and how things stood then."""

    at: datetime
    event: Event
    seen: Event | None
    # The last run of each hook of `prepare`, of this boot; None if it was not begun.
    prepared: tuple[SimulatedRun | None, ...]
    peers: Peers


@dataclass(slots=True)
class Witness:
    """All that was seen in one story."""

    plan: Plan
    runs: SimulatedRuns
    now: datetime
    boot: int = 1
    # How often the agent died at a step of its own.
    deaths: int = 0
    begun: list[Begun] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    told: list[News] = field(default_factory=list)
    # As the agent read it last; of this VM only.
    document: Mapping[str, Event] = field(default_factory=dict)
    # Every event of this VM that the agent ever read of, as it was each time; when first; and which are gone.
    versions: dict[str, list[Event]] = field(default_factory=dict)
    first_seen: dict[str, datetime] = field(default_factory=dict)
    first_boot: dict[str, int] = field(default_factory=dict)
    first_started: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    gone: dict[str, datetime] = field(default_factory=dict)
    # The NotBefore that was read of last, though the event has started since.
    not_before: dict[str, datetime] = field(default_factory=dict)
    # Since when nothing has hindered the agent; None if something does.
    unhindered: datetime | None = None
    peers: Peers = field(default_factory=Peers)
    # By id, whether the service has it approved, or started.
    approved: frozenset[str] = frozenset()

    def sees(self, events: tuple[Event, ...]) -> None:
        """The agent is shown a document."""
        document = {event.id: event for event in events if event.concerns(NAME)}
        for event in document.values():
            self.versions.setdefault(event.id, []).append(event)
            self.first_seen.setdefault(event.id, self.now)
            self.first_boot.setdefault(event.id, self.boot)
            if event.not_before is not None:
                self.not_before[event.id] = event.not_before
            if event.has_started:
                self.first_started.setdefault(event.id, (self.boot, self.now))
        for event_id in self.versions:
            if event_id not in document:
                self.gone.setdefault(event_id, self.now)
        self.document = document

    def begins(self, run: SimulatedRun, going: tuple[SimulatedRun, ...]) -> None:
        """The agent begins a hook."""
        said = run.environment
        phase, number = run.command[0].split("-")
        self.begun.append(
            Begun(
                run=run,
                event_id=said["EVENT_ID"],
                phase=Phase(phase),
                number=int(number),
                attempt=int(said["EVENT_ATTEMPT"]),
                boot=self.boot,
                document=dict(self.document),
                going=going,
            )
        )

    def asks(self, event: Event) -> None:
        """The agent asks for an approval."""
        seen = self.document.get(event.id)
        self.asked.append(Asked(self.now, event, seen, self.prepared(event.id), self.peers))

    # -- what can be said of it ------------------------------------------------------------------

    def of(self, event_id: str, phase: Phase, number: int | None = None) -> list[Begun]:
        """What was begun for an event in a phase, oldest first."""
        return [
            one
            for one in self.begun
            if one.event_id == event_id
            and one.phase is phase
            and (number is None or one.number == number)
        ]

    def prepared(self, event_id: str) -> tuple[SimulatedRun | None, ...]:
        """The last run of each hook of `prepare`, of this boot."""
        found: list[SimulatedRun | None] = []
        for number, _ in enumerate(self.plan.commands(Phase.PREPARE)):
            mine = [
                one for one in self.of(event_id, Phase.PREPARE, number) if one.boot == self.boot
            ]
            found.append(mine[-1].run if mine else None)
        return tuple(found)

    def touching(self, event_id: str) -> Iterator[Begun]:
        """What was begun for an event that may have to be undone."""
        yield from self.of(event_id, Phase.PREPARE)
        yield from self.of(event_id, Phase.STARTED)

    @property
    def ids(self) -> Iterator[str]:
        yield from self.versions

    @property
    def is_quiet(self) -> bool:
        """Whether nothing has hindered the agent for so long that all should be done."""
        return self.unhindered is not None and self.now - self.unhindered >= QUIET
