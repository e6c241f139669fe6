"""How soon the agent in a VM acts on a Preempt, and what it costs while nothing happens."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bench.measuring import KB, processor_seconds, resident_bytes
from forewarn.client import Pace
from forewarn.testing.plain_azure import PlainAzure
from forewarn.testing.scheduled_events import ScheduledEvents, emulated

_HOOK = "#!/bin/sh\necho $EVENT_ID > {fifo}\n"
_PATIENCE_SECONDS = 30


def measure(*, rounds: int, idle_seconds: float) -> dict[str, float]:
    """The slowest of so many, from the call that announces to the hook's first act; and idling."""
    with emulated(spots=["cheap"]) as events:
        waiting = _measured(events, events.url, rounds, idle_seconds)
        with PlainAzure(events.url) as azure:
            polling = _measured(events, azure.url, rounds, idle_seconds)
    figures = {"longpoll": waiting, "polling": polling}
    return {
        f"agent_{what}_{how}": value
        for how, found in figures.items()
        for what, value in found.items()
    }


def _measured(
    events: ScheduledEvents, url: str, rounds: int, idle_seconds: float
) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as home, _agent(url, Path(home)) as (agent, fifo):
        # Until the agent knows what the service can do.
        time.sleep(2 * Pace().trial.total_seconds())
        before = processor_seconds(agent)
        time.sleep(idle_seconds)
        share = (processor_seconds(agent) - before) / idle_seconds
        rss = resident_bytes(agent) / KB / KB
        state = Path(home) / "state" / "cases"
        found = [_noticed(events, fifo, state, number / rounds) for number in range(rounds)]
    return {"notice_ms": 1000 * max(found), "idle_mb": rss, "idle_core_percent": 100 * share}


@contextmanager
def _agent(url: str, home: Path) -> Iterator[tuple[int, int]]:
    fifo = home / "fifo"
    os.mkfifo(fifo)
    hook = home / "hooks.d" / "prepare" / "10-tell"
    hook.parent.mkdir(parents=True)
    hook.write_text(_HOOK.format(fifo=fifo))
    hook.chmod(0o755)
    (home / "agent.toml").write_text(
        f'endpoint = "{url}"\nstate = "{home}/state"\nhooks = "{home}/hooks.d"\n'
        'listen = "127.0.0.1:0"\n[[rules]]\napprove = "never"\n'
    )
    # For writing too, so that it does not end when a hook does.
    told = os.open(fifo, os.O_RDWR)
    command = [sys.executable, "-m", "forewarn", "agent", "--config", str(home / "agent.toml")]
    with (home / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as agent:
        try:
            yield agent.pid, told
        finally:
            agent.terminate()
            os.close(told)


def _noticed(events: ScheduledEvents, fifo: int, state: Path, phase: float) -> float:
    # Whoever asks each second is met at every part of it.
    time.sleep(phase)
    # The agent's clock goes on by itself.
    events.advance_to(max(datetime.now(UTC), events.now))
    began = time.perf_counter()
    event = events.preempt("cheap")
    told = os.read(fifo, 100).decode().strip()
    took = time.perf_counter() - began
    assert told == event.id, f"the hook was told of {told}"
    events.cancel(event)
    until = time.monotonic() + _PATIENCE_SECONDS
    while list(state.glob("*.json")):
        assert time.monotonic() < until, "it was never undone"
        time.sleep(0.01)
    return took
