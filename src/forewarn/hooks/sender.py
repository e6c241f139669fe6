"""HttpPost: posts over plain sockets and TLS, one connection for each delivery, within one deadline.

The address is resolved here, judged, and connected to as a number, so that nobody resolves the name a
second time and finds something else.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from forewarn import __version__
from forewarn.core import targets
from forewarn.core.targets import AllowedHost, Target
from forewarn.errors import Unavailable
from forewarn.ports.clock import Clock

DEADLINE: Final = timedelta(seconds=10)
ANSWER_BYTES_MAX: Final = 64 * 1024
# A receiver that has answered is given this long to close first, which spares it a reset.
PARTING_SECONDS: Final = 0.2
_CHUNK: Final = 16 * 1024
_STATUS: Final = re.compile(rb"HTTP/1\.[0-9] ([1-5][0-9][0-9])(?: [^\r\n]*)?\r?\n")
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_OK: Final = 200

# Where a target's name leads, each place with its kind of address. Raises: Unavailable.
Place = tuple[socket.AddressFamily, tuple[str, int]]
Resolve = Callable[[Target], Sequence[Place]]


class HttpPost:
    """Delivers to the hosts of an allow-list. Holds nothing between two deliveries."""

    def __init__(
        self,
        clock: Clock,
        allowed: Sequence[AllowedHost],
        *,
        context: ssl.SSLContext | None = None,
        deadline: timedelta = DEADLINE,
        resolve: Resolve | None = None,
    ) -> None:
        self._clock = clock
        self._allowed = tuple(allowed)
        # Certificates are checked against what this machine trusts (SSL_CERT_FILE), names too.
        self._context = ssl.create_default_context() if context is None else context
        self._deadline = deadline
        self._resolve = system_resolve if resolve is None else resolve

    def check(self, target: Target) -> None:
        targets.check_target(target, self._allowed)

    def deliver(self, target: Target, headers: Sequence[tuple[str, str]], body: bytes) -> int:
        self.check(target)
        until = self._clock.elapsed() + self._deadline
        try:
            with self._connected(target, until) as connection:
                connection.settimeout(self._left(until))
                connection.sendall(_request(target, headers, body))
                return self._status(connection, until)
        except TimeoutError:
            seconds = self._deadline.total_seconds()
            raise Unavailable(f"no answer within {seconds:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise Unavailable(f"its certificate is not trusted: {error.verify_message}") from error
        except OSError as error:
            raise Unavailable(f"no connection: {error.strerror or error}") from error

    def _connected(self, target: Target, until: timedelta) -> socket.socket:
        trouble: OSError | None = None
        for family, address in self._resolve(target):
            targets.check_connection(target, str(address[0]))
            connection = socket.socket(family, socket.SOCK_STREAM)
            try:
                connection.settimeout(self._left(until))
                connection.connect(address)
                if target.scheme == "http":
                    return connection
                return self._context.wrap_socket(connection, server_hostname=target.host)
            except OSError as error:
                connection.close()
                trouble = error
        if trouble is None:
            raise Unavailable(f"{target.host} leads nowhere")
        raise trouble

    def _status(self, connection: socket.socket, until: timedelta) -> int:
        """The status of the answer; what else is in it concerns nobody."""
        answer = b""
        while True:
            found = _STATUS.match(answer)
            if found is not None and int(found[1]) >= _OK:
                _part(connection)
                return int(found[1])
            head = _HEAD_END.search(answer) if found is not None else None
            if head is not None:
                # Only an interim answer: the true one follows.
                answer = answer[head.end() :]
                continue
            connection.settimeout(self._left(until))
            chunk = connection.recv(_CHUNK)
            if not chunk or len(answer) > ANSWER_BYTES_MAX:
                raise Unavailable("it answered, but not in HTTP")
            answer += chunk

    def _left(self, until: timedelta) -> float:
        left = (until - self._clock.elapsed()).total_seconds()
        if left <= 0:
            raise TimeoutError
        return left


def system_resolve(target: Target) -> Sequence[Place]:
    """Where this machine thinks that a name leads."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise Unavailable(f"no host is called {target.host}") from error
    return [(family, (str(address[0]), target.port)) for family, _, _, _, address in found]


def _request(target: Target, headers: Sequence[tuple[str, str]], body: bytes) -> bytes:
    lines = [
        f"POST {target.path} HTTP/1.1",
        f"Host: {target.place}",
        f"User-Agent: forewarn/{__version__}",
        "Connection: close",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers),
    ]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def _part(connection: socket.socket) -> None:
    """Let the receiver finish its answer; whether it does is of no concern."""
    try:
        connection.settimeout(PARTING_SECONDS)
        for _ in range(ANSWER_BYTES_MAX // _CHUNK):
            if not connection.recv(_CHUNK):
                return
    except OSError:
        return
