"""A way to the endpoint over a socket of one's own, kept from one request to the next."""

from __future__ import annotations

import socket
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

from forewarn.client.contact import elapsed
from forewarn.client.discovery import Endpoint
from forewarn.client.messages import Answer, AnswerReader, Failing, Failure, Outcome, Request
from forewarn.errors import Malformed

RECEIVED_SIZE: Final = 64 * 1024


class Line:
    """Asks one thing after another, in the caller's thread; any thread may cut it."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._endpoint: Endpoint | None = None
        self._is_cut = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._hang_up()

    def cut(self) -> None:
        """Have whoever waits for an answer wait no longer, and nobody wait again."""
        self._is_cut = True
        sock = self._socket
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def exchange(
        self, endpoint: Endpoint, request: Request, *, connect: timedelta, patience: timedelta
    ) -> Outcome:
        """Ask, and wait for the answer. Never raises: not to be answered is an outcome."""
        until = elapsed() + patience
        if self._socket is not None and self._endpoint == endpoint:
            reader = AnswerReader()
            outcome = self._ask(self._socket, endpoint, request, reader, until)
            broke = isinstance(outcome, Failure) and outcome.failing is Failing.BROKE_OFF
            if not broke or reader.has_begun:
                return outcome
            # A kept connection may have been closed while nobody looked; then nobody heard this.
        self._hang_up()
        try:
            self._socket = self._connected(endpoint, min(connect, patience))
        except OSError as error:
            return Failure(Failing.UNREACHABLE, str(error))
        if self._is_cut:
            # While we were connecting, when there was nothing yet to be cut.
            return Failure(Failing.BROKE_OFF, "closed")
        self._endpoint = endpoint
        return self._ask(self._socket, endpoint, request, AnswerReader(), until)

    def _connected(self, endpoint: Endpoint, patience: timedelta) -> socket.socket:
        address = (endpoint.host, endpoint.port)
        sock = socket.create_connection(address, max(patience.total_seconds(), 0.001))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def _ask(
        self,
        sock: socket.socket,
        endpoint: Endpoint,
        request: Request,
        reader: AnswerReader,
        until: timedelta,
    ) -> Outcome:
        try:
            self._set_timeout(sock, until)
            sock.sendall(request.dump(str(endpoint)))
            answer = self._answer(sock, reader, until)
        except TimeoutError:
            self._hang_up()
            return Failure(Failing.TIMED_OUT)
        except (OSError, Malformed) as error:
            self._hang_up()
            return Failure(Failing.BROKE_OFF, str(error))
        if not answer.keeps_alive:
            self._hang_up()
        return answer

    def _answer(self, sock: socket.socket, reader: AnswerReader, until: timedelta) -> Answer:
        while True:
            self._set_timeout(sock, until)
            data = sock.recv(RECEIVED_SIZE)
            answer = reader.feed(data) if data else reader.end()
            if answer is not None:
                return answer

    def _set_timeout(self, sock: socket.socket, until: timedelta) -> None:
        left = (until - elapsed()).total_seconds()
        if left <= 0:
            raise TimeoutError
        sock.settimeout(left)

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None
