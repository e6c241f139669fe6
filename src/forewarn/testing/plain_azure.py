"""A metadata service that knows nothing beyond Azure's: an emulated VM, without what forewarn adds.

A relay on a real socket before the address of a VM. What is added is taken out on the way: `wait` is
ignored or refused, and tags can be left out. All else, faults included, is the emulator's.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import Final, Self, TypeAlias

_HEAD_END: Final = b"\r\n\r\n"
_WAIT: Final = re.compile(rb"&wait=[0-9]+")
_TAGS: Final = re.compile(rb"\r\n(ETag|If-None-Match):[^\r]*", re.IGNORECASE)
_REFUSAL: Final = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
# Closing sends a reset, as the other side did.
_ABRUPT: Final = struct.pack("ii", 1, 0)
_SIZE: Final = 64 * 1024


class Knowing(Enum):
    """What a service of Azure's kind makes of what it does not know."""

    IGNORES_WAIT = "a parameter that it does not know means nothing to it"
    REFUSES_WAIT = "a parameter that it does not know is a bad request"
    HAS_NO_TAGS = "it ignores the parameter, and has no ETag"


class _Pair:
    """A guest's connection, and ours to the service on its behalf."""

    def __init__(self, guest: socket.socket, service: socket.socket) -> None:
        self.guest = guest
        self.service = service
        self._lock = threading.Lock()
        self._ends = 0

    def hang_up(self) -> None:
        """One of the two who carry is done: nothing more is carried, and the last one closes."""
        with self._lock:
            self._ends += 1
            is_last = self._ends == len(("requests", "answers"))
        for sock in (self.service, self.guest):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RD if sock is self.guest else socket.SHUT_RDWR)
            if is_last:
                sock.close()


_Carry: TypeAlias = Callable[[_Pair], None]


class PlainAzure:
    """The relay; `url` stands for http://169.254.169.254."""

    def __init__(self, upstream: str, knowing: Knowing = Knowing.IGNORES_WAIT) -> None:
        """`upstream` is the address of a VM, such as `ScheduledEvents.url`."""
        host, _, port = upstream.removeprefix("http://").partition(":")
        self._upstream = (host, int(port))
        self._knowing = knowing
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._is_closing = False
        # The heads of all requests, as they came.
        self.heads: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._is_closing = True
        with self._lock:
            for sock in (self._listener, *self._open):
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._listener.getsockname()
        return f"http://{host}:{port}"

    def _accept(self) -> None:
        while not self._is_closing:
            try:
                guest, _ = self._listener.accept()
                service = socket.create_connection(self._upstream)
            except OSError:
                return
            with self._lock:
                self._open |= {guest, service}
            pair = _Pair(guest, service)
            for carry in (self._carry_requests, self._carry_answers):
                threading.Thread(target=self._carried, args=(carry, pair), daemon=True).start()

    def _carried(self, carry: _Carry, pair: _Pair) -> None:
        try:
            carry(pair)
        except ConnectionResetError:
            with suppress(OSError):
                pair.guest.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABRUPT)
        except OSError:
            pass
        pair.hang_up()
        with self._lock:
            self._open -= {pair.guest, pair.service}

    def _carry_requests(self, pair: _Pair) -> None:
        waiting = b""
        while data := pair.guest.recv(_SIZE):
            waiting += data
            while _HEAD_END in waiting:
                head, _, waiting = waiting.partition(_HEAD_END)
                self._forward(pair, head)
            if not waiting.startswith((b"GET", b"POST")):
                # The body of an approval has no part that a head could have.
                pair.service.sendall(waiting)
                waiting = b""

    def _forward(self, pair: _Pair, head: bytes) -> None:
        self.heads.append(head)
        if self._knowing is Knowing.REFUSES_WAIT and _WAIT.search(head):
            pair.guest.sendall(_REFUSAL)
            return
        if self._knowing is Knowing.HAS_NO_TAGS:
            head = _TAGS.sub(b"", head)
        pair.service.sendall(_WAIT.sub(b"", head) + _HEAD_END)

    def _carry_answers(self, pair: _Pair) -> None:
        while data := pair.service.recv(_SIZE):
            kept = _TAGS.sub(b"", data) if self._knowing is Knowing.HAS_NO_TAGS else data
            pair.guest.sendall(kept)
