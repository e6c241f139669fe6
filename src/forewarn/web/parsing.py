"""One request out of the bytes of a connection; h11 reads them, and h11 is strict.

A parser is made for one request and thrown away, so that nothing of one request can color the
next. What was sent after the request's end is handed back.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import h11

from forewarn.web.limits import Limits
from forewarn.web.messages import Request
from forewarn.wire import refusals
from forewarn.wire.refusals import Refusal

_HEADER_LINE_EXTRA: Final = len(": \r\n")
_HEADERS_TOO_LARGE_HINT: Final = 431
_FRAMING: Final = (b"content-length", b"transfer-encoding")


class Progress(Enum):
    """How far the request at hand has arrived."""

    HEAD_INCOMPLETE = "head incomplete"
    BODY_INCOMPLETE = "body incomplete"
    COMPLETE = "complete"


class RequestParser:
    """Reads one request."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._connection = h11.Connection(
            h11.SERVER, max_incomplete_event_size=limits.head_bytes_max
        )
        self._line_bytes: int | None = 0  # None once the request line is complete
        self._body = bytearray()
        self.request: Request | None = None
        # Whether a body was announced, be it empty.
        self.has_body = False

    @property
    def body(self) -> bytes:
        return bytes(self._body)

    @property
    def rest(self) -> bytes:
        """What follows the request."""
        return bytes(self._connection.trailing_data[0])

    @property
    def is_waiting_for_continue(self) -> bool:
        """Whether the guest wants leave to send the body."""
        return self._connection.they_are_waiting_for_100_continue

    def feed(self, data: bytes) -> Progress | Refusal:
        """Take in what arrived. After a refusal, or once complete, a parser takes nothing more."""
        if self._line_bytes is not None and not self._measure_line(data):
            return refusals.TARGET_TOO_LONG
        try:
            self._connection.receive_data(data)
            return self._advance()
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == _HEADERS_TOO_LARGE_HINT:
                return refusals.HEADERS_TOO_LARGE
            return refusals.UNREADABLE

    def _measure_line(self, data: bytes) -> bool:
        """Whether the request line, as far as it is known, is short enough."""
        assert self._line_bytes is not None
        end = data.find(b"\n")
        length = self._line_bytes + (len(data) if end < 0 else end)
        self._line_bytes = length if end < 0 else None
        return length <= self._limits.request_line_bytes_max

    def _advance(self) -> Progress | Refusal:
        while True:
            event = self._connection.next_event()
            if event is h11.NEED_DATA:
                has_head = self.request is not None
                return Progress.BODY_INCOMPLETE if has_head else Progress.HEAD_INCOMPLETE
            if isinstance(event, h11.EndOfMessage):
                return Progress.COMPLETE
            refusal = self._take(event)
            if refusal is not None:
                return refusal

    def _take(self, event: object) -> Refusal | None:
        match event:
            case h11.Request():
                return self._admit(event)
            case h11.Data(data=data):
                self._body += data
                return refusals.TOO_LARGE if len(self._body) > self._limits.body_bytes_max else None
            case _:
                # The connection's end in the middle of a request, or a change of protocols.
                return refusals.UNREADABLE

    def _admit(self, head: h11.Request) -> Refusal | None:
        headers = head.headers
        size = sum(len(name) + len(value) + _HEADER_LINE_EXTRA for name, value in headers)
        if size > self._limits.head_bytes_max or len(headers) > self._limits.headers_max:
            return refusals.HEADERS_TOO_LARGE
        if head.http_version not in (b"1.0", b"1.1"):
            return refusals.UNREADABLE
        framing = {name: value for name, value in headers if name in _FRAMING}
        # Two ways to tell where the body ends: whoever reads the other one sees another request.
        if len(framing) > 1:
            return refusals.UNREADABLE
        if int(framing.get(b"content-length", b"0")) > self._limits.body_bytes_max:
            return refusals.TOO_LARGE
        self.has_body = bool(framing)
        self.request = Request(
            head.method.decode("ascii"),
            head.target.decode("ascii"),
            tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in headers),
            head.http_version.decode("ascii"),
        )
        return None
