"""HTTP/1.1 as far as a metadata service needs it: a request to bytes, and bytes to an answer.

Sans-IO, so that who waits on a socket and who waits in a loop read alike; and on plain sockets, so
that no proxy of the environment comes between: the endpoint is reached directly, or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from forewarn import __version__
from forewarn.errors import Malformed

HEAD_SIZE_MAX: Final = 64 * 1024
# Some 20,000 events.
BODY_SIZE_MAX: Final = 8 * 1024 * 1024

_HEAD_END: Final = b"\r\n\r\n"
_LINE_END: Final = b"\r\n"
_BODILESS: Final = (204, 304)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked: a GET, or a POST if there is a body."""

    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    def dump(self, host: str) -> bytes:
        """The bytes to send."""
        lines = [
            f"{'GET' if self.body is None else 'POST'} {self.target} HTTP/1.1",
            f"Host: {host}",
            "Metadata: true",
            "Accept: application/json",
            f"User-Agent: forewarn-client/{__version__}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        if self.body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(self.body)}"]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + (self.body or b"")


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered, whole."""

    status: int
    # Names in lower case.
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    # Whether the next request may go the same way.
    keeps_alive: bool = True


class Failing(Enum):
    """Why there was no answer."""

    # Nobody is there.
    UNREACHABLE = "cannot be reached"
    TIMED_OUT = "did not answer in time"
    # The connection was reset, or ended within the answer, or it was no HTTP.
    BROKE_OFF = "broke off"


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer; whether the request was taken, nobody knows."""

    failing: Failing
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.failing.value}: {self.detail}" if self.detail else self.failing.value


Outcome: TypeAlias = Answer | Failure


class AnswerReader:
    """Reads one answer, however it arrives."""

    def __init__(self) -> None:
        self._received = bytearray()

    @property
    def has_begun(self) -> bool:
        return bool(self._received)

    def feed(self, data: bytes) -> Answer | None:
        """The answer, once it is whole. Raises: Malformed."""
        self._received += data
        return self._answer(is_over=False)

    def end(self) -> Answer:
        """The answer, now that nothing more will come. Raises: Malformed."""
        answer = self._answer(is_over=True)
        if answer is None:
            raise Malformed("the connection ended within the answer")
        return answer

    def _answer(self, *, is_over: bool) -> Answer | None:
        while True:
            head, end, rest = bytes(self._received).partition(_HEAD_END)
            if len(head) > HEAD_SIZE_MAX:
                raise Malformed("the head of the answer is too large")
            if not end:
                return None
            http_version, status, headers = _head(head)
            if status >= 200:  # noqa: PLR2004 - what is below is not the answer yet
                break
            self._received = bytearray(rest)
        if len(rest) > BODY_SIZE_MAX:
            raise Malformed("the answer is too large")
        body, is_framed = _body(status, headers, rest, is_over=is_over)
        if body is None:
            return None
        stays = http_version == "HTTP/1.1" and "close" not in headers.get("connection", "").lower()
        return Answer(status, headers, body, keeps_alive=stays and is_framed)


def _head(head: bytes) -> tuple[str, int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    http_version, _, rest = first.partition(" ")
    status = rest[:3]
    if not http_version.startswith("HTTP/1.") or not (status.isascii() and status.isdecimal()):
        raise Malformed("the answer is not HTTP")
    pairs = (line.partition(":") for line in lines)
    return http_version, int(status), {name.lower(): value.strip() for name, _, value in pairs}


def _body(
    status: int, headers: Mapping[str, str], rest: bytes, *, is_over: bool
) -> tuple[bytes | None, bool]:
    """The body, if it is whole, and whether it said itself where it ends."""
    if status in _BODILESS:
        return b"", True
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return _chunked(rest), True
    if "content-length" not in headers:
        return (rest if is_over else None), False
    size = _size(headers["content-length"], 10)
    return (rest[:size] if len(rest) >= size else None), True


def _chunked(rest: bytes) -> bytes | None:
    body = bytearray()
    while True:
        line, end, rest = rest.partition(_LINE_END)
        if not end:
            return None
        size = _size(line.partition(b";")[0].decode("latin-1"), 16)
        if not size:
            # Trailers, if any, mean nothing here; but the last line must have come.
            return bytes(body) if rest.startswith(_LINE_END) or _HEAD_END in rest else None
        if len(rest) < size + len(_LINE_END):
            return None
        body += rest[:size]
        rest = rest[size + len(_LINE_END) :]


def _size(text: str, radix: int) -> int:
    try:
        size = int(text.strip(), radix)
    except ValueError as error:
        raise Malformed("the answer does not say how long it is") from error
    if not 0 <= size <= BODY_SIZE_MAX:
        raise Malformed("the answer is too large")
    return size
