"""The agent's own endpoint: a small HTTP server, on sockets, that can neither be kept busy nor disturb the agent.

Law: one connection, one request, one answer. A request is at most `HEAD_SIZE_MAX` long and comes within `PATIENCE`;
at most `CONNECTIONS_MAX` are looked at together, and whoever comes then waits to be accepted. Python's own server
would do as much, and make the process larger by a quarter.
"""

from __future__ import annotations

import errno
import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from forewarn.agent.answers import TEXT, Reply
from forewarn.client.discovery import Endpoint
from forewarn.errors import Malformed, Unavailable

HEAD_SIZE_MAX: Final = 8 * 1024
PATIENCE: Final = 5.0
CONNECTIONS_MAX: Final = 16

_HEAD_END: Final = b"\r\n\r\n"
_BACKLOG: Final = 64
# How long what a client says beyond its head is heard out, so that it hears us.
_LINGER: Final = 0.5
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}

_log: Final = logging.getLogger("forewarn.agent")


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of where to listen; without a host, everywhere. Raises: Malformed."""
    host, colon, port = text.strip().rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    is_port = port.isascii() and port.isdecimal() and int(port) < 1 << 16
    if not colon or not is_port or "/" in host or (":" in host and not text.startswith("[")):
        raise Malformed(f"{text!r} is not HOST:PORT")
    return host, int(port)


class ReportServer:
    """Answers GETs, in threads of its own, from when it is entered until it is left."""

    def __init__(
        self, address: str, answer: Callable[[str], Reply], *, patience: float = PATIENCE
    ) -> None:
        """Listen, and take nobody in yet. Raises: Malformed, Unavailable."""
        self._answer = answer
        self._patience = patience
        self._socket = _listening(address)
        self._closed = threading.Event()
        self._room = threading.Semaphore(CONNECTIONS_MAX)
        self._thread = threading.Thread(target=self._accept, name="endpoint", daemon=True)

    @property
    def url(self) -> str:
        """Where it is, by the port that it got."""
        host, port = self._socket.getsockname()[:2]
        return f"http://{Endpoint(host, port)}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._closed.set()
        # Closing alone would leave `accept` waiting.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _accept(self) -> None:
        while not self._closed.is_set():
            if not self._room.acquire(timeout=_LINGER):
                continue
            try:
                connection, _ = self._socket.accept()
                threading.Thread(
                    target=self._serve, args=(connection,), name="answer", daemon=True
                ).start()
            except (OSError, RuntimeError) as error:
                self._room.release()
                # Too many files, or threads: of others, for ours are few.
                if not self._closed.wait(0.1):
                    _log.warning("a request cannot be taken: %s", error)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, suppress(OSError):
                self._converse(connection, time.monotonic() + self._patience)
        finally:
            self._room.release()

    def _converse(self, connection: socket.socket, until: float) -> None:
        head = _head(connection, until)
        if head is None:
            return
        reply, has_body = self._reply(head)
        connection.settimeout(self._patience)
        connection.sendall(_dumped(reply, has_body=has_body))
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(_LINGER)
        # Closed on what was not heard, a connection is reset, and the answer may be lost with it.
        for _ in range(HEAD_SIZE_MAX // 1024):
            if not connection.recv(1024):
                return

    def _reply(self, head: bytes) -> tuple[Reply, bool]:
        if len(head) > HEAD_SIZE_MAX:
            return Reply(431, f"a head has {HEAD_SIZE_MAX} bytes at most\n"), True
        words = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):  # noqa: PLR2004 - GET / HTTP/1.1
            return Reply(400, "not a request of HTTP/1.1\n"), True
        method, target, _ = words
        if method not in ("GET", "HEAD"):
            return Reply(405, "only GET is answered here\n"), True
        try:
            return self._answer(target), method == "GET"
        except Exception:  # noqa: BLE001 - logged
            # Whatever it is, it must not be the end of an agent that has hooks to run.
            _log.exception("GET %s could not be answered", target)
            return Reply(500, "this is a bug: the agent's log has it\n"), True


def _listening(address: str) -> socket.socket:
    host, port = parse_address(address)
    try:
        if not host and socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG
            )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        remedy = (
            "is another agent at work? Else have `listen` name another port"
            if error.errno == errno.EADDRINUSE
            else "have `listen` name an address of this VM"
        )
        # Python says again which address that is.
        why = (error.strerror or str(error)).partition(" (while")[0]
        raise Unavailable(f'cannot listen at {address}: {why}: {remedy}, or "" for none') from error


def _head(connection: socket.socket, until: float) -> bytes | None:
    """What was received up to the end of the head, or too much of it; None if it did not come."""
    received = b""
    while _HEAD_END not in received:
        if len(received) > HEAD_SIZE_MAX:
            return received
        left = until - time.monotonic()
        if left <= 0:
            return None
        connection.settimeout(left)
        data = connection.recv(HEAD_SIZE_MAX)
        if not data:
            return None
        received += data
    return received.partition(_HEAD_END)[0]


def _dumped(reply: Reply, *, has_body: bool) -> bytes:
    body = reply.body.encode()
    head = (
        f"HTTP/1.1 {reply.status} {_REASONS[reply.status]}",
        f"Content-Type: {reply.content_type or TEXT}",
        f"Content-Length: {len(body)}",
        *(("Allow: GET, HEAD",) if reply.status == 405 else ()),  # noqa: PLR2004 - as HTTP has it
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        "",
        "",
    )
    return "\r\n".join(head).encode("latin-1") + (body if has_body else b"")
