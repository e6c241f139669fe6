"""Requests to bytes, and answers from bytes, however they are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.client.messages import (
    BODY_SIZE_MAX,
    HEAD_SIZE_MAX,
    Answer,
    AnswerReader,
    Failing,
    Failure,
    Request,
)
from forewarn.errors import Malformed

OK = b"HTTP/1.1 200 OK\r\n"
ANSWERS = [
    (OK + b"Content-Length: 5\r\nETag: x\r\n\r\nhello", 200, b"hello", True),
    (OK + b"content-length:5\r\nConnection: close\r\n\r\nhello", 200, b"hello", False),
    (OK + b"Content-Length: 0\r\n\r\n", 200, b"", True),
    (b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", 304, b"", True),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, b"hi", False),
    (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", 200, b"hi", True),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nhi", 200, b"hi", True),
    (
        OK + b"Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        200,
        b"hello",
        True,
    ),
    (
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nTrailer: y\r\n\r\n",
        200,
        b"x",
        True,
    ),
]


def fed(pieces: list[bytes]) -> Answer | None:
    reader = AnswerReader()
    for piece in pieces[:-1]:
        assert reader.feed(piece) is None
    return reader.feed(pieces[-1])


@pytest.mark.parametrize(("sent", "status", "body", "keeps_alive"), ANSWERS)
def test_an_answer_is_read_however_it_is_cut(
    *, sent: bytes, status: int, body: bytes, keeps_alive: bool
) -> None:
    pieces = [sent[at : at + 1] for at in range(len(sent))]

    for answer in (fed([sent]), fed(pieces)):
        assert answer is not None
        assert (answer.status, answer.body, answer.keeps_alive) == (status, body, keeps_alive)


@pytest.mark.parametrize("sent", [sent for sent, *_ in ANSWERS])
def test_an_answer_that_ends_early_is_none(sent: bytes) -> None:
    for size in range(len(sent)):
        reader = AnswerReader()
        assert reader.feed(sent[:size]) is None
        with pytest.raises(Malformed):
            reader.end()


def test_an_answer_that_does_not_say_how_long_it_is_ends_with_its_connection() -> None:
    reader = AnswerReader()
    assert not reader.has_begun
    assert reader.feed(OK + b"\r\nhel") is None
    assert reader.feed(b"lo") is None
    assert reader.has_begun

    answer = reader.end()

    assert answer.body == b"hello"
    assert not answer.keeps_alive


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        OK + b"Content-Length: x\r\n\r\n",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: %d\r\n\r\n" % (BODY_SIZE_MAX + 1),
        OK + b"Transfer-Encoding: chunked\r\n\r\nx\r\n",
        OK + b"\r\n" + b"x" * (BODY_SIZE_MAX + 1),
        b"x" * (HEAD_SIZE_MAX + 1),
    ],
    ids=lambda sent: repr(sent[:60]),
)
def test_what_is_no_answer_is_refused(sent: bytes) -> None:
    with pytest.raises(Malformed):
        AnswerReader().feed(sent)


@given(st.binary(), st.sampled_from([b"", OK, OK + b"Transfer-Encoding: chunked\r\n\r\n"]))
def test_no_bytes_break_the_reader(rest: bytes, begun: bytes) -> None:
    reader = AnswerReader()
    try:
        if reader.feed(begun + rest) is None:
            reader.end()
    except Malformed:
        pass


def test_a_get_has_the_header_that_azure_wants_and_none_that_it_refuses() -> None:
    lines = Request("/metadata/x", {"If-None-Match": '"7"'}).dump("h:81").decode().split("\r\n")

    assert lines[0] == "GET /metadata/x HTTP/1.1"
    assert {"Host: h:81", "Metadata: true", 'If-None-Match: "7"'} < set(lines)
    assert lines[-2:] == ["", ""]


def test_a_post_says_how_long_it_is() -> None:
    sent = Request("/metadata/x", body=b"{}").dump("h")

    assert sent.startswith(b"POST /metadata/x HTTP/1.1\r\n")
    assert b"\r\nContent-Length: 2\r\n" in sent
    assert sent.endswith(b"\r\n\r\n{}")


def test_a_failure_says_what_happened() -> None:
    assert str(Failure(Failing.TIMED_OUT)) == "did not answer in time"
    assert str(Failure(Failing.UNREACHABLE, "refused")) == "cannot be reached: refused"
