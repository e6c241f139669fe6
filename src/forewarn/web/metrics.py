"""What Prometheus is told: the only door to its library.

A scrape copies numbers that are kept anyway: it reads no store, and its cost does not grow with
the fleet.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, Self

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from forewarn import __version__
from forewarn.core.events import EventStatus, EventType, Result
from forewarn.core.ledgers import Ledger
from forewarn.core.names import Revision, ScopeId
from forewarn.service.deliveries import Counts
from forewarn.service.desk import Desk

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4


class Served(Protocol):
    """What the guests' endpoint counts. Read from another thread than the one that counts."""

    @property
    def answers(self) -> Mapping[tuple[str, int], int]:
        """How many answers were given, by route and status."""
        ...

    @property
    def strangers(self) -> int:
        """How many requests came from addresses that belong to no machine."""
        ...

    @property
    def waiting(self) -> int:
        """How many long polls wait now."""
        ...

    @property
    def connections(self) -> int:
        """How many connections are open now."""
        ...

    @property
    def approvals(self) -> int:
        """How many requests to start events were accepted."""
        ...

    @property
    def throttled(self) -> int:
        """How many connections were refused because there were too many."""
        ...

    @property
    def attend_failures(self) -> int:
        """How often the store could not be told that a scope asked."""
        ...


@dataclass(frozen=True, slots=True)
class _Share:
    """What one ledger adds to the totals."""

    revision: Revision
    scopes: int = 0
    enabled: int = 0
    machines: int = 0
    held: int = 0
    timed_out: int = 0
    failed: int = 0
    events: Mapping[tuple[EventType, EventStatus], int] = field(default_factory=dict)


_NOTHING: Final = _Share(Revision(-1))
_PLAIN: Final = ("scopes", "enabled", "machines", "held", "timed_out", "failed")


class Tally:
    """Sums over all ledgers, kept up to date by being told of every committed one."""

    def __init__(self) -> None:
        # Guards all that follows.
        self._lock = threading.Lock()
        self._shares: dict[ScopeId, _Share] = {}
        self._totals: Counter[str] = Counter()
        self._events: Counter[tuple[EventType, EventStatus]] = Counter()

    @classmethod
    def following(cls, desk: Desk) -> Self:
        """A tally of all that is on the desk's board, and of every commit from now on."""
        tally = cls()
        # First, so that a commit in between is told twice rather than never.
        desk.books.tell(tally.note)
        for scope in desk.directory.scopes():
            posting = desk.board.posting(scope)
            if posting is not None:
                tally.note(posting.ledger)
        return tally

    def note(self, ledger: Ledger) -> None:
        """Take note of a committed ledger, unless a newer one was noted already."""
        scope = ledger.scope.id
        with self._lock:
            before = self._shares.get(scope, _NOTHING)
            if before.revision >= ledger.revision:
                return
            after = self._shares[scope] = _share(ledger)
            for name in _PLAIN:
                self._totals[name] += getattr(after, name) - getattr(before, name)
            self._events.subtract(before.events)
            self._events.update(after.events)

    def totals(self) -> Mapping[str, int]:
        """The sums by name."""
        with self._lock:
            return {name: self._totals[name] for name in _PLAIN}

    def events(self) -> Mapping[tuple[EventType, EventStatus], int]:
        """How many events there are of each type in each status."""
        with self._lock:
            return {(t, s): self._events[t, s] for t in EventType for s in EventStatus}


def _share(ledger: Ledger) -> _Share:
    machines = len(ledger.scope.machines)
    outcomes = Counter(o.result for event in ledger.events for o in event.outcomes)
    return _Share(
        revision=ledger.revision,
        # A scope without machines is kept for its incarnation only.
        scopes=int(machines > 0),
        enabled=int(machines > 0 and ledger.is_enabled),
        machines=machines,
        held=sum(event.is_open and event.hold != "" for event in ledger.events),
        timed_out=outcomes[Result.TIMED_OUT],
        failed=outcomes[Result.FAILED],
        events=Counter((event.type, event.status) for event in ledger.events),
    )


# Registries tell collectors apart by identity.
@dataclass(frozen=True, slots=True, eq=False)
class _Readings(Collector):
    """Everything of our own, read at the moment of the scrape."""

    served: Served
    tally: Tally
    setbacks: Callable[[], int]
    hooks: Counts

    def collect(self) -> Iterator[Metric]:
        yield from self._of_guests()
        yield from self._of_the_fleet()
        yield from self._of_webhooks()
        yield _count("conductor_setbacks", "Scopes that could not be tended.", self.setbacks())
        build = GaugeMetricFamily("forewarn_build", "Which forewarn this is.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build

    def _of_guests(self) -> Iterator[Metric]:
        answers = CounterMetricFamily(
            "forewarn_guest_answers", "Answers to guests.", labels=["route", "status"]
        )
        for (route, status), count in self.served.answers.items():
            answers.add_metric([route, str(status)], count)
        yield answers
        yield _count(
            "guest_strangers",
            "Requests from addresses that belong to no VM.",
            self.served.strangers,
        )
        yield _count(
            "guest_approvals",
            "Requests to start events that were accepted.",
            self.served.approvals,
        )
        yield _count("guest_throttled", "Connections refused: too many.", self.served.throttled)
        yield _count(
            "guest_attend_failures",
            "Times the store could not be told that a scope asked.",
            self.served.attend_failures,
        )
        yield _gauge("guest_polls_waiting", "Long polls that wait now.", self.served.waiting)
        yield _gauge("guest_connections", "Connections open now.", self.served.connections)

    def _of_the_fleet(self) -> Iterator[Metric]:
        events = GaugeMetricFamily(
            "forewarn_events", "Events, open or lately ended.", labels=["type", "status"]
        )
        for (event_type, status), count in self.tally.events().items():
            events.add_metric([event_type.value, status.value], count)
        yield events
        totals = self.tally.totals()
        yield _gauge("events_held", "Due events that something holds.", totals["held"])
        yield _gauge(
            "orders_timed_out",
            "Orders that are not over in time: see to them, then `forewarn resolve`.",
            totals["timed_out"],
        )
        yield _gauge(
            "orders_failed", "Failed orders of open or lately ended events.", totals["failed"]
        )
        yield _gauge("scopes", "Scopes that have VMs.", totals["scopes"])
        yield _gauge("scopes_enabled", "Scopes whose VMs are told of events.", totals["enabled"])
        yield _gauge("machines", "VMs in the fleet.", totals["machines"])

    def _of_webhooks(self) -> Iterator[Metric]:
        hooks = self.hooks
        yield _gauge("webhooks", "Webhooks there are.", hooks.webhooks)
        yield _count("webhook_delivered", "Changes that webhooks took.", hooks.delivered)
        yield _count("webhook_failed", "Deliveries that were not taken.", hooks.failed)
        yield _count("webhook_given_up", "Changes that were given up on.", hooks.given_up)
        yield _gauge("webhook_behind", "Changes that wait to be told.", hooks.waiting)
        yield _gauge(
            "webhook_dead_letters",
            "Changes given up on: see `forewarn webhook dead-letters`.",
            hooks.dead,
        )


def _gauge(name: str, text: str, value: int) -> Metric:
    return GaugeMetricFamily(f"forewarn_{name}", text, value=value)


def _count(name: str, text: str, value: int) -> Metric:
    return CounterMetricFamily(f"forewarn_{name}", text, value=value)


def build_registry(
    served: Served, tally: Tally, setbacks: Callable[[], int], hooks: Counts
) -> CollectorRegistry:
    """Everything that is told, from its sources. `setbacks` counts since the start."""
    registry = CollectorRegistry()
    registry.register(_Readings(served, tally, setbacks, hooks))
    ProcessCollector(registry=registry)
    return registry


class Metrics:
    """What is told, in Prometheus' words."""

    def __init__(
        self,
        served: Served,
        tally: Tally,
        setbacks: Callable[[], int],
        hooks: Counts | None = None,
    ) -> None:
        self._registry = build_registry(served, tally, setbacks, hooks or Counts())

    def exposition(self) -> bytes:
        """One scrape, as CONTENT_TYPE."""
        return generate_latest(self._registry)
