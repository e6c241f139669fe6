"""Receivers of webhooks on real sockets: well, away, slow, refusing, resetting; and a post in memory."""

from __future__ import annotations

import base64
import hmac
import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

from forewarn.core import targets
from forewarn.core.targets import AllowedHost, Target
from forewarn.errors import Unavailable

OK: Final = 200
ANYWHERE: Final = (AllowedHost(host="*.example.org"),)


@dataclass(frozen=True, slots=True)
class Received:
    """One request that a receiver got, and how it answered."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever was sent
        return json.loads(self.body)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


def is_signed(received: Received, secret: str) -> bool:
    """Whether a request carries a signature under this secret."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{received.id}.{received.headers['webhook-timestamp']}.".encode() + received.body
    expected = base64.b64encode(hmac.digest(key, content, "sha256")).decode()
    return f"v1,{expected}" in received.headers["webhook-signature"].split()


@dataclass(slots=True)
class SimulatedPost:
    """A post without a network: whoever `answers` decides what becomes of each message."""

    answers: Callable[[Target, Received], int] = lambda _target, _received: OK
    allowed: Sequence[AllowedHost] = ANYWHERE
    received: list[Received] = field(default_factory=list)

    def check(self, target: Target) -> None:
        targets.check_target(target, self.allowed)

    def deliver(self, target: Target, headers: Sequence[tuple[str, str]], body: bytes) -> int:
        self.check(target)
        names = {name.lower(): value for name, value in headers}
        status = self.answers(target, Received(target.path, names, body, 0))
        self.received.append(Received(target.path, names, body, status))
        if not status:
            raise Unavailable("no connection: it is away")
        return status

    @property
    def taken(self) -> list[Received]:
        """What was accepted, in its order."""
        return [one for one in self.received if OK <= one.status < OK + 100]


class Receiver:
    """An HTTP server on loopback that can be away and come back at the same address."""

    def __init__(self, answers: Callable[[Received], int] = lambda _: OK) -> None:
        """With `answers` deciding each status; 0 is a reset connection."""
        self._answers = answers
        self.received: list[Received] = []
        self._news = threading.Condition()
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def taken(self) -> list[Received]:
        with self._news:
            return [one for one in self.received if OK <= one.status < OK + 100]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Listen, and answer."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver._serve(self)

            def log_message(self, *_: object) -> None:
                """Tests are quiet."""

        self._server = _Server(("127.0.0.1", self.port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def stop(self) -> None:
        """Be away."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server = None

    def wait_for(self, is_enough: Callable[[list[Received]], bool], seconds: float = 20) -> None:
        """Wait until what was taken is enough."""
        with self._news:
            enough = self._news.wait_for(
                lambda: is_enough([r for r in self.received if OK <= r.status < OK + 100]), seconds
            )
        assert enough, f"not enough within {seconds} s: {[r.status for r in self.received]}"

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        names = {name.lower(): value for name, value in handler.headers.items()}
        status = self._answers(Received(handler.path, names, body, 0))
        with self._news:
            self.received.append(Received(handler.path, names, body, status))
            self._news.notify_all()
        if not status:
            linger = struct.pack("ii", 1, 0)
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            handler.close_connection = True
            return
        handler.send_response(status)
        if 300 <= status < 400:
            handler.send_header("Location", f"{self.url}/elsewhere")
        handler.send_header("Content-Length", "0")
        handler.end_headers()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A sender that is gone is no error of ours."""
