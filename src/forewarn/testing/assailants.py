"""One guest that attacks with a thousand connections, for as long as it is let.

A part of them says half a request and no more, a part asks as fast as it can and reads, a part
asks and does not read, a part never asks the same thing twice, and a part sends bodies. Whatever
is dropped comes back.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from forewarn.testing.hostility import HOST, METADATA, TARGET, get, post, start_requests

CONNECTIONS: Final = 1000
_READ_BYTES: Final = 65536
_TURN_SECONDS: Final = 0.05


@dataclass(slots=True)
class Feats:
    """What an assailant achieved."""

    connections: int = 0
    dropped: int = 0
    bytes_sent: int = 0
    answers: int = 0


def _strange(number: int) -> bytes:
    return b"".join(get(headers=HOST + METADATA + b"X-%d: %d\r\n" % (number, n)) for n in range(20))


_BODY: Final = b"[" * 30_000
# What is sent again and again; the first says half of it, and the third does not read.
_PARTS: Final[tuple[Callable[[int], bytes], ...]] = (
    lambda _: b"GET " + TARGET + b" HTTP/1.1\r\n" + HOST,
    lambda _: get() * 50,
    lambda _: get() * 500,
    _strange,
    lambda _: post(start_requests("x")) * 20 + post(_BODY),
)
_SILENT: Final = 0
_UNREAD: Final = 2


class Assailant:
    """Keeps up a number of connections from one address, in one thread."""

    def __init__(
        self,
        place: tuple[str, int],
        address: str,
        *,
        connections: int = CONNECTIONS,
        rest_seconds: float = 1.0,
    ) -> None:
        self._place = place
        self._address = address
        self._connections = connections
        # How long a connection that was dropped stays away.
        self._rest_seconds = rest_seconds
        self._selector = selectors.DefaultSelector()
        self._count = 0
        self._away: list[tuple[float, int]] = [
            (0.0, part % len(_PARTS)) for part in range(connections)
        ]
        self._unsent: dict[socket.socket, bytes] = {}
        self.feats = Feats()

    def attack(self, seconds: float) -> Feats:
        """Do so for a while, and go."""
        until = time.monotonic() + seconds
        try:
            while time.monotonic() < until:
                self._come_back()
                for key, events in self._selector.select(_TURN_SECONDS):
                    connection = key.fileobj
                    assert isinstance(connection, socket.socket), "nothing else was registered"
                    try:
                        self._act(connection, key.data, events)
                    except OSError:
                        self._drop(connection, key.data)
        finally:
            for key in tuple(self._selector.get_map().values()):
                assert isinstance(key.fileobj, socket.socket), "nothing else was registered"
                key.fileobj.close()
            self._selector.close()
        return self.feats

    def _come_back(self) -> None:
        now = time.monotonic()
        due = [part for at, part in self._away if at <= now]
        self._away = [(at, part) for at, part in self._away if at > now]
        for part in due:
            self._open(part)

    def _open(self, part: int) -> None:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)  # noqa: FBT003 - the signature of sockets
        self._count += 1
        self.feats.connections += 1
        try:
            connection.bind((self._address, 0))
            with suppress(BlockingIOError):
                connection.connect(self._place)
        except OSError:
            connection.close()
            self._away.append((time.monotonic() + self._rest_seconds, part))
            return
        self._unsent[connection] = _PARTS[part](self._count)
        self._selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, part)

    def _act(self, connection: socket.socket, part: int, events: int) -> None:
        if events & selectors.EVENT_READ and part != _UNREAD:
            data = connection.recv(_READ_BYTES)
            if not data:
                raise ConnectionAbortedError
            self.feats.answers += data.count(b"HTTP/1.1 ")
        if events & selectors.EVENT_WRITE:
            sent = connection.send(self._unsent[connection])
            self.feats.bytes_sent += sent
            rest = self._unsent[connection][sent:]
            if not rest and part == _SILENT:
                self._selector.modify(connection, selectors.EVENT_READ, part)
            elif not rest:
                self._count += 1
                rest = _PARTS[part](self._count)
            self._unsent[connection] = rest
        if part == _UNREAD:
            self._selector.modify(connection, selectors.EVENT_WRITE, part)

    def _drop(self, connection: socket.socket, part: int) -> None:
        self.feats.dropped += 1
        self._selector.unregister(connection)
        del self._unsent[connection]
        connection.close()
        self._away.append((time.monotonic() + self._rest_seconds, part))
