"""What a guest may take of us, and how long it may take."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from forewarn.testing.endpoints import Endpoint, Guest
from forewarn.testing.worlds import World
from forewarn.web.limits import Limits

WEB_0, WEB_1, STRANGER, OTHER_STRANGER = "127.0.1.10", "127.0.1.11", "127.0.1.200", "127.0.1.201"
PATH = "/metadata/scheduledevents?api-version=2020-07-01"
HEAD = "Host: 169.254.169.254\r\nMetadata: true\r\n"
GET = f"GET {PATH} HTTP/1.1\r\n{HEAD}\r\n".encode()
QUICK = timedelta(milliseconds=10)
SOON = timedelta(milliseconds=200)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (f"GET {PATH}&x={'x' * 9000} HTTP/1.1\r\n{HEAD}\r\n", 414),
        (f"GET {PATH}&x={'x' * 9000}", 414),
        (f"GET {PATH} HTTP/1.1\r\n{HEAD}X: {'x' * 17000}\r\n\r\n", 431),
        (f"GET {PATH} HTTP/1.1\r\n{HEAD}X: {'x' * 17000}", 431),
        (f"GET {PATH} HTTP/1.1\r\n{HEAD}" + "X: x\r\n" * 63 + "\r\n", 431),
        (f"POST {PATH} HTTP/1.1\r\n{HEAD}Content-Length: 65537\r\n\r\n", 413),
        (
            f"POST {PATH} HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n10001\r\n"
            + "x" * 0x10001,
            413,
        ),
    ],
)
def test_what_is_too_much_is_refused_and_cut_off(
    endpoint: Endpoint, request_: str, status: int
) -> None:
    with endpoint.guest(WEB_0) as guest:
        response = guest.ask(request_.encode())

        assert (response.status, response.headers["connection"]) == (status, "close")
        assert "error" in json.loads(response.body)
        assert guest.is_hung_up()


def test_what_is_just_not_too_much_is_answered(endpoint: Endpoint) -> None:
    long_line = f"GET {PATH}&x={'x' * 8000} HTTP/1.1\r\n{HEAD}\r\n"
    long_head = f"GET {PATH} HTTP/1.1\r\n{HEAD}X: {'x' * 16000}\r\n\r\n"
    many = f"GET {PATH} HTTP/1.1\r\n{HEAD}" + "X: x\r\n" * 62 + "\r\n"
    body = json.dumps({"StartRequests": [], "x": "x" * 65000})
    long_body = f"POST {PATH} HTTP/1.1\r\n{HEAD}Content-Length: {len(body)}\r\n\r\n{body}"
    with endpoint.guest(WEB_0) as guest:
        for request, status in ((long_line, 200), (long_head, 200), (many, 200), (long_body, 400)):
            assert guest.ask(request.encode()).status == status


def test_a_refused_guest_can_read_why_however_much_it_sends(endpoint: Endpoint) -> None:
    head = f"POST {PATH} HTTP/1.1\r\n{HEAD}Content-Length: 3000000\r\n\r\n"
    with endpoint.guest(WEB_0) as guest:
        guest.send(head.encode() + b"x" * 3_000_000)

        assert guest.receive().status == 413


@pytest.mark.parametrize(
    "beginning",
    [
        b"G",
        GET[:40],
        f"POST {PATH} HTTP/1.1\r\n{HEAD}Content-Length: 5\r\n\r\nhell".encode(),
    ],
)
def test_a_request_must_arrive_in_time(world: World, beginning: bytes) -> None:
    limits = Limits(head=SOON, body=SOON, sweep=QUICK)
    with Endpoint(world, limits=limits) as endpoint, endpoint.guest(WEB_0) as guest:
        begun = time.monotonic()
        response = guest.ask(beginning)

        assert time.monotonic() - begun < 5
        assert (response.status, response.headers["connection"]) == (408, "close")
        assert guest.is_hung_up()


def test_one_byte_at_a_time_does_not_buy_time(world: World) -> None:
    limits = Limits(head=SOON, sweep=QUICK)
    with Endpoint(world, limits=limits) as endpoint, endpoint.guest(WEB_0) as guest:
        for byte in GET[:10]:
            guest.send(bytes([byte]))
            time.sleep(0.03)

        assert guest.receive().status == 408


def test_an_idle_connection_is_closed_without_a_word(world: World) -> None:
    limits = Limits(idle=SOON, sweep=QUICK)
    with Endpoint(world, limits=limits) as endpoint, endpoint.guest(WEB_0) as guest:
        assert guest.ask(GET).status == 200
        assert guest.is_hung_up()


def test_a_long_poll_is_not_idle(world: World) -> None:
    """Keeps N4."""
    limits = Limits(idle=SOON, head=SOON, body=SOON, write=SOON, sweep=QUICK)
    poll = GET.replace(b"2020-07-01", b"2020-07-01&wait=1").replace(
        b"\r\n\r\n", b"\r\nIf-None-Match: 1\r\n\r\n"
    )
    with Endpoint(world, limits=limits) as endpoint, endpoint.guest(WEB_0) as guest:
        assert guest.ask(poll).status == 304


def flood(guest: Guest) -> None:
    for _ in range(100_000):
        guest.send(GET * 100)


def test_a_guest_that_does_not_read_is_dropped(world: World) -> None:
    limits = Limits(write=SOON, sweep=QUICK)
    with Endpoint(world, limits=limits) as endpoint, endpoint.guest(WEB_0) as guest:
        # Reset or broken pipe, as it happens.
        with pytest.raises(ConnectionError):
            flood(guest)

        wait_until(lambda: endpoint.counters.connections == 0)


def test_a_refused_guest_that_stays_is_dropped(world: World) -> None:
    limits = Limits(linger=SOON, sweep=QUICK)
    with Endpoint(world, limits=limits) as endpoint, endpoint.guest(WEB_0) as guest:
        assert guest.ask(b"hello\r\n\r\n").status == 400
        wait_until(lambda: endpoint.counters.connections == 0)


def test_a_caller_has_so_many_connections(world: World) -> None:
    """Keeps N4: long polls are counted like the others."""
    limits = Limits(connections_per_caller_max=2, sweep=QUICK)
    poll = GET.replace(b"2020-07-01", b"2020-07-01&wait=300").replace(
        b"\r\n\r\n", b"\r\nIf-None-Match: 1\r\n\r\n"
    )
    with Endpoint(world, limits=limits) as endpoint:
        with endpoint.guest(WEB_0) as one, endpoint.guest(WEB_0) as two:
            one.send(poll)
            assert two.ask(GET).status == 200
            with endpoint.guest(WEB_0) as three, endpoint.guest(WEB_1) as other:
                refused = three.ask(GET)
                assert (refused.status, refused.headers["connection"]) == (429, "close")
                assert refused.headers["retry-after"] == "1"
                assert other.ask(GET).status == 200
        wait_until(lambda: endpoint.counters.connections == 0)
        with endpoint.guest(WEB_0) as again:
            assert again.ask(GET).status == 200
    assert endpoint.counters.throttled == 1


def test_a_short_visit_is_a_connection_too(world: World) -> None:
    limits = Limits(connections_per_caller_max=1, sweep=QUICK)
    visit = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with Endpoint(world, limits=limits) as endpoint:
        for _ in range(3):
            with endpoint.guest(WEB_0) as short:
                assert short.ask(visit).status == 200
            wait_until(lambda: endpoint.counters.connections == 0)
        with endpoint.guest(WEB_0) as long:
            assert long.ask(GET).status == 200
            with endpoint.guest(WEB_0) as short:
                assert short.ask(visit).status == 429


def test_whoever_has_far_too_many_connections_is_no_longer_answered(world: World) -> None:
    limits = Limits(connections_per_caller_max=1, sweep=QUICK)
    with Endpoint(world, limits=limits) as endpoint:
        guests: list[Guest] = [endpoint.guest(WEB_0) for _ in range(2)]
        wait_until(lambda: endpoint.counters.connections == 2)
        guests.append(endpoint.guest(WEB_0))

        assert guests[2].is_hung_up()
        for guest in guests:
            guest.close()


def test_all_strangers_together_have_so_many_connections(world: World) -> None:
    limits = Limits(connections_of_strangers_max=1, sweep=QUICK)
    with Endpoint(world, limits=limits) as endpoint, endpoint.guest(STRANGER) as one:
        wait_until(lambda: endpoint.counters.connections == 1)
        with endpoint.guest(OTHER_STRANGER) as two, endpoint.guest(WEB_0) as guest:
            assert two.ask(GET).status == 429
            assert guest.ask(GET).status == 200
        assert one.ask(GET).status == 403


def test_all_together_have_so_many_connections(world: World) -> None:
    limits = Limits(connections_max=1, sweep=QUICK)
    with Endpoint(world, limits=limits) as endpoint, endpoint.guest(WEB_0) as one:
        assert one.ask(GET).status == 200
        with endpoint.guest(WEB_1) as two:
            assert two.is_hung_up()
