"""Replies as bytes. Those of a document are joined once for each posting, and only dated anew."""

from __future__ import annotations

import secrets
import uuid
from datetime import datetime
from http import HTTPStatus
from typing import Final

from forewarn.core.names import ScopeId
from forewarn.service.board import Posting
from forewarn.web import metadata
from forewarn.web.messages import Ending, Reply
from forewarn.web.metadata import ReadDocument
from forewarn.wire import scheduled_events

# As recorded; the number varies. Microsoft's own libraries check that "IMDS" is in it.
SERVER: Final = "IMDS/150.870.65.1854"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

_KEEP_ALIVE: Final = Ending.KEEP_ALIVE
_BODILESS: Final = (204, 304)

# Before the date, and after the request's id.
Ready = tuple[bytes, bytes]


class Responses:
    """Makes bytes of replies, each with the date and an id of its own."""

    def __init__(self) -> None:
        # Unique answers to unique questions: a name for this process, and a number for each.
        self._process = str(uuid.UUID(bytes=secrets.token_bytes(16), version=4))[:24].encode()
        self._count = 0
        self._dated_kept = b""
        self._dated_closed = b""
        self._ready: dict[ScopeId, tuple[Posting, dict[str, Ready]]] = {}

    def date(self, now: datetime) -> None:
        """Set the date of the responses to come."""
        date = b"Date: %b\r\n" % scheduled_events.dump_time(now).encode()
        name = b"x-ms-request-id: " + self._process
        self._dated_kept = date + name
        self._dated_closed = date + b"Connection: close\r\n" + name

    def response(self, reply: Reply, ending: Ending) -> bytes:
        """A reply as bytes."""
        return self._joined(_ready(reply), ending)

    def document(
        self, action: ReadDocument, scope: ScopeId, posting: Posting, ending: Ending
    ) -> tuple[int, bytes]:
        """The document of a posting as bytes, or word that the guest knows it; and the status."""
        known = action.if_none_match is not None and metadata.is_known(action, posting)
        shown = self._ready.get(scope)
        if shown is None or shown[0] is not posting:
            shown = self._ready[scope] = (posting, {})
        form = "known" if known else action.version.name
        ready = shown[1].get(form)
        if ready is None:
            ready = shown[1][form] = _ready(metadata.read(action, posting))
        return 304 if known else 200, self._joined(ready, ending)

    def _joined(self, ready: Ready, ending: Ending) -> bytes:
        self._count += 1
        dated = self._dated_kept if ending is _KEEP_ALIVE else self._dated_closed
        return b"%b%b%012x%b" % (ready[0], dated, self._count, ready[1])


def _ready(reply: Reply) -> Ready:
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
    if reply.body:
        lines.append(f"Content-Type: {reply.media_type}")
    if reply.status not in _BODILESS:
        lines.append(f"Content-Length: {len(reply.body)}")
    lines.append(f"Server: {SERVER}")
    lines += [f"{name}: {value}" for name, value in reply.headers]
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1"), b"\r\n\r\n" + reply.body
