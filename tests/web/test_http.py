"""How HTTP is spoken on a guest's connection, byte by byte."""

from __future__ import annotations

import json
import threading
import time

import pytest

from forewarn.core.events import EventType
from forewarn.testing.endpoints import Endpoint
from forewarn.testing.worlds import World

WEB_0 = "127.0.1.10"
TARGET = b"/metadata/scheduledevents?api-version=2020-07-01"
HEADERS = b"Host: 169.254.169.254\r\nMetadata: true\r\n"
GET = b"GET " + TARGET + b" HTTP/1.1\r\n" + HEADERS + b"\r\n"
POST = b"POST " + TARGET + b" HTTP/1.1\r\n" + HEADERS


def start_requests(event_id: str) -> bytes:
    return json.dumps({"StartRequests": [{"EventId": event_id}]}).encode()


def test_a_connection_is_kept(endpoint: Endpoint) -> None:
    with endpoint.guest(WEB_0) as guest:
        assert [guest.ask(GET).status for _ in range(5)] == [200] * 5


def test_requests_sent_ahead_are_answered_in_order(world: World, endpoint: Endpoint) -> None:
    event = world.announce(EventType.REBOOT, "web-1")
    body = start_requests(event.id)
    bad = GET.replace(b"2020-07-01", b"2024-07-09")
    approval = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with endpoint.guest(WEB_0) as guest:
        guest.send(GET + bad + approval + GET + bad)

        assert [guest.receive().status for _ in range(5)] == [200, 404, 200, 200, 404]
        assert guest.ask(GET).status == 200


def test_many_requests_sent_ahead_are_all_answered(endpoint: Endpoint) -> None:
    with endpoint.guest(WEB_0) as guest:
        guest.send(GET * 2000)

        assert {guest.receive().status for _ in range(2000)} == {200}


@pytest.mark.parametrize("ending", [b"", GET[:40]])
def test_a_guest_that_reads_late_gets_every_answer(endpoint: Endpoint, ending: bytes) -> None:
    with endpoint.guest(WEB_0) as guest:
        sending = threading.Thread(target=guest.send, args=(GET * 3000 + ending,))
        sending.start()
        time.sleep(0.2)
        assert {guest.receive().status for _ in range(3000)} == {200}
        sending.join()
        guest.finish_sending()

        assert guest.is_hung_up()


def test_a_request_may_arrive_in_pieces(world: World, endpoint: Endpoint) -> None:
    event = world.announce(EventType.REBOOT, "web-1")
    body = start_requests(event.id)
    approval = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with endpoint.guest(WEB_0) as guest:
        for request in (GET, approval):
            for at in range(len(request)):
                guest.send(request[at : at + 1])
            assert guest.receive().status == 200
        guest.send(GET[:50])
        assert guest.ask(GET[50:] + GET[:50]).status == 200
        assert guest.ask(GET[50:]).status == 200
    assert len(endpoint.server.memo) == 0


def test_a_body_may_come_in_chunks(world: World, endpoint: Endpoint) -> None:
    event = world.announce(EventType.REBOOT, "web-1")
    body = start_requests(event.id)
    chunks = b"".join(b"%x\r\n%b\r\n" % (1, body[at : at + 1]) for at in range(len(body)))
    with endpoint.guest(WEB_0) as guest:
        response = guest.ask(POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")

        assert response.status == 200
        assert guest.ask(GET).status == 200


def test_a_get_may_have_a_body_which_means_nothing(endpoint: Endpoint) -> None:
    with endpoint.guest(WEB_0) as guest:
        for _ in range(2):
            with_body = GET[:-2] + b"Content-Length: 5\r\n\r\nhello"
            assert guest.ask(with_body).status == 200
    assert len(endpoint.server.memo) == 0


def test_a_guest_that_asks_for_leave_gets_it(world: World, endpoint: Endpoint) -> None:
    event = world.announce(EventType.REBOOT, "web-1")
    body = start_requests(event.id)
    head = POST + b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(body)
    with endpoint.guest(WEB_0) as guest:
        leave = guest.ask(head)
        guest.send(body[:5])
        response = guest.ask(body[5:])

        assert (leave.status, response.status) == (100, 200)
        # Whoever does not wait for it does not get it.
        assert guest.ask(head + body).status == 200


def test_leave_is_not_given_to_what_will_be_refused(endpoint: Endpoint) -> None:
    head = POST.replace(b"Metadata: true\r\n", b"") + b"Content-Length: 9\r\n"
    with endpoint.guest(WEB_0) as guest:
        response = guest.ask(head + b"Expect: 100-continue\r\n\r\n")

        assert (response.status, response.headers["connection"]) == (400, "close")
        assert guest.is_hung_up()


@pytest.mark.parametrize(
    "request_",
    [
        b"GET " + TARGET + b" HTTP/1.0\r\nMetadata: true\r\n\r\n",
        b"GET " + TARGET + b" HTTP/1.0\r\nMetadata: true\r\nConnection: keep-alive\r\n\r\n",
        GET[:-2] + b"Connection: close\r\n\r\n",
    ],
)
def test_the_server_says_when_it_closes(endpoint: Endpoint, request_: bytes) -> None:
    for _ in range(3):
        with endpoint.guest(WEB_0) as guest:
            response = guest.ask(request_)

            assert (response.status, response.headers["connection"]) == (200, "close")
            assert guest.is_hung_up()


def test_what_is_sent_after_a_last_request_is_not_answered(endpoint: Endpoint) -> None:
    with endpoint.guest(WEB_0) as guest:
        assert guest.ask(GET[:-2] + b"Connection: close\r\n\r\n" + GET).status == 200
        assert guest.is_hung_up()


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"\r\n\r\n",
        b"GET " + TARGET + b" HTTP/1.1\r\nMetadata: true\r\n\r\n",
        b"GET " + TARGET + b" HTTP/1.1\r\nHost: a\r\nHost: b\r\nMetadata: true\r\n\r\n",
        b"GET " + TARGET + b" HTTP/2.0\r\n" + HEADERS + b"\r\n",
        b"GET " + TARGET + b"\r\n",
        b"GET  " + TARGET + b" HTTP/1.1\r\n" + HEADERS + b"\r\n",
        b"GET /\xff HTTP/1.1\r\n" + HEADERS + b"\r\n",
        GET[:-2] + b"Bad Name: x\r\n\r\n",
        GET[:-2] + b"Name : x\r\n\r\n",
        GET[:-2] + b"Name: \x00\r\n\r\n",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: +5\r\n\r\nhello",
        POST + b"Content-Length: x\r\n\r\n",
        POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: gzip\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n",
    ],
)
def test_what_is_not_http_is_refused_and_cut_off(endpoint: Endpoint, request_: bytes) -> None:
    for _ in range(2):
        with endpoint.guest(WEB_0) as guest:
            response = guest.ask(request_ + b"\r\n")

            assert (response.status, response.headers["connection"]) == (400, "close")
            assert "error" in json.loads(response.body)
            assert guest.is_hung_up()
    assert len(endpoint.server.memo) == 0


def test_a_change_of_protocols_is_declined(endpoint: Endpoint) -> None:
    upgrade = GET[:-2] + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n"
    with endpoint.guest(WEB_0) as guest:
        assert guest.ask(upgrade).status == 200
        assert guest.ask(GET).status == 200


def test_a_head_has_no_body(endpoint: Endpoint) -> None:
    with endpoint.guest(WEB_0) as guest:
        response = guest.ask(GET.replace(b"GET", b"HEAD", 1))

        assert (response.status, response.body) == (405, b"")
        assert guest.ask(GET).status == 200


def test_a_guest_may_say_that_it_is_done_before_it_is_answered(
    world: World, endpoint: Endpoint
) -> None:
    body = start_requests(world.announce(EventType.REBOOT, "web-1").id)
    approval = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    several = approval + GET + approval + GET
    for requests, count in ((approval, 1), (several, 4), (several + GET[:40], 4)):
        with endpoint.guest(WEB_0) as guest:
            guest.send(requests)
            guest.finish_sending()

            assert [guest.receive().status for _ in range(count)] == [200] * count
            assert guest.is_hung_up()


def test_a_guest_that_leaves_in_the_middle_is_forgotten(endpoint: Endpoint) -> None:
    with endpoint.guest(WEB_0) as guest:
        guest.send(GET[:40])
        guest.finish_sending()

        assert guest.is_hung_up()
