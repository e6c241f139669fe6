"""How soon a client in a VM knows of a Preempt, by long poll and by polling."""

from __future__ import annotations

import queue
import threading
import time

from forewarn.client import Change, Client, Kind, Pace
from forewarn.testing.plain_azure import PlainAzure
from forewarn.testing.scheduled_events import ScheduledEvents, emulated

_PATIENCE_SECONDS = 30


def measure(*, rounds: int) -> dict[str, float]:
    """The slowest of so many announcements, from the call that announces to the client's change."""
    with emulated(spots=["cheap"]) as scheduled_events:
        waiting = _slowest(scheduled_events, scheduled_events.url, rounds)
        with PlainAzure(scheduled_events.url) as azure:
            polling = _slowest(scheduled_events, azure.url, rounds)
    return {
        "client_notice_longpoll_ms": 1000 * waiting,
        "client_notice_polling_ms": 1000 * polling,
    }


def _slowest(scheduled_events: ScheduledEvents, url: str, rounds: int) -> float:
    told: queue.SimpleQueue[tuple[float, Change]] = queue.SimpleQueue()
    with Client(url) as client:

        def watch() -> None:
            for change in client.watch():
                told.put((time.perf_counter(), change))

        thread = threading.Thread(target=watch)
        thread.start()
        # Until the client knows what the service can do.
        time.sleep(1.5 * Pace().trial.total_seconds())
        found = [_noticed(scheduled_events, told, number / rounds) for number in range(rounds)]
        client.close()
        thread.join()
    return max(found)


def _noticed(
    scheduled_events: ScheduledEvents,
    told: queue.SimpleQueue[tuple[float, Change]],
    phase: float,
) -> float:
    # Whoever asks each second is met at every part of it.
    time.sleep(phase)
    began = time.perf_counter()
    event = scheduled_events.preempt("cheap")
    at, change = told.get(timeout=_PATIENCE_SECONDS)
    assert change.kind is Kind.ANNOUNCED
    scheduled_events.cancel(event)
    assert told.get(timeout=_PATIENCE_SECONDS)[1].kind is Kind.GONE
    return at - began
