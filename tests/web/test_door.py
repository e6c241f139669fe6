"""Short visits: a poll on a connection of its own, answered where the guest comes in."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
import uvloop

from forewarn.core.events import EventType
from forewarn.core.names import scope_id
from forewarn.core.scopes import Enabling
from forewarn.testing.endpoints import Endpoint, Response
from forewarn.testing.worlds import NOON, WEB, World
from forewarn.web.limits import Limits

WEB_0, LONER, STRANGER = "127.0.1.10", "127.0.1.99", "127.0.1.200"
POLL = (
    b"GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\n"
    b"Host: 169.254.169.254\r\nMetadata: true\r\nConnection: close\r\n\r\n"
)
OFTEN = timedelta(milliseconds=20)
# Nobody is slowed down, so that all visits but the first ones are short.
UNHURRIED = Limits(sweep=OFTEN, requests_per_turn_max=10**9)


def visit(endpoint: Endpoint, address: str, request: bytes = POLL) -> Response:
    with endpoint.guest(address) as guest:
        response = guest.ask(request)
        assert guest.is_hung_up()
        return response


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_short_visit_is_answered_like_a_long_one(
    world: World, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """Keeps S7: the first visit takes the long way, the others do not."""
    event = world.announce(EventType.REBOOT, "web-1")
    with Endpoint(world, new_loop=new_loop) as endpoint:
        first, *others = (visit(endpoint, WEB_0) for _ in range(5))

    assert [e["EventId"] for e in json.loads(first.body)["Events"]] == [event.id]
    assert {other.body for other in others} == {first.body}
    assert all(other.headers.keys() == first.headers.keys() for other in others)
    assert len({r.headers["x-ms-request-id"] for r in (first, *others)}) == 5
    assert endpoint.counters.answers["scheduledevents", 200] == 5
    assert endpoint.counters.connections == 0


def test_a_short_visit_sees_the_document_of_now(world: World, endpoint: Endpoint) -> None:
    """Keeps S1 and S7: neither who calls nor what is up is remembered."""
    before = [json.loads(visit(endpoint, WEB_0).body) for _ in range(2)]
    world.announce(EventType.FREEZE, "web-1")
    after = json.loads(visit(endpoint, WEB_0).body)
    elsewhere = json.loads(visit(endpoint, LONER).body)

    assert before[0] == before[1]
    assert (len(after["Events"]), len(elsewhere["Events"])) == (1, 0)


def test_a_stranger_with_known_bytes_is_a_stranger(endpoint: Endpoint) -> None:
    """Keeps S1."""
    visit(endpoint, WEB_0)
    visit(endpoint, WEB_0)

    assert visit(endpoint, STRANGER).status == 403
    assert endpoint.counters.strangers == 1


def test_whoever_has_too_many_connections_gets_no_short_visit_either(world: World) -> None:
    with Endpoint(world, limits=Limits(connections_per_caller_max=1, sweep=OFTEN)) as endpoint:
        # From the third on they are short.
        for _ in range(3):
            visit(endpoint, WEB_0)
        with endpoint.guest(WEB_0) as staying:
            staying.ask(POLL.replace(b"Connection: close\r\n", b""))
            refused = visit(endpoint, WEB_0)
        assert visit(endpoint, LONER).status == 200

    assert refused.status == 429


def test_whoever_wants_to_stay_may_ask_again(endpoint: Endpoint) -> None:
    """Its first request is as well known as one that wants no second."""
    poll = POLL.replace(b"Connection: close\r\n", b"")
    for _ in range(4):
        with endpoint.guest(WEB_0) as staying:
            assert [staying.ask(poll).status for _ in range(3)] == [200] * 3


def test_a_guest_may_come_and_go_without_a_word(endpoint: Endpoint) -> None:
    with endpoint.guest(WEB_0) as guest:
        guest.finish_sending()

        assert guest.is_hung_up()
    assert visit(endpoint, WEB_0).status == 200


def test_a_giant_document_arrives_whole(world: World, endpoint: Endpoint) -> None:
    """What the kernel would not take at once is not given at the door."""
    for _ in range(60):
        world.announce(EventType.FREEZE, "web-1")

    visits = [visit(endpoint, WEB_0) for _ in range(3)]

    assert {len(json.loads(v.body)["Events"]) for v in visits} == {60}


def test_short_visits_are_heard(world: World) -> None:
    """Keeps S11: whoever polls is not silent, though the endpoint looks at the clock now and then."""
    with Endpoint(world, limits=UNHURRIED) as endpoint:
        for _ in range(3):
            visit(endpoint, LONER)
        posting = world.parts.board.posting(scope_id("default", "loner"))
        assert posting is not None
        world.clock.advance(timedelta(minutes=30))
        deadline = time.monotonic() + 10
        while world.desk.attendance.silent_for(posting.ledger):
            assert time.monotonic() < deadline, "it was never heard"
            visit(endpoint, LONER)


def test_short_visits_are_taken_off_the_allowance_of_the_caller(world: World) -> None:
    """Keeps N4: whoever asks too fast is slowed down, and nobody else is."""
    stingy = Limits(sweep=OFTEN, requests_per_second_max=50, requests_burst_max=20)
    with Endpoint(world, limits=stingy) as endpoint:
        begun = time.monotonic()
        assert {visit(endpoint, WEB_0).status for _ in range(30)} == {200}
        took = time.monotonic() - begun

        assert visit(endpoint, LONER).status == 200
    # Thrice what a request costs, less what may come at once.
    assert took > 1


@pytest.mark.parametrize(
    ("set_by", "passed"),
    [
        # The hands say that it is fresh: they were set back meanwhile.
        (timedelta(minutes=-45), timedelta(hours=1)),
        # No time has passed, but by the hands it is old; or not made yet, which is as bad.
        (timedelta(hours=2), timedelta()),
        (timedelta(hours=-2), timedelta()),
    ],
)
def test_a_mark_that_is_old_by_either_clock_is_renewed_by_short_visits(
    set_by: timedelta, passed: timedelta
) -> None:
    """Keeps S11 and S13."""
    machine = replace(WEB.machines[0], addresses=(LONER,))
    world = World(replace(WEB, machines=(machine,), enabling=Enabling.ON_REQUEST))
    with Endpoint(world, limits=UNHURRIED) as endpoint:
        for _ in range(5):
            visit(endpoint, LONER)
        marked = world.desk.books.load(WEB.id).heard_at
        world.clock.jump(set_by)
        world.clock.advance(passed)
        deadline = time.monotonic() + 10
        while world.desk.books.load(WEB.id).heard_at == marked:
            assert time.monotonic() < deadline, "it was never marked"
            visit(endpoint, LONER)

    assert world.desk.books.load(WEB.id).heard_at == NOON + set_by + passed
