"""Guests that poll: many addresses, many ways to spell the same request.

They ask in waves: all send, then all read, so that the server always finds many requests waiting
and the load needs two system calls for each. What is measured is the server's processor time.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, cycle, islice
from typing import Final

TARGET: Final = "/metadata/scheduledevents?api-version=2020-07-01"
HEADER_SETS: Final = 20
_RECEIVE_BYTES: Final = 65536
_SECONDS_MAX: Final = 30
# linux/in.h; the socket module does not name it.
_BIND_ADDRESS_NO_PORT: Final = 24

_AGENTS: Final = (
    "curl/7.88.1",
    "python-requests/2.32.3",
    "Go-http-client/1.1",
    "Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.20348.2849",
    "azure-events-agent/3.1",
)
_EXTRAS: Final = (
    (),
    ("Accept: */*",),
    ("Accept: application/json", "Accept-Encoding: gzip, deflate"),
    ("Accept-Encoding: gzip", "Cache-Control: no-cache", "Accept: */*"),
)


@dataclass(frozen=True, slots=True)
class Server:
    """Where to ask."""

    host: str
    port: int


def address(number: int) -> str:
    """The loopback address of a guest."""
    return f"127.0.{1 + number // 200}.{10 + number % 200}"


def requests(*, closing: bool, target: str = TARGET, more: Sequence[str] = ()) -> list[bytes]:
    """The same request, as that many different clients send it."""
    connection = ("Connection: close",) if closing else ()
    return [
        "\r\n".join(
            (
                f"GET {target} HTTP/1.1",
                "Host: 169.254.169.254",
                f"User-Agent: {agent}",
                *extras,
                "Metadata: true",
                *more,
                *connection,
                "\r\n",
            )
        ).encode()
        for agent in _AGENTS
        for extras in _EXTRAS
    ]


def connect(server: Server, source: str) -> socket.socket:
    """A guest's connection."""
    guest = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    guest.settimeout(_SECONDS_MAX)
    guest.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # The port is chosen when connecting: far more of them can be had that way.
    guest.setsockopt(socket.IPPROTO_IP, _BIND_ADDRESS_NO_PORT, 1)
    guest.bind((source, 0))
    guest.connect((server.host, server.port))
    return guest


def poll_keeping(server: Server, *, guests: int, polls: int) -> None:
    """Poll this many times in all, each guest on one connection."""
    texts = list(islice(cycle(requests(closing=False)), guests))
    open_ = [connect(server, address(number)) for number in range(guests)]
    try:
        for _ in range(polls // guests):
            for guest, text in zip(open_, texts, strict=True):
                guest.send(text)
            for guest in open_:
                _read(guest)
    finally:
        for guest in open_:
            guest.close()


def poll_closing(server: Server, *, guests: int, polls: int) -> None:
    """Poll this many times in all, each time on a new connection."""
    texts = cycle(requests(closing=True))
    numbers = (number % guests for number in count())
    for size in _waves(polls, guests):
        open_ = []
        for number, text in islice(zip(numbers, texts, strict=False), size):
            guest = connect(server, address(number))
            guest.send(text)
            open_.append(guest)
        for guest in open_:
            _read(guest)
            assert not guest.recv(1), "a connection that shall be closed is closed"
            guest.close()


def _waves(polls: int, guests: int) -> Iterator[int]:
    for begun in range(0, polls, guests):
        yield min(guests, polls - begun)


def _read(guest: socket.socket) -> None:
    """Read one answer to its end; it must be a document."""
    answer = guest.recv(_RECEIVE_BYTES)
    assert answer.startswith(b"HTTP/1.1 200 "), answer[:200]
    while (end := answer.find(b"\r\n\r\n")) < 0:
        answer += _more(guest)
    _, _, after = answer.partition(b"Content-Length: ")
    length = end + 4 + int(after[: after.index(b"\r")])
    while len(answer) < length:
        answer += _more(guest)


def _more(guest: socket.socket) -> bytes:
    more = guest.recv(_RECEIVE_BYTES)
    assert more, "an answer is not cut off"
    return more
