"""The agent at work: threads, a real client, and a real service whose clock a test moves."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.agent.cases_at_hand import EVENT, FIRST
from tests.agent.test_agent import Handbook

from forewarn.agent.agent import Agent, Approvals, Desires
from forewarn.agent.casebook import DirectoryCasebook
from forewarn.agent.hooks import Phase
from forewarn.agent.loop import Bell, Loop, ThreadedApprovals
from forewarn.agent.reports import Report
from forewarn.agent.strangers import Strangers
from forewarn.client import Client, Pace
from forewarn.errors import Refused, Unavailable
from forewarn.testing.plain_azure import PlainAzure
from forewarn.testing.scheduled_events import ScheduledEvents
from forewarn.testing.simulated_runs import Manner, SimulatedRuns

PATIENCE_SECONDS = 20
TENTH = timedelta(seconds=0.1)
QUICK = Pace(every=TENTH, retry_first=TENTH / 10, retry_max=TENTH)


class Workplace:
    """A loop in a thread, and what it has to do with."""

    def __init__(self, events: ScheduledEvents, url: str, state: Path) -> None:
        self.events = events
        self.state = state
        self.bell = Bell()
        self.runs = SimulatedRuns(lambda: events.now, {"first": Manner(0, timedelta(seconds=3))})
        self.reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self.client = Client(url, pace=QUICK)
        self.loop = Loop(self.client, self.bell, lambda: events.now, self._make, self.reports.put)
        self.thread = threading.Thread(target=self.loop.run, daemon=True)

    def _make(self, name: str, approvals: Approvals) -> Agent:
        return Agent(
            Desires(name),
            boot="boot",
            handbook=Handbook(phases={Phase.PREPARE: (FIRST,), Phase.UNDO: (FIRST,)}),
            casebook=DirectoryCasebook(self.state),
            runs=self.runs,
            approvals=approvals,
            neighborhood=Strangers(),
            tell=lambda _: None,
        )

    def until(self, condition: Callable[[], object]) -> None:
        self.events.wait_until(condition, seconds=PATIENCE_SECONDS)

    def begun(self, run: str) -> bool:
        # Only what goes on is looked at again by itself.
        self.bell.ring()
        return any(one.id.endswith(run) for one in self.runs.all)


@contextmanager
def at_work(events: ScheduledEvents, url: str, state: Path) -> Iterator[Workplace]:
    place = Workplace(events, url, state)
    place.thread.start()
    try:
        yield place
    finally:
        place.loop.stop()
        place.thread.join(PATIENCE_SECONDS)
        assert not place.thread.is_alive(), "who is stopped stops"


@pytest.fixture(params=["forewarn", "azure"])
def url(request: pytest.FixtureRequest, scheduled_events: ScheduledEvents) -> Iterator[str]:
    if request.param == "forewarn":
        yield scheduled_events.url
    else:
        with PlainAzure(scheduled_events.url) as azure:
            yield azure.url


def test_an_event_is_noticed_prepared_for_approved_and_undone(
    scheduled_events: ScheduledEvents, url: str, tmp_path: Path
) -> None:
    """Keeps N7: by long poll, and by polling what knows no more than Azure."""
    with at_work(scheduled_events, url, tmp_path / "cases") as place:
        place.until(lambda: place.loop.report.document is not None)
        event = scheduled_events.reboot()
        place.until(lambda: place.begun("prepare-0-1"))
        place.until(lambda: place.loop.report.is_pending)
        assert not event.approved

        scheduled_events.advance(seconds=3)
        place.bell.ring()
        place.until(lambda: event.approved_by == "web-0")

        scheduled_events.advance(minutes=10)
        assert event.completed
        place.until(lambda: place.begun("undo-0-1"))
        scheduled_events.advance(seconds=3)
        place.bell.ring()
        place.until(lambda: place.loop.report.cases == ())
        assert place.loop.report.name == "web-0"
    names = {place.reports.get_nowait().name for _ in range(place.reports.qsize())}
    assert names == {None, "web-0"}


def test_an_agent_that_cannot_write_says_so_once_and_tries_again(
    scheduled_events: ScheduledEvents, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with at_work(scheduled_events, scheduled_events.url, tmp_path / "cases") as place:
        place.until(lambda: place.loop.report.document is not None)
        (tmp_path / "cases").rmdir()
        scheduled_events.reboot()
        for _ in range(3):
            place.bell.ring()
            while "cannot keep cases" not in (place.reports.get().trouble or ""):
                place.bell.ring()
        assert not place.runs.all
        assert caplog.text.count("nothing can be done until") == 1

        (tmp_path / "cases").mkdir()
        place.until(lambda: place.begun("prepare-0-1"))
        place.until(lambda: place.loop.report.trouble is None)


def test_who_cannot_be_reached_is_a_trouble_and_ends_with_it(
    scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    fault = scheduled_events.faults.add(503)
    with at_work(scheduled_events, scheduled_events.url, tmp_path) as place:
        place.until(lambda: place.client.trouble is not None)
        place.bell.ring()
        place.until(lambda: "503" in (place.loop.report.trouble or ""))
        assert place.loop.report.name is None

        scheduled_events.faults.remove(fault)
        place.until(lambda: place.loop.report.document is not None)
        place.until(lambda: place.loop.report.name == "web-0")


def test_who_is_stopped_leaves_hooks_alone(
    scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    with at_work(scheduled_events, scheduled_events.url, tmp_path) as place:
        scheduled_events.reboot()
        place.until(lambda: place.begun("prepare-0-1"))

    (run,) = place.runs.going
    assert run.signals == []
    assert len(list(tmp_path.glob("*.json"))) == 1


def test_a_casebook_that_cannot_be_read_at_first_ends_it(
    scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    place = Workplace(scheduled_events, scheduled_events.url, tmp_path / "file" / "cases")

    with place.client, pytest.raises(Unavailable):
        place.loop.run()


def test_a_bell_that_was_rung_before_wakes_at_once_and_once() -> None:
    bell = Bell()
    bell.ring()
    bell.ring()

    began = time.monotonic()
    bell.wait(timedelta(minutes=1))
    assert time.monotonic() - began < 30

    woken: list[datetime] = []
    bell.wait(TENTH / 100)
    bell.wait(-TENTH)
    assert not woken


RUNG_BY_SIGNALS = """
import signal
from datetime import timedelta
from forewarn.agent.loop import Bell

bell, rung = Bell(), 0

def ring(*_):
    global rung
    rung += 1
    bell.ring()

signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.00005)
while rung < 3000:
    bell.wait(timedelta(seconds=20))
signal.setitimer(signal.ITIMER_REAL, 0)
"""


@pytest.mark.end_to_end
def test_a_bell_may_be_rung_by_a_signal_in_the_midst_of_waiting() -> None:
    """As SIGTERM does: a lock that the waiting thread holds would never be let go."""
    command = [sys.executable, "-c", RUNG_BY_SIGNALS]

    assert subprocess.run(command, check=False, timeout=PATIENCE_SECONDS).returncode == 0


def test_approvals_are_answered_later(scheduled_events: ScheduledEvents) -> None:
    event = scheduled_events.reboot()
    bell = Bell()
    with Client(scheduled_events.url, pace=QUICK) as client:
        approvals = ThreadedApprovals(client, bell)
        (known,) = client.events()

        approvals.ask(known)
        bell.wait(timedelta(seconds=PATIENCE_SECONDS))
        assert list(approvals.answers()) == [(known.id, None)]
        assert event.approved

        approvals.ask(EVENT)
        bell.wait(timedelta(seconds=PATIENCE_SECONDS))
        ((name, error),) = approvals.answers()
        assert (name, type(error)) == (EVENT.id, Refused)
