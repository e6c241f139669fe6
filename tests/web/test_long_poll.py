"""Guests that wait for another document."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from forewarn.core.events import EventType
from forewarn.core.journal import What
from forewarn.testing.endpoints import Endpoint
from forewarn.testing.worlds import OPERATOR, World

WEB_0, WEB_1, LONER = "127.0.1.10", "127.0.1.11", "127.0.1.99"
A_MOMENT = timedelta(milliseconds=100)


def poll(wait: int, tag: str | None = '"1"') -> bytes:
    condition = "" if tag is None else f"If-None-Match: {tag}\r\n"
    return (
        f"GET /metadata/scheduledevents?api-version=2020-07-01&wait={wait} HTTP/1.1\r\n"
        f"Host: 169.254.169.254\r\nMetadata: true\r\n{condition}\r\n"
    ).encode()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


@pytest.mark.parametrize("tag", ['"1"', "1", "*"])
def test_a_guest_is_answered_when_the_document_changes(
    world: World, endpoint: Endpoint, tag: str
) -> None:
    """Keeps N4."""
    with endpoint.guest(WEB_0) as guest, endpoint.guest(WEB_1) as other:
        for waiting in (guest, other):
            waiting.send(poll(300, tag))
        wait_until(lambda: endpoint.counters.waiting == 2)
        assert guest.is_silent_for(A_MOMENT)
        event = world.announce(EventType.FREEZE, "web-1")
        first, second = guest.receive(), other.receive()

        assert (first.status, first.headers["etag"]) == (200, '"2"')
        assert json.loads(first.body)["Events"][0]["EventId"] == event.id
        assert second.body == first.body
        assert endpoint.counters.waiting == 0
        # The connection goes on.
        guest.send(poll(300, '"2"'))
        wait_until(lambda: endpoint.counters.waiting == 1)
        world.desk.cancel(event.id, OPERATOR)
        assert guest.receive().headers["etag"] == '"3"'


def test_a_change_elsewhere_wakes_nobody(world: World, endpoint: Endpoint) -> None:
    with endpoint.guest(LONER) as guest:
        guest.send(poll(300))
        wait_until(lambda: endpoint.counters.waiting == 1)
        world.announce(EventType.FREEZE, "web-1")

        assert guest.is_silent_for(A_MOMENT)


def test_an_approval_is_not_news(world: World, endpoint: Endpoint) -> None:
    """Keeps N4: a commit that guests cannot see ends no wait."""
    world.announce(EventType.FREEZE, "web-1")
    first = world.announce(EventType.REBOOT, "web-1")
    with endpoint.guest(WEB_0) as guest:
        incarnation = world.document(world.caller(WEB_0).scope).incarnation
        guest.send(poll(300, str(incarnation)))
        wait_until(lambda: endpoint.counters.waiting == 1)
        world.desk.approve(first.id, OPERATOR)

        assert guest.is_silent_for(A_MOMENT)


def test_when_the_time_is_over_nothing_has_changed(endpoint: Endpoint) -> None:
    """Keeps N4."""
    with endpoint.guest(WEB_0) as guest:
        begun = time.monotonic()
        response = guest.ask(poll(1))

        assert 1 <= time.monotonic() - begun < 3
        assert (response.status, response.headers["etag"]) == (304, '"1"')
        assert guest.ask(poll(0)).status == 304


@pytest.mark.parametrize("tag", [None, '"0"', '"17"', "nonsense"])
def test_whoever_does_not_know_the_document_does_not_wait(
    endpoint: Endpoint, tag: str | None
) -> None:
    """Keeps N4."""
    with endpoint.guest(WEB_0) as guest:
        assert guest.ask(poll(300, tag)).status == 200


def test_a_plain_request_never_waits(endpoint: Endpoint) -> None:
    """Keeps N4."""
    with endpoint.guest(WEB_0) as guest:
        assert guest.ask(poll(0).replace(b"&wait=0", b"")).status == 304
        assert guest.ask(poll(0)).status == 304


def test_a_wait_enables_first(world: World, endpoint: Endpoint) -> None:
    """Keeps S13."""
    with endpoint.guest(LONER) as guest:
        guest.send(poll(300))
        wait_until(lambda: endpoint.counters.waiting == 1)

        assert [e.what for e in world.journal() if e.what is What.ENABLED]


def test_a_guest_that_leaves_is_no_longer_waited_for(endpoint: Endpoint) -> None:
    with endpoint.guest(WEB_0) as guest:
        guest.send(poll(300))
        wait_until(lambda: endpoint.counters.waiting == 1)
    wait_until(lambda: endpoint.counters.waiting == 0)
    wait_until(lambda: endpoint.counters.connections == 0)


def test_what_is_sent_during_a_wait_is_answered_after_it(world: World, endpoint: Endpoint) -> None:
    with endpoint.guest(WEB_0) as guest:
        guest.send(poll(300))
        wait_until(lambda: endpoint.counters.waiting == 1)
        guest.send(poll(0, '"2"'))
        assert guest.is_silent_for(A_MOMENT)
        world.announce(EventType.FREEZE, "web-1")

        assert [guest.receive().status for _ in range(2)] == [200, 304]


def test_a_machine_taken_from_the_fleet_is_a_stranger_at_the_end_of_its_wait(
    world: World, endpoint: Endpoint
) -> None:
    with endpoint.guest(LONER) as guest:
        guest.send(poll(1))
        wait_until(lambda: endpoint.counters.waiting == 1)
        world.declare()

        assert guest.receive().status == 403


def test_many_guests_are_woken_together(world: World, endpoint: Endpoint) -> None:
    guests = [endpoint.guest(WEB_0) for _ in range(60)]
    for guest in guests:
        guest.send(poll(300))
    wait_until(lambda: endpoint.counters.waiting == len(guests))
    world.announce(EventType.FREEZE, "web-1")
    statuses = {guest.receive().status for guest in guests}
    for guest in guests:
        guest.close()

    assert statuses == {200}
