"""What rude guests send: exchanges made from a seed, by grammar and by mutation.

An exchange is bytes, the packets they come in, and how the guest takes its leave. The same seed
and number make the same exchange, so that one of a million can be looked at alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from random import Random  # noqa: TID251 - each is made from a seed
from typing import Final

TARGET: Final = b"/metadata/scheduledevents?api-version=2020-07-01"
HOST: Final = b"Host: 169.254.169.254\r\n"
METADATA: Final = b"Metadata: true\r\n"
PIECES_MAX: Final = 64


class Farewell(Enum):
    """What a guest does once everything is sent."""

    # Reads the answers, and goes.
    LISTEN = "listen"
    # Says that it will send no more, and reads until the server hangs up.
    FINISH = "finish"
    # Reads until the server hangs up, and never does anything about it.
    STAY = "stay"
    # Goes without reading.
    LEAVE = "leave"
    # Goes, and has the connection reset.
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class Exchange:
    """All that one guest does on one connection."""

    kind: str
    pieces: tuple[bytes, ...]
    farewell: Farewell = Farewell.LISTEN
    pause_seconds: float = 0.0
    # How long it does not read what it is answered.
    nap_seconds: float = 0.0

    @property
    def sent(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def is_heard_out(self) -> bool:
        """Whether the guest reads all that the server has to say."""
        return self.farewell not in (Farewell.LEAVE, Farewell.RESET)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a rude guest may know of the service."""

    event_ids: Sequence[str] = ("602D9444-D2CD-49C7-8624-8643E7171297",)
    # How often a true one is named, where one is named at all.
    candor: float = 0.0
    true_ids: Sequence[str] = field(default=())


def exchange(seed: int, number: int, words: Vocabulary = Vocabulary()) -> Exchange:  # noqa: B008 - frozen
    """The exchange that this seed has under this number."""
    r = Random(f"{seed}/{number}")  # noqa: S311 - repeatable on purpose
    kind = r.choices(_NAMES, _WEIGHTS)[0]
    sent = _KINDS[kind][1](r, words)
    farewell = r.choices(list(Farewell), (58, 25, 3, 6, 8))[0]
    pieces = _pieces(r, sent)
    pause = r.choice((0.0, 0.0, 0.0, 0.001)) if len(pieces) > 1 else 0.0
    nap = r.choice((0.01, 0.1)) if kind == "flood" and farewell is Farewell.LISTEN else 0.0
    return Exchange(kind, pieces, farewell, pause, nap)


def _pieces(r: Random, sent: bytes) -> tuple[bytes, ...]:
    count = r.choice((1, 1, 1, 1, 2, 2, 3, r.randint(2, PIECES_MAX)))
    cuts = sorted({r.randrange(1, len(sent)) for _ in range(count - 1)}) if len(sent) > 1 else []
    return tuple(sent[a:b] for a, b in pairwise((0, *cuts, len(sent))))


# -- well-formed requests ------------------------------------------------------------------------


def get(target: bytes = TARGET, headers: bytes = HOST + METADATA, method: bytes = b"GET") -> bytes:
    """A request without a body."""
    return method + b" " + target + b" HTTP/1.1\r\n" + headers + b"\r\n"


def post(body: bytes, headers: bytes = HOST + METADATA) -> bytes:
    """An approval."""
    return b"POST " + TARGET + b" HTTP/1.1\r\n" + headers + _length(body) + b"\r\n" + body


def start_requests(*event_ids: str) -> bytes:
    """The body of an approval of these events."""
    return json.dumps({"StartRequests": [{"EventId": event_id} for event_id in event_ids]}).encode()


def _length(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n" % len(body)


def _event_id(r: Random, words: Vocabulary) -> str:
    if words.true_ids and r.random() < words.candor:
        return r.choice(words.true_ids)
    return r.choice(words.event_ids)


def _approval(r: Random, words: Vocabulary) -> bytes:
    return post(start_requests(_event_id(r, words)))


_TARGETS: Final = (
    TARGET,
    TARGET,
    TARGET,
    b"/metadata/scheduledevents?api-version=2017-08-01",
    b"/metadata/scheduledevents?api-version=1999-01-01",
    b"/metadata/scheduledevents",
    b"/metadata/instance?api-version=2021-02-01",
    b"/metadata/instance/compute/name?api-version=2021-02-01&format=text",
    b"/metadata/instance/" + b"x/" * 300 + b"?api-version=2021-02-01",
    b"/metadata/versions",
    b"/",
    b"*",
    b"http://169.254.169.254" + TARGET,
    b"/../../etc/passwd",
    b"/%00%0d%0aX:%20y",
    TARGET + b"&api-version=2020-07-01",
    TARGET + b"&a" * 100,
    TARGET + b"&wait=0",
    TARGET + b"&wait=-1",
    TARGET + b"&wait=99999999999",
)
_METHODS: Final = (
    *(b"GET", b"GET", b"GET", b"HEAD", b"PUT", b"DELETE", b"OPTIONS"),
    *(b"PATCH", b"TRACE", b"CONNECT", b"get", b"PRI", b"X" * 200),
)
_EXTRAS: Final = (
    *(b"", b"", b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"If-None-Match: *\r\n"),
    *(b"If-None-Match: 99\r\n", b"X-Forwarded-For: 1.2.3.4\r\n", b"Upgrade: h2c\r\n"),
    *(b"Connection: Upgrade\r\nUpgrade: websocket\r\n", b"Accept: */*\r\n", b"Metadata: false\r\n"),
    *(b"Expect: 100-continue\r\n", b"Content-Length: 0\r\n", b"Expect: the unexpected\r\n"),
)


def _valid(r: Random, words: Vocabulary) -> bytes:
    if r.random() < 0.3:
        return _approval(r, words)
    return get(r.choice(_TARGETS), HOST + METADATA + r.choice(_EXTRAS), r.choice(_METHODS))


def _pipelined(r: Random, words: Vocabulary) -> bytes:
    return b"".join(_valid(r, words) for _ in range(r.randint(2, 20)))


def _flood(r: Random, _: Vocabulary) -> bytes:
    return get() * r.randint(50, 300)


# -- where a body ends ---------------------------------------------------------------------------

_LENGTHS: Final = (
    *(b"+5", b"-5", b"0x5", b"5,5", b"5, 6", b"05", b"1e1", b"", b" ", b"5 5", b"5;", b"5.0"),
    *(b"\xef\xbc\x95", b"9" * 19, b"9" * 21, b"9" * 5000, b"65536", b"65537", b"\x0b5", b"5\x00"),
    *(b"_5", b"5_0", b"four", b"18446744073709551621", b"4294967301"),
)
_CODINGS: Final = (
    *(b"chunked", b"Chunked", b"CHUNKED", b"xchunked", b"chunked, identity", b"identity", b"gzip"),
    *(b"gzip, chunked", b"chunked, chunked", b"\x0bchunked", b"chunked\x00", b'"chunked"', b""),
    *(b"\r\n chunked", b"\tchunked", b"chunked;q=1", b"chunk", b"identity, chunked"),
)


def _bad_length(r: Random, words: Vocabulary) -> bytes:
    head = b"POST " + TARGET + b" HTTP/1.1\r\n" + HOST + METADATA
    length = b"Content-Length: " + r.choice(_LENGTHS) + b"\r\n"
    return head + length + b"\r\n" + r.choice((b"hello", b"", _approval(r, words)))


def _smuggle(r: Random, words: Vocabulary) -> bytes:
    """Two ways to read where a request ends; behind the one end, another request."""
    hidden = r.choice((get(), _approval(r, words)))
    name = r.choice(
        (b"Transfer-Encoding: ", b"Transfer-Encoding : ", b"Transfer-Encoding\t: ",
         b" Transfer-Encoding: ", b"Transfer_Encoding: ", b"X: y\nTransfer-Encoding: ",
         b"X: y\rTransfer-Encoding: ", b"transfer-encoding:")
    )  # fmt: skip
    coding = name + r.choice(_CODINGS) + b"\r\n"
    chunk = b"0\r\n\r\n" + hidden
    length = b"Content-Length: %d\r\n" % r.choice((0, 3, 4, 5, len(chunk), len(hidden)))
    framing = [
        r.choice((length, b"", length + length, b"Content-Length: 4\r\n" + length)),
        r.choice((coding, b"", coding, coding + b"Transfer-Encoding: identity\r\n")),
    ]
    r.shuffle(framing)
    head = r.choice((b"POST ", b"GET ")) + TARGET + r.choice((b" HTTP/1.1", b" HTTP/1.0")) + b"\r\n"
    body = r.choice((chunk, hidden, b"5\r\nhello\r\n" + chunk))
    return head + HOST + METADATA + b"".join(framing) + b"\r\n" + body + r.choice((b"", get()))


def _chunked(r: Random, words: Vocabulary) -> bytes:
    body = r.choice((start_requests(_event_id(r, words)), b"x" * r.choice((1, 100, 70_000))))
    parts = []
    while body:
        size = r.choice((1, 7, 100, len(body)))
        piece, body = body[:size], body[size:]
        parts.append(_chunk(r, piece))
        if len(parts) > r.choice((5, 200)):
            break
    end = b"0" + r.choice((b"", b"", b";x=y", b"0000")) + b"\r\n"
    trailers = r.choice(
        (b"", b"", b"X: y\r\n", b"Content-Length: 5\r\n", b"a:\r\n" * 2000, b"bad\r\n")
    )
    head = (
        b"POST " + TARGET + b" HTTP/1.1\r\n" + HOST + METADATA + b"Transfer-Encoding: chunked\r\n"
    )
    expect = r.choice((b"", b"", b"Expect: 100-continue\r\n"))
    whole = head + expect + b"\r\n" + b"".join(parts) + end + trailers + b"\r\n"
    return whole + r.choice((b"", get()))


def _chunk(r: Random, piece: bytes) -> bytes:
    size = b"%x" % len(piece)
    if r.random() < 0.02:
        size = r.choice(
            (
                b"-1",
                b"0x5",
                b"g",
                b"",
                b" 5",
                b"5 ",
                b"f" * 17,
                b"f" * 30,
                b"00000000000000005",
                b"+5",
            )
        )
    extension = r.choice((b"", b"", b"", b";a=b", b';a="\\""', b";" + b"x" * r.choice((10, 2000))))
    end = b"\r\n" if r.random() < 0.98 else r.choice((b"\n", b"\r", b"", b"\r\r\n"))
    return size + extension + b"\r\n" + piece + end


# -- heads ---------------------------------------------------------------------------------------


def _headers(r: Random, _: Vocabulary) -> bytes:
    odd = r.choice(
        (
            b"X: " + b"x" * r.choice((100, 9000, 16_000, 17_000, 100_000)) + b"\r\n",
            b"X: y\r\n" * r.choice((60, 62, 63, 5000)),
            b"a:\n" * 5000,
            b"X: y\r\n" + b" folded\r\n" * r.choice((1, 10, 3000)),
            b"Name : x\r\n", b": x\r\n", b"Name\r\n", b"Na me: x\r\n", b"X: \x00\r\n", b"X: a\rb\r\n",
            b"X: a\nY: b\n", b"X: \xff\xfe\r\n", b"\xc3\xa9: x\r\n", b"X: \x7f\r\n", b"Host: a\r\n",
            b"Host:\r\n", b"Metadata: true\r\n", b"Metadata:\r\n true\r\n", b"Metadata: tru\re\r\n",
            b"Connection: " + b"," * 15_000 + b"\r\n", b"If-None-Match: " + b'"' * 15_000 + b"\r\n",
        )
    )  # fmt: skip
    return get(headers=r.choice((HOST + METADATA + odd, odd + HOST + METADATA, odd))) + r.choice(
        (b"", get())
    )


def _request_line(r: Random, _: Vocabulary) -> bytes:
    line = r.choice(
        (
            b"GET " + TARGET, b"GET " + TARGET + b" HTTP/0.9", b"GET " + TARGET + b" HTTP/1.0",
            b"GET " + TARGET + b" HTTP/1.2", b"GET " + TARGET + b" HTTP/2.0",
            b"GET " + TARGET + b" http/1.1", b"GET " + TARGET + b" HTTP/1.10",
            b"GET " + TARGET + b" HTTP/01.1", b"GET  " + TARGET + b" HTTP/1.1",
            b"GET\t" + TARGET + b"\tHTTP/1.1", b"GET " + TARGET + b" HTTP/1.1 ", b"GET", b"",
            b" GET " + TARGET + b" HTTP/1.1", b"GET /\x00 HTTP/1.1", b"GET /\xff HTTP/1.1",
            b"GET /" + b"x" * r.choice((8100, 8200, 70_000)) + b" HTTP/1.1", b"\x00" * 100,
            b"GET " + TARGET + b" HTTP/1.1\x00", b"GET / HTTP/1.1 HTTP/1.1", b"GET HTTP/1.1",
        )
    )  # fmt: skip
    ending = r.choice((b"\r\n", b"\r\n", b"\n", b"\r", b"\r\n\r\n"))
    lead = r.choice((b"", b"", b"", b"\r\n", b"\n\n"))
    return lead + line + ending + HOST + METADATA + r.choice((b"\r\n", b"\n", b"", b"\r\r\n"))


# -- other languages -----------------------------------------------------------------------------

_FOREIGN: Final = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) * 2,
    b"\x80\x2e\x01\x03\x01\x00\x15",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n" + get(),
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + bytes(12) + get(),
    b"\x05\x01\x00",
    b"*1\r\n$4\r\nPING\r\n",
    b"EHLO example.com\r\n",
    b"\x00\x00\x00\x85\xffSMB" + bytes(100),
    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    b"\xef\xbb\xbf" + get(),
)


def _foreign(r: Random, _: Vocabulary) -> bytes:
    return r.choice(_FOREIGN)


def _noise(r: Random, _: Vocabulary) -> bytes:
    return r.randbytes(r.choice((1, 10, 100, 1000, 20_000))) + r.choice((b"", b"\r\n\r\n"))


def _truncated(r: Random, words: Vocabulary) -> bytes:
    whole = _pipelined(r, words) if r.random() < 0.2 else _valid(r, words)
    return whole[: r.randrange(1, len(whole))]


_GLUE: Final = (
    *(b"\r\n", b"\n", b"\r", b"\x00", b" ", b":", b"\t", b"\r\n\r\n", b"\xff", b"%00", b"0", b","),
    *(
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"HTTP/1.1",
        b"GET ",
        b"chunked",
    ),
)
_MAKERS: Final = (_valid, _approval, _chunked, _smuggle, _pipelined)


def _mutated(r: Random, words: Vocabulary) -> bytes:
    sent = r.choice(_MAKERS)(r, words)
    for _ in range(r.choice((1, 1, 2, 3, 10))):
        at = r.randrange(len(sent) + 1)
        until = min(at + r.choice((1, 1, 2, 8, 64)), len(sent))
        middle = r.choice(
            (
                b"",
                r.choice(_GLUE),
                r.randbytes(until - at),
                sent[at:until] * 2,
                sent[at:until][::-1],
            )
        )
        sent = sent[:at] + middle + sent[until:]
    return sent or b"\x00"


# -- JSON ----------------------------------------------------------------------------------------


def _json(r: Random, words: Vocabulary) -> bytes:
    event_id = _event_id(r, words).encode()
    good = b'{"EventId": "' + event_id + b'"}'
    body = r.choice(
        (
            b"[" * 30_000, b'{"a":' * 10_000, b"[" * 900 + b"]" * 900, b'{"StartRequests":' * 500,
            b'{"StartRequests": ' + b"[" * 5000 + b"]" * 5000 + b"}",
            b'{"StartRequests": [' + b"9" * 50_000 + b"]}", b"1e999999999", b"-" * 1000, b"NaN",
            b'{"StartRequests": [{"EventId": 1e400}]}', b'{"StartRequests": [{"EventId": null}]}',
            b'{"StartRequests": [{"EventId": "\\ud800"}]}', b'{"StartRequests": [{"EventId": "\xff"}]}',
            b'{"StartRequests": [{"EventId": "\\u0000"}]}', b'{"StartRequests": [{"EventId": ""}]}',
            b'{"StartRequests": [' + good + b'], "startrequests": []}',
            b'{"StartRequests": [], "StartRequests": [' + good + b"]}",
            b'{"StartRequests": [{"EventId": "x", "EventId": "' + event_id + b'"}]}',
            b'{"StartRequests": [' + b",".join([good] * 1001) + b"]}",
            b'{"StartRequests": [' + b",".join([good] * 500) + b"]}",
            b"\xef\xbb\xbf" + start_requests("x"), start_requests("x").decode().encode("utf-16"),
            b"\xef\xbb\xbf\xef\xbb\xbf{}", b"", b"null", b"[]", b'"', b"{", b"\x00", b"{}" * 2,
            b'{"StartRequests": {"EventId": "x"}}', b'{"StartRequests": "x"}', b"true",
            start_requests("x" * 129), start_requests("../../x"), start_requests("' OR 1=1 --"),
        )
    )  # fmt: skip
    return post(body) + r.choice((b"", get()))


_KINDS: Final[Mapping[str, tuple[int, Callable[[Random, Vocabulary], bytes]]]] = {
    "valid": (8, _valid),
    "pipelined": (6, _pipelined),
    "flood": (1, _flood),
    "bad length": (8, _bad_length),
    "smuggle": (16, _smuggle),
    "chunked": (10, _chunked),
    "headers": (8, _headers),
    "request line": (8, _request_line),
    "foreign": (3, _foreign),
    "noise": (4, _noise),
    "truncated": (6, _truncated),
    "mutated": (18, _mutated),
    "json": (8, _json),
}
_NAMES: Final = tuple(_KINDS)
_WEIGHTS: Final = tuple(weight for weight, _ in _KINDS.values())
