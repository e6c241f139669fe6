"""The judge of rude exchanges sees what is wrong; or else its silence proves nothing."""

from __future__ import annotations

import pytest

from forewarn.testing import hostility
from forewarn.testing.hostility import Exchange, Farewell, get, post, start_requests
from forewarn.testing.oracle import Outcome, reading

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
REFUSED = b'HTTP/1.1 400 No\r\nConnection: close\r\nContent-Length: 13\r\n\r\n{"error": ""}'
UNKNOWN = b'HTTP/1.1 404 No\r\nContent-Length: 13\r\n\r\n{"error": ""}'
GONE = b'HTTP/1.1 404 No\r\nConnection: close\r\nContent-Length: 13\r\n\r\n{"error": ""}'
# Asks for what is not there, and for leave to send a body, and then sends what is none.
CHUNKED = hostility.HOST + hostility.METADATA + b"Transfer-Encoding: chunked\r\n"
EAGER = get(b"/x", CHUNKED + b"Expect: 100-continue\r\n", b"POST") + b"1\r\nx\r\n0\r\nbad\r\n\r\n"


def verdict(sent: bytes, answered: bytes, *, farewell: Farewell = Farewell.FINISH) -> str:
    outcome = Outcome(Exchange("test", (sent,), farewell))
    if answered:
        outcome.hear(answered)
    outcome.is_hung_up = True
    return outcome.verdict() or ""


@pytest.mark.parametrize(
    ("sent", "answered", "complaint"),
    [
        (get(), OK + OK, "2 answers to 1 requests"),
        (get(), OK + REFUSED + OK, "an answer after the last one"),
        (get() * 2, OK, "1 answers to 2 requests, and no reason why"),
        (get(), OK[:-1], "half an answer"),
        (get(), b"<html>\r\n\r\n", "not an HTTP response"),
        (get(), b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "not an HTTP response"),
        (get(), UNKNOWN, "answer 0 is 404, not one of [200]"),
        (get(), b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "answer 0 is 500"),
        (post(b"nonsense"), OK, "answer 0 is 200, not one of [400]"),
        (b"nonsense\r\n\r\n", OK, "1 answers to 0 requests"),
        (b"nonsense\r\n\r\n", b"", "was not refused"),
        (get(b"/x", method=b"HEAD"), UNKNOWN, "half an answer"),
        (EAGER, UNKNOWN, "1 answers to 0 requests"),
        (EAGER, OK, "1 answers to 0 requests"),
        (EAGER.replace(b"Expect", b"Unexpected"), GONE, "1 answers to 0 requests"),
        (get() + EAGER, OK + OK, "2 answers to 1 requests"),
    ],
)
def test_what_is_wrong_is_seen(sent: bytes, answered: bytes, complaint: str) -> None:
    assert complaint in verdict(sent, answered)


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (get(), OK),
        (get() * 3, OK * 3),
        (get() + b"nonsense\r\n\r\n", OK + REFUSED),
        (get() * 2, REFUSED),
        (get()[:-1], b""),
        (get(b"/x"), UNKNOWN),
        (post(start_requests("x")), b"HTTP/1.1 100 Continue\r\n\r\n" + OK),
        (get(headers=hostility.HOST + b"Metadata: true\r\nConnection: close\r\n") + get(), OK),
        (get(b"/metadata/scheduledevents?api-version=2020-07-01&wait=9"), b""),
        (EAGER, GONE),
        (EAGER, REFUSED),
        (EAGER[:-9], GONE),
        (get() + EAGER, OK + GONE),
    ],
)
def test_what_is_right_is_left_alone(sent: bytes, answered: bytes) -> None:
    assert verdict(sent, answered) == ""


def test_silence_is_seen() -> None:
    outcome = Outcome(Exchange("test", (get(),)))
    outcome.is_too_late = True

    assert outcome.verdict() == "neither answered nor closed in time"


def test_being_cut_off_is_seen_unless_one_asked_for_it() -> None:
    for farewell, complaint in (
        (Farewell.LISTEN, "cut off without a word"),
        (Farewell.RESET, None),
    ):
        outcome = Outcome(Exchange("test", (get(),), farewell))
        outcome.is_hung_up = outcome.is_reset = True

        assert outcome.verdict() == complaint


def test_a_request_that_is_hidden_in_another_is_none() -> None:
    hidden = post(start_requests("x"))

    assert [one.event_ids for one in reading(hidden).asked] == [("x",)]
    assert [one.event_ids for one in reading(post(hidden)).asked] == [()]


def test_the_same_seed_makes_the_same_exchanges() -> None:
    made = [hostility.exchange(1, number) for number in range(300)]

    assert made == [hostility.exchange(1, number) for number in range(300)]
    assert made != [hostility.exchange(2, number) for number in range(300)]
    assert len({one.kind for one in made}) > 10
