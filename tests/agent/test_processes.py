"""The agent as a process, with hooks that are scripts, killed at every moment of an event."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forewarn.testing.emulated_events import Event
from forewarn.testing.plain_azure import PlainAzure
from forewarn.testing.scheduled_events import ScheduledEvents

pytestmark = pytest.mark.end_to_end

PATIENCE_SECONDS = 30
# It says when it begins and when it is over, and takes as long as a test wants.
HOOK = """#!/bin/sh
echo "$EVENT_PHASE began $EVENT_ATTEMPT" >> {log}
while [ ! -e {go} ]; do sleep 0.01; done
echo "$EVENT_PHASE ended $EVENT_ATTEMPT" >> {log}
"""
# How long after something was seen the agent is killed: at once, while it writes, while it rests.
DELAYS_SECONDS = (0, 0.002, 0.01, 0.05, 0.2)


class Guest:
    """A VM with an agent that is started and killed."""

    def __init__(self, events: ScheduledEvents, url: str, home: Path) -> None:
        self.events = events
        self.home = home
        self.log = home / "log"
        self.log.touch()
        self.agents: list[subprocess.Popen[bytes]] = []
        for phase in ("prepare", "started", "undo"):
            hook = home / "hooks.d" / phase / "10-hook"
            hook.parent.mkdir(parents=True)
            hook.write_text(HOOK.format(log=self.log, go=self.gate(phase)))
            hook.chmod(0o755)
        (home / "agent.toml").write_text(
            f'endpoint = "{url}"\nstate = "{home}/state"\nhooks = "{home}/hooks.d"\nlisten = ""\n'
        )

    def gate(self, phase: str) -> Path:
        """The file that lets hooks of a phase come to their end."""
        return self.home / f"{phase}.go"

    def let(self, *phases: str) -> None:
        for phase in phases:
            self.gate(phase).touch()

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "forewarn", "agent", "--config"]
        with (self.home / "agent.log").open("ab") as log:
            agent = subprocess.Popen(
                [*command, str(self.home / "agent.toml")],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.agents.append(agent)
        return agent

    def kill(self) -> None:
        """Kill the agent, and start another."""
        self.end(signal.SIGKILL)
        self.start()

    def end(self, number: signal.Signals) -> int:
        agent = self.agents[-1]
        agent.send_signal(number)
        return agent.wait(PATIENCE_SECONDS)

    def until(self, condition: Callable[[], object]) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            said = (self.home / "agent.log").read_text()
            assert time.monotonic() < until, f"it never came to that; {self.lines}\n{said}"
            time.sleep(0.002)

    @property
    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    def has(self, line: str) -> Callable[[], bool]:
        return lambda: line in self.lines

    def is_done(self) -> bool:
        return not list((self.home / "state" / "cases").glob("*.json"))


@pytest.fixture
def guest(scheduled_events: ScheduledEvents, tmp_path: Path) -> Iterator[Guest]:
    yield from a_guest(scheduled_events, scheduled_events.url, tmp_path)


def a_guest(events: ScheduledEvents, url: str, home: Path) -> Iterator[Guest]:
    guest = Guest(events, url, home)
    try:
        yield guest
    finally:
        guest.let("prepare", "started", "undo")
        for agent in guest.agents:
            agent.kill()
            agent.wait()
        # Hooks outlive agents; see that none outlives the test.
        guest.until(lambda: counted(guest, "began") == counted(guest, "ended"))


def counted(guest: Guest, what: str) -> int:
    return sum(what in line for line in guest.lines)


ONCE = Counter(
    f"{phase} {what} 1" for phase in ("prepare", "started", "undo") for what in ("began", "ended")
)


def whole_story(guest: Guest, death: Callable[[str], None]) -> Event:
    """An event from its announcement to its undoing; `death` is called at each stage of it."""
    guest.start()
    event = guest.events.freeze()
    death("announced")
    guest.until(guest.has("prepare began 1"))
    death("preparing")
    guest.let("prepare")
    guest.until(guest.has("prepare ended 1"))
    death("prepared")
    guest.until(lambda: event.approved_by == "web-0")
    guest.until(lambda: event.started)
    death("started")
    guest.let("started")
    guest.until(guest.has("started ended 1"))
    guest.events.advance(minutes=1)
    assert event.completed
    death("gone")
    guest.until(guest.has("undo began 1"))
    death("undoing")
    guest.let("undo")
    guest.until(guest.has("undo ended 1"))
    death("undone")
    guest.until(guest.is_done)
    return event


STAGES = ("announced", "preparing", "prepared", "started", "gone", "undoing", "undone")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("delay", DELAYS_SECONDS)
def test_whenever_it_is_killed_each_hook_runs_once(guest: Guest, stage: str, delay: float) -> None:
    """Keeps N7: SIGKILL, and another agent goes on from what is on the disk."""

    def death(now: str) -> None:
        if now == stage:
            time.sleep(delay)
            guest.kill()

    whole_story(guest, death)

    assert Counter(guest.lines) == ONCE
    assert len(guest.agents) == 2


def test_killed_at_every_stage_of_one_event_it_keeps_its_promises(guest: Guest) -> None:
    """Keeps N7: seven deaths in one story."""
    whole_story(guest, lambda _: guest.kill())

    assert Counter(guest.lines) == ONCE
    assert len(guest.agents) == 1 + len(STAGES)


def test_before_a_server_of_azures_kind_it_does_the_same(
    scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    """Keeps N7: without long poll, after an empty 200, a 429 and a reset."""
    for kind in ("empty", "429", "reset"):
        scheduled_events.faults.add(kind, times=1)
    with PlainAzure(scheduled_events.url) as azure:
        for guest in a_guest(scheduled_events, azure.url, tmp_path):
            whole_story(guest, lambda _: None)
            assert Counter(guest.lines) == ONCE


def test_sigterm_stops_it_and_leaves_hooks_running(guest: Guest) -> None:
    guest.start()
    event = guest.events.freeze()
    guest.until(guest.has("prepare began 1"))

    assert guest.end(signal.SIGTERM) == 0

    guest.let("prepare")
    guest.until(guest.has("prepare ended 1"))
    assert not event.approved
    guest.start()
    guest.until(lambda: event.approved_by == "web-0")
    assert guest.lines[:2] == ["prepare began 1", "prepare ended 1"]


def test_a_canceled_event_is_undone_once_by_an_agent_that_was_away(guest: Guest) -> None:
    guest.start()
    event = guest.events.redeploy()
    guest.until(guest.has("prepare began 1"))
    guest.end(signal.SIGKILL)
    guest.let("prepare", "undo")
    guest.until(guest.has("prepare ended 1"))
    guest.events.cancel(event)

    guest.start()

    guest.until(guest.is_done)
    assert guest.lines == [
        "prepare began 1",
        "prepare ended 1",
        "undo began 1",
        "undo ended 1",
    ]


def test_a_hook_that_is_canceled_gets_sigterm(guest: Guest) -> None:
    (guest.home / "hooks.d/prepare/10-hook").write_text(
        f"#!/bin/sh\ntrap 'echo stopped >> {guest.log}; exit 1' TERM\necho began >> {guest.log}\n"
        "while :; do sleep 0.05; done\n"
    )
    guest.let("undo")
    guest.start()
    event = guest.events.redeploy()
    guest.until(guest.has("began"))

    guest.events.cancel(event)

    guest.until(guest.has("undo ended 1"))
    guest.until(guest.is_done)
    assert guest.lines == ["began", "stopped", "undo began 1", "undo ended 1"]
    # So that the fixture counts as many ends as beginnings.
    with guest.log.open("a") as log:
        log.write("ended\n")


def test_a_hook_is_told_of_its_event(guest: Guest) -> None:
    told = guest.home / "told"
    (guest.home / "hooks.d/prepare/10-hook").write_text(
        f"#!/bin/sh\nenv | grep ^EVENT_ > {told}.new\nmv {told}.new {told}\n"
    )
    guest.start()

    event = guest.events.freeze(description="A pause\nof seconds")

    guest.until(told.exists)
    said = told.read_text()
    for line in (
        f"EVENT_ID={event.id}",
        "EVENT_TYPE=Freeze",
        "EVENT_STATUS=Scheduled",
        "EVENT_RESOURCES=web-0",
        "EVENT_PHASE=prepare",
        "EVENT_NAME=web-0",
        "EVENT_ATTEMPT=1",
    ):
        assert f"{line}\n" in said
