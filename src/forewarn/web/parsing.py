"""One request out of the bytes of a connection; h11 reads them, and h11 is strict.

A parser is made for one request and thrown away, so that nothing of one request can color the
next. What was sent after the request's end is handed back.

h11 is thorough rather than quick, and what it does in one go holds up every other guest. So it is
given a head only once that is whole and known to be short, and chunks in small helpings: 128 kB of
one-byte chunks would be a third of a second.
"""

from __future__ import annotations

import re
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
# How h11 tells where a head ends: it does not insist on carriage returns.
_HEAD_END: Final = re.compile(rb"\n\r?\n")
# Where a search must begin again so that no end is missed that arrives in pieces.
_HEAD_END_BYTES: Final = 3
# No request begins with a control character or a blank; TLS does.
_FIRST_BYTE_MIN: Final = 0x21
# What h11 may hold that is no whole chunk header and no whole trailer yet; it is also one helping.
_HELPING_BYTES: Final = 1024


class Progress(Enum):
    """How far the request at hand has arrived."""

    HEAD_INCOMPLETE = "head incomplete"
    BODY_INCOMPLETE = "body incomplete"
    COMPLETE = "complete"


class RequestParser:
    """Reads one request."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_HELPING_BYTES)
        self._head = b""
        self._body = bytearray()
        # How much of the body is still to come; None where chunks will tell.
        self._body_left: int | None = 0
        self._chunks = 0
        # Known before it is known whether the request is one that we take.
        self.method = b""
        self.request: Request | None = None
        # Whether a body was announced, be it empty.
        self.has_body = False
        # What follows the request, once it is complete.
        self.rest = b""

    @property
    def body(self) -> bytes:
        return bytes(self._body)

    @property
    def is_chunked(self) -> bool:
        """Whether only the body itself tells where it ends."""
        return self._body_left is None

    @property
    def is_waiting_for_continue(self) -> bool:
        """Whether the guest wants leave to send the body."""
        return self._connection.they_are_waiting_for_100_continue

    def feed(self, data: bytes) -> Progress | Refusal:
        """Take in what arrived. After a refusal, or once complete, a parser takes nothing more."""
        try:
            return self._feed_head(data) if self.request is None else self._feed_body(data)
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == _HEADERS_TOO_LARGE_HINT:
                return refusals.HEADERS_TOO_LARGE
            return refusals.UNREADABLE

    def _feed_head(self, data: bytes) -> Progress | Refusal:
        searched = max(len(self._head) - _HEAD_END_BYTES, 0)
        head = self._head + data if self._head else data
        found = _HEAD_END.search(head, searched)
        end = found.end() if found else len(head)
        refusal = self._measure(head, end)
        if refusal is not None:
            return refusal
        if found is None:
            self._head = head
            return Progress.HEAD_INCOMPLETE
        self._head = b""
        self._connection.receive_data(head[:end])
        event = self._connection.next_event()
        # A head is whole, or wrong; h11 asks for more only where it skipped an empty line.
        refusal = self._admit(event) if isinstance(event, h11.Request) else refusals.UNREADABLE
        return self._feed_body(head[end:]) if refusal is None else refusal

    def _measure(self, head: bytes, end: int) -> Refusal | None:
        """Why this is too much of a head, or none at all, as far as it is known."""
        if head and head[0] < _FIRST_BYTE_MIN:
            return refusals.UNREADABLE
        line_end = head.find(b"\n", 0, end)
        line = end if line_end < 0 else line_end
        if line > self._limits.request_line_bytes_max:
            return refusals.TARGET_TOO_LONG
        # Lines that are folded count one by one; the request line and the empty one are no headers.
        lines = head.count(b"\n", 0, end)
        if end - line > self._limits.head_bytes_max or lines > self._limits.headers_max + 2:
            return refusals.HEADERS_TOO_LARGE
        return None

    def _feed_body(self, data: bytes) -> Progress | Refusal:
        if self._body_left is not None:
            mine, self.rest = data[: self._body_left], data[self._body_left :]
            self._body_left -= len(mine)
            return self._advance(mine)
        for at in range(0, len(data), _HELPING_BYTES):
            outcome = self._advance(data[at : at + _HELPING_BYTES])
            if outcome is not Progress.BODY_INCOMPLETE:
                self.rest = bytes(self._connection.trailing_data[0]) + data[at + _HELPING_BYTES :]
                return outcome
        return Progress.BODY_INCOMPLETE

    def _advance(self, data: bytes) -> Progress | Refusal:
        # To h11, nothing means that nothing will follow.
        if data:
            self._connection.receive_data(data)
        while True:
            event = self._connection.next_event()
            if event is h11.NEED_DATA:
                return Progress.BODY_INCOMPLETE
            if isinstance(event, h11.EndOfMessage):
                return Progress.COMPLETE
            # Anything else is a change of protocols.
            refusal = self._keep(event) if isinstance(event, h11.Data) else refusals.UNREADABLE
            if refusal is not None:
                return refusal

    def _keep(self, piece: h11.Data) -> Refusal | None:
        self._body += piece.data
        self._chunks += piece.chunk_start
        is_too_large = (
            len(self._body) > self._limits.body_bytes_max
            or self._chunks > self._limits.body_chunks_max
        )
        return refusals.TOO_LARGE if is_too_large else None

    def _admit(self, head: h11.Request) -> Refusal | None:
        headers = head.headers
        self.method = head.method
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
        chunked = b"transfer-encoding" in framing
        self._body_left = None if chunked else int(framing.get(b"content-length", b"0"))
        self.request = Request(
            head.method.decode("ascii"),
            head.target.decode("ascii"),
            tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in headers),
            head.http_version.decode("ascii"),
        )
        return None
