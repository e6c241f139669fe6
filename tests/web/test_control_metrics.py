"""What Prometheus is told of guests and of the fleet."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.events import EventType, Result
from forewarn.core.names import MachineName, Revision, ScopeId
from forewarn.core.scopes import Enabling, Scope
from forewarn.fabrics.simulated import Behaviour
from forewarn.testing.worlds import OPERATOR, WEB, World
from forewarn.web.counters import Counters
from forewarn.web.metrics import Metrics, Tally

WEB_0 = MachineName("web-0")
QUIET = replace(WEB, name="quiet", enabling=Enabling.ON_REQUEST, machines=())


def quiet(count: int) -> Scope:
    machines = [
        replace(machine, name=MachineName(f"quiet-{n}"), addresses=())
        for n, machine in enumerate(WEB.machines)
    ]
    return replace(QUIET, machines=tuple(machines[:count]))


def sample(text: bytes, name: str) -> float:
    (line,) = (ln for ln in text.decode().splitlines() if ln.startswith(f"forewarn_{name} "))
    return float(line.split()[-1])


@pytest.fixture
def world() -> World:
    return World(WEB, quiet(2))


def scrape(world: World) -> bytes:
    return Metrics(Counters(), Tally.following(world.desk), lambda: 0).exposition()


def test_what_the_endpoint_counts_is_told_as_of_now() -> None:
    counters = Counters()
    metrics = Metrics(counters, Tally(), lambda: 5)
    counters.shown = 1
    counters.count("scheduledevents", 200)
    counters.strangers, counters.approvals, counters.throttled = 3, 4, 6
    counters.connections, counters.waiting, counters.attend_failures = 7, 8, 9

    told = metrics.exposition()

    assert sample(told, 'guest_answers_total{route="scheduledevents",status="200"}') == 2
    assert sample(told, "guest_strangers_total") == 3
    assert sample(told, "guest_approvals_total") == 4
    assert sample(told, "conductor_setbacks_total") == 5
    assert sample(told, "guest_throttled_total") == 6
    assert sample(told, "guest_connections") == 7
    assert sample(told, "guest_polls_waiting") == 8
    assert sample(told, "guest_attend_failures_total") == 9
    assert b"process_resident_memory_bytes" in told
    assert b"forewarn_build{version=" in told


def test_the_fleet_is_counted_whether_it_was_there_before_or_came_later(world: World) -> None:
    tally = Tally.following(world.desk)
    metrics = Metrics(Counters(), tally, lambda: 0)

    before = metrics.exposition()
    world.declare(WEB, quiet(4))
    grown = metrics.exposition()
    world.declare(WEB)
    shrunk = metrics.exposition()

    assert [sample(told, "machines") for told in (before, grown, shrunk)] == [6, 8, 4]
    assert [sample(told, "scopes") for told in (before, grown, shrunk)] == [2, 2, 1]
    assert [sample(told, "scopes_enabled") for told in (before, grown, shrunk)] == [1, 1, 1]


def test_events_are_counted_by_type_and_status(world: World) -> None:
    tally = Tally.following(world.desk)
    metrics = Metrics(Counters(), tally, lambda: 0)
    event = world.announce(EventType.FREEZE, "web-0")

    scheduled = metrics.exposition()
    world.approve("10.0.0.10", event.id)
    started = metrics.exposition()

    assert sample(scheduled, 'events{status="Scheduled",type="Freeze"}') == 1
    assert sample(started, 'events{status="Scheduled",type="Freeze"}') == 0
    assert sample(started, 'events{status="Started",type="Freeze"}') == 1


def test_what_needs_an_operator_shows(world: World) -> None:
    world.fabric.behave(WEB_0, Behaviour.HANGS)
    running = world.announce(EventType.FREEZE, "web-0")
    held = world.announce(EventType.REBOOT, "web-0")
    world.approve("10.0.0.10", running.id)
    world.approve("10.0.0.10", held.id)
    world.advance(timedelta(hours=1))

    late = scrape(world)
    world.desk.resolve(running.id, Result.FAILED, OPERATOR)
    seen_to = scrape(world)

    assert [sample(told, "events_held") for told in (late, seen_to)] == [1, 1]
    assert [sample(told, "orders_timed_out") for told in (late, seen_to)] == [1, 0]
    assert [sample(told, "orders_failed") for told in (late, seen_to)] == [0, 1]


def test_an_old_ledger_told_late_changes_nothing(world: World) -> None:
    tally = Tally.following(world.desk)
    before = tally.totals()
    ledger = world.parts.books.load(ScopeId("rg1/web"))
    bare = replace(ledger, scope=replace(ledger.scope, machines=()))

    tally.note(bare)
    assert tally.totals() == before
    tally.note(replace(bare, revision=Revision(ledger.revision + 1)))

    assert tally.totals()["machines"] == before["machines"] - 4
