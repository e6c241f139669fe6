"""Replies as bytes. Those of a document are joined once for each posting, and only dated anew."""

from __future__ import annotations

import secrets
import uuid
from datetime import UTC, datetime, timedelta
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
# A giant is not kept ready: it is rare, and takes its time on the way out.
READY_BYTES_MAX: Final = 8 * 1024

_KEEP_ALIVE: Final = Ending.KEEP_ALIVE
# Beside the names of versions.
_KNOWN: Final = "known"
_BODILESS: Final = (204, 304)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)

# Requests are numbered in blocks, so that only the last digits are spelled anew for each.
_BLOCK: Final = 256
_LAST_DIGITS: Final = tuple(b"%02x" % number for number in range(_BLOCK))

# Before the date, and after the request's id.
Ready = tuple[bytes, bytes]


class Sheet:
    """What is ready to be sent of one posting, by the name of the api-version."""

    __slots__ = ("forms", "fresh_after", "fresh_at", "fresh_before", "fresh_for", "posting")

    def __init__(self, posting: Posting) -> None:
        self.posting = posting
        self.forms: dict[str, Ready] = {}
        # Outside these, whoever asks may have to be heard in the store as well. The hatch sets them:
        # two instants, and how far the clock that does not jump may go.
        self.fresh_after = self.fresh_before = _NEVER
        self.fresh_for = timedelta()
        # The reading of the clock, that very object, at which this was so.
        self.fresh_at: timedelta | None = None


class Responses:
    """Makes bytes of replies, each with the date and an id of its own."""

    def __init__(self) -> None:
        # Unique answers to unique questions: a name for this process, and a number for each.
        self._process = str(uuid.UUID(bytes=secrets.token_bytes(16), version=4))[:24].encode()
        self._block = 0
        self._number = 0
        self._date = b""
        self._dated_kept = b""
        self._dated_closed = b""
        self.sheets: dict[ScopeId, Sheet] = {}
        # Replies that are a status and nothing else, such as the one to an approval.
        self._bare: dict[Reply, Ready] = {}

    def date(self, now: datetime) -> None:
        """Set the date of the responses to come."""
        self._date = b"Date: %b\r\n" % scheduled_events.dump_time(now).encode()
        self._renew()

    def _renew(self) -> None:
        """Join all that is the same in a block of numbers, until the date changes."""
        name = b"x-ms-request-id: %b%010x" % (self._process, self._block)
        self._dated_kept = self._date + name
        self._dated_closed = self._date + b"Connection: close\r\n" + name

    def response(self, reply: Reply, ending: Ending) -> bytes:
        """A reply as bytes."""
        ready = self._bare.get(reply)
        if ready is None:
            ready = _ready(reply)
            if not reply.body and not reply.headers:
                self._bare[reply] = ready
        return self.joined(ready, ending)

    def document(
        self, action: ReadDocument, scope: ScopeId, posting: Posting, ending: Ending
    ) -> tuple[int, bytes]:
        """The document of a posting as bytes, or word that the guest knows it; and the status."""
        if action.if_none_match is not None and metadata.is_known(action, posting):
            return 304, self.joined(self._kept(_KNOWN, action, scope, posting), ending)
        return 200, self.news(action, scope, posting, ending)

    def news(self, action: ReadDocument, scope: ScopeId, posting: Posting, ending: Ending) -> bytes:
        """The document of a posting as bytes, whatever the guest knows."""
        return self.joined(self._kept(action.form, action, scope, posting), ending)

    def _kept(self, form: str, action: ReadDocument, scope: ScopeId, posting: Posting) -> Ready:
        """What is ready of a posting, in this form; made ready if need be."""
        sheet = self.sheets.get(scope)
        if sheet is None or sheet.posting is not posting:
            sheet = self.sheets[scope] = Sheet(posting)
        ready = sheet.forms.get(form)
        if ready is None:
            asked = action if form is _KNOWN else metadata.UNCONDITIONAL[action.version]
            ready = _ready(metadata.read(asked, posting))
            if len(ready[1]) <= READY_BYTES_MAX:
                sheet.forms[form] = ready
        return ready

    def joined(self, ready: Ready, ending: Ending) -> bytes:
        """What is ready, with the date and an id of its own."""
        number = self._number
        if number == _BLOCK:
            self._block += 1
            self._renew()
            number = 0
        self._number = number + 1
        dated = self._dated_kept if ending is _KEEP_ALIVE else self._dated_closed
        return b"".join((ready[0], dated, _LAST_DIGITS[number], ready[1]))


def _ready(reply: Reply) -> Ready:
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
    if reply.body:
        lines.append(f"Content-Type: {reply.media_type}")
    if reply.status not in _BODILESS:
        lines.append(f"Content-Length: {len(reply.body)}")
    lines.append(f"Server: {SERVER}")
    lines += [f"{name}: {value}" for name, value in reply.headers]
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1"), b"\r\n\r\n" + reply.body
