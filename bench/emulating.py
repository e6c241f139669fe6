"""How soon an emulator answers, and how long a story of fifteen minutes takes: there, and in a test."""

from __future__ import annotations

import time
from statistics import median

from bench import measuring
from forewarn.testing.emulators import EmulatorProcess
from forewarn.testing.processes import PATH, VERSION, HttpReply, request
from forewarn.testing.scheduled_events import emulated


def measure(*, starts: int, stories: int) -> dict[str, float]:
    """Starts of new emulators; stories in one of them, after a reset each; and as tests tell them."""
    ready: list[float] = []
    processor: list[float] = []
    told: list[float] = []
    resets: list[float] = []
    with measuring.workplace() as directory:
        log = directory / "emulator.log"
        for _ in range(starts):
            began = time.perf_counter()
            with EmulatorProcess(log) as emulator:
                ready.append(time.perf_counter() - began)
                processor.append(measuring.processor_seconds(emulator.process.pid))
        with EmulatorProcess(log, "--vm", "web-0", "--clock", "manual") as emulator:
            for _ in range(stories):
                began = time.perf_counter()
                emulator.ask("POST", "/emulator/reset", {})
                resets.append(time.perf_counter() - began)
                told.append(_story(emulator))
    return {
        "emulator_ready_ms": 1000 * median(ready),
        "emulator_ready_cpu_ms": 1000 * median(processor),
        "emulator_reset_ms": 1000 * median(resets),
        "emulator_story_15_minutes_ms": 1000 * median(told),
        "story_15_minutes_ms": 1000 * median(_test() for _ in range(stories)),
    }


def _story(emulator: EmulatorProcess) -> float:
    """Announce, read, approve, start, complete, each over a socket; how many seconds it took."""
    began = time.perf_counter()
    event = emulator.announce("Reboot", "web-0")["event_id"]
    assert emulator.seen_by("web-0")
    emulator.advance(seconds=14 * 60)
    assert emulator.guest("web-0", "POST", {"StartRequests": [{"EventId": event}]}).status == 200
    emulator.ask("POST", "/emulator/idle", {})
    assert emulator.seen_by("web-0") == [("Reboot", "Started", "")]
    emulator.advance(next=True)
    assert emulator.seen_by("web-0") == []
    return time.perf_counter() - began


def _test() -> float:
    """The same as the fixture of the pytest plugin has it, the making and the end of its world too."""
    began = time.perf_counter()
    with emulated() as scheduled_events:
        url = scheduled_events.url
        event = scheduled_events.reboot("web-0")
        assert _ask(url).json["Events"]
        scheduled_events.advance(minutes=14)
        assert _ask(url, f'{{"StartRequests":[{{"EventId":"{event.id}"}}]}}').status == 200
        assert event.approved_by == "web-0"
        assert _ask(url).json["Events"][0]["EventStatus"] == "Started"
        scheduled_events.advance_to_next()
        assert event.completed
        assert _ask(url).json["Events"] == []
    return time.perf_counter() - began


def _ask(url: str, body: str | None = None) -> HttpReply:
    method, sent = ("GET", None) if body is None else ("POST", body.encode())
    headers = {"Metadata": "true"}
    return request(url, method, f"{PATH}?api-version={VERSION}", headers=headers, body=sent)
