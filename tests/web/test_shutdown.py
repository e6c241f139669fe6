"""How the endpoint ends: what is under way is finished, what is idle is closed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.core.events import EventType
from forewarn.stores.memory import MemoryStore
from forewarn.testing.endpoints import Endpoint
from forewarn.testing.faults import FaultyStore
from forewarn.testing.worlds import NOON, WEB, World

WEB_0 = "127.0.1.10"
TARGET = "/metadata/scheduledevents?api-version=2020-07-01"
HEAD = "Host: 169.254.169.254\r\nMetadata: true\r\n"
GET = f"GET {TARGET} HTTP/1.1\r\n{HEAD}\r\n".encode()
POLL = f"GET {TARGET}&wait=300 HTTP/1.1\r\n{HEAD}If-None-Match: 1\r\n\r\n".encode()


class Pause:
    """Keeps a commit waiting until it is told that it may go on."""

    def __init__(self) -> None:
        self.is_reached = threading.Event()
        self.may_go_on = threading.Event()

    def __call__(self) -> None:
        self.is_reached.set()
        assert self.may_go_on.wait(10), "nobody let it go on"


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


def approval(event_id: str) -> bytes:
    body = json.dumps({"StartRequests": [{"EventId": event_id}]})
    return f"POST {TARGET} HTTP/1.1\r\n{HEAD}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def slow_world() -> tuple[World, FaultyStore]:
    clock = SimulatedClock(NOON)
    store = FaultyStore(MemoryStore(clock))
    machine = replace(WEB.machines[0], addresses=(WEB_0,))
    return World(replace(WEB, machines=(machine,)), clock=clock, store=store), store


def test_waiting_guests_are_answered_and_idle_ones_closed(endpoint: Endpoint) -> None:
    """Keeps N4."""
    with endpoint.guest(WEB_0) as waiting, endpoint.guest(WEB_0) as idle:
        waiting.send(POLL)
        assert idle.ask(GET).status == 200
        wait_until(lambda: endpoint.counters.waiting == 1)
        begun = time.monotonic()
        endpoint.stop()
        response = waiting.receive()

        assert time.monotonic() - begun < 5
        assert (response.status, response.headers["connection"]) == (304, "close")
        assert waiting.is_hung_up()
        assert idle.is_hung_up()
    with pytest.raises(OSError):  # noqa: PT011 - refused or reset, as it happens
        endpoint.guest(WEB_0)


def test_an_approval_under_way_is_finished_and_answered() -> None:
    """Keeps S16: what was accepted is durable and acknowledged, also at the end."""
    world, store = slow_world()
    event = world.announce(EventType.REBOOT, "web-0")
    with Endpoint(world) as endpoint, endpoint.guest(WEB_0) as guest:
        pause = Pause()
        store.overtake(pause)
        guest.send(approval(event.id))
        assert pause.is_reached.wait(10)
        stopping = threading.Thread(target=endpoint.stop)
        stopping.start()
        assert guest.is_silent_for(timedelta(milliseconds=100))
        pause.may_go_on.set()
        response = guest.receive()
        stopping.join()

        assert (response.status, response.headers["connection"]) == (200, "close")
        assert guest.is_hung_up()
    assert world.event(event.id).approval is not None


def test_after_the_grace_everything_is_cut_off() -> None:
    world, store = slow_world()
    event = world.announce(EventType.REBOOT, "web-0")
    with Endpoint(world) as endpoint, endpoint.guest(WEB_0) as guest:
        pause = Pause()
        store.overtake(pause)
        guest.send(approval(event.id))
        assert pause.is_reached.wait(10)
        endpoint.stop(timedelta(milliseconds=50))

        assert guest.is_hung_up()
        pause.may_go_on.set()
        wait_until(lambda: world.event(event.id).approval is not None)


def test_a_request_that_has_begun_to_arrive_is_still_answered(endpoint: Endpoint) -> None:
    with endpoint.guest(WEB_0) as guest:
        guest.send(GET[:40])
        wait_until(lambda: endpoint.counters.connections == 1)
        time.sleep(0.05)
        stopping = threading.Thread(target=endpoint.stop)
        stopping.start()
        time.sleep(0.05)
        response = guest.ask(GET[40:])
        stopping.join()

        assert (response.status, response.headers["connection"]) == (200, "close")


def test_a_change_after_the_end_wakes_nobody(world: World, endpoint: Endpoint) -> None:
    endpoint.stop()

    event = world.announce(EventType.FREEZE, "web-1")

    assert event.machines == ("web-1",)
