"""What one guest takes is not taken from another."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from forewarn.testing.assailants import Assailant
from forewarn.testing.endpoints import Endpoint
from forewarn.testing.hostility import HOST, METADATA, TARGET, get, post, start_requests
from forewarn.testing.sieges import ADDRESSES, HASTY, NEIGHBOR, STRANGER
from forewarn.testing.worlds import World
from forewarn.web.limits import Limits

GUEST = ADDRESSES[0]
# Twenty at once, and then a hundred a second.
STINGY = replace(HASTY, requests_per_second_max=100, requests_burst_max=20, requests_per_turn_max=4)
CHUNKED = (
    b"POST " + TARGET + b" HTTP/1.1\r\n" + HOST + METADATA + b"Transfer-Encoding: chunked\r\n\r\n"
)


@pytest.mark.parametrize("address", [GUEST, STRANGER])
def test_a_neighbor_is_always_answered(world: World, address: str) -> None:
    """Keeps N4: a thousand connections of another guest, half-open, flooding and unread."""
    with Endpoint(world, limits=Limits()) as endpoint:
        place = endpoint.places[0]
        assailant = Assailant((place.host, place.port), address, rest_seconds=0.2)
        attack = threading.Thread(target=assailant.attack, args=(3.0,))
        with endpoint.guest(NEIGHBOR) as neighbor:
            attack.start()
            while attack.is_alive():
                assert neighbor.ask(get()).status == 200
                with endpoint.guest(NEIGHBOR) as another:
                    assert another.ask(get()).status == 200
                time.sleep(0.005)
            attack.join()

        assert assailant.feats.dropped > 500
        assert endpoint.counters.throttled > 500


def test_whoever_asks_too_fast_is_slowed_down_and_not_refused(world: World) -> None:
    with Endpoint(world, limits=STINGY) as endpoint, endpoint.guest(GUEST) as guest:
        begun = time.monotonic()
        assert {guest.ask(get()).status for _ in range(60)} == {200}
        took = time.monotonic() - begun

        with endpoint.guest(NEIGHBOR) as neighbor:
            assert neighbor.ask(get()).status == 200
    assert took > 0.3


def test_all_connections_of_a_caller_share_its_allowance(world: World) -> None:
    with Endpoint(world, limits=STINGY) as endpoint:
        guests = [endpoint.guest(GUEST) for _ in range(10)]
        begun = time.monotonic()
        for guest in guests:
            guest.send(get() * 6)
        statuses = [guest.receive().status for guest in guests for _ in range(6)]
        took = time.monotonic() - begun
        for guest in guests:
            guest.close()

    assert statuses == [200] * 60
    assert took > 0.3


def test_a_caller_that_goes_and_comes_back_has_no_more_than_before(world: World) -> None:
    begun = time.monotonic()
    with Endpoint(world, limits=STINGY) as endpoint:
        for _ in range(30):
            with endpoint.guest(GUEST) as guest:
                assert guest.ask(get()).status == 200
    assert time.monotonic() - begun > 0.3


def test_whoever_waits_in_line_may_say_that_it_is_done(world: World) -> None:
    with Endpoint(world, limits=STINGY) as endpoint:
        guests = [endpoint.guest(GUEST) for _ in range(20)]
        for guest in guests:
            guest.send(post(start_requests("x")) + get())
            guest.finish_sending()

        for guest in guests:
            assert [guest.receive().status, guest.receive().status] == [400, 200]
            assert guest.is_hung_up()
            guest.close()


def test_bytes_are_counted_too(world: World) -> None:
    slow = replace(STINGY, bytes_per_second_max=400_000, body=HASTY.idle * 5)
    body = b"x" * 60_000
    with Endpoint(world, limits=slow) as endpoint, endpoint.guest(GUEST) as guest:
        begun = time.monotonic()
        assert [guest.ask(post(body)).status for _ in range(4)] == [400] * 4
        assert time.monotonic() - begun > 0.3


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (CHUNKED + b"1\r\nx\r\n" * 129, 413),
        (CHUNKED + b"1\r\n{\r\n" * 128 + b"0\r\n\r\n", 400),
        (CHUNKED + b"0\r\n" + b"a:\r\n" * 1000, 431),
        (CHUNKED + b"1;" + b"x" * 3000, 431),
        (get()[:-2] + b"a:\n" * 70, 431),
        (get()[:-2] + b"X: y\r\n" + b" z\r\n" * 70, 431),
    ],
)
def test_what_would_take_us_long_to_read_is_refused(
    endpoint: Endpoint, request_: bytes, status: int
) -> None:
    with endpoint.guest(GUEST) as guest:
        assert guest.ask(request_).status == status


@pytest.mark.parametrize(
    "framing",
    [b"Content-Length: 99999\r\n", b"Content-Length: 5\r\nExpect: 100-continue\r\n"],
)
def test_whoever_asks_for_a_head_is_refused_without_a_body(
    endpoint: Endpoint, framing: bytes
) -> None:
    with endpoint.guest(GUEST) as guest:
        response = guest.ask(get(headers=HOST + framing, method=b"HEAD"))

        assert response.status in (400, 413)
        assert (response.headers["content-length"], response.body) == ("0", b"")
        assert guest.is_hung_up()
