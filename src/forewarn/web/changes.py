"""The change stream under /fabric/v1: every change of an event as it happens, with its end.

Server-sent events. The id of each is the journal's cursor, so whoever comes back with the last one
it saw (`Last-Event-ID`) misses nothing. What one commit wrote comes together, and only its last
line bears the cursor: a reader cut off in between gets all of it again, rather than half.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from forewarn.core.rights import Right
from forewarn.errors import Pruned, Unavailable
from forewarn.ports.store import Cursor
from forewarn.service.journals import Filter, Page
from forewarn.web import calls
from forewarn.web.calls import Answer, Call, Stream
from forewarn.web.control_parts import ControlParts
from forewarn.web.described import Described, Parameter
from forewarn.web.journal import ABOUT_EVENTS, AFTER, line_form, wanted
from forewarn.web.rows import Row
from forewarn.wire import control as wire
from forewarn.wire import control_forms as forms

CONTENT_TYPE: Final = "text/event-stream"
# Commits that are read at one time, and so what one part holds at most.
PAGE: Final = 100
# How long a reader that was cut off should wait before it comes back.
RETRY_MILLISECONDS: Final = 2000
LAST_EVENT_ID: Final = "Last-Event-ID"


def _changes(parts: ControlParts, call: Call) -> Answer:
    asked_for = wanted(parts, call, of_events=True)
    after = _beginning(parts, call)
    try:
        part = _part(parts, call, asked_for, after)
    except Pruned as error:
        return calls.error(HTTPStatus.GONE, "Gone", _remedy(error))
    greeting = f"retry: {RETRY_MILLISECONDS}\nid: {after}\n\n".encode()
    return _answer(greeting + part.body, part.stream)


def _beginning(parts: ControlParts, call: Call) -> Cursor:
    """Where to begin: after what the reader saw last, else now.

    The header comes first: a reader that was cut off asks again at the same address.
    """
    seen = call.headers.get(LAST_EVENT_ID.lower()) or call.asked.get(AFTER.name)
    return parts.journals.store.head() if seen is None else Cursor(seen)


def _part(parts: ControlParts, call: Call, asked_for: Filter, after: Cursor) -> Answer:
    """What happened after a cursor. Raises: Malformed, Pruned, Unavailable."""
    # Counted first: what is committed meanwhile is news once more, rather than never.
    count = parts.news.count
    page = parts.journals.page(after, PAGE, asked_for)
    stream = Stream(
        call=call,
        # The cursor moves on though nothing is told, so that it is not pruned one day.
        beat=f": still here\nid: {page.cursor}\n\n".encode(),
        is_behind=not page.is_last,
        is_news=lambda: parts.news.count != count,
        more=lambda: _more(parts, call, asked_for, page.cursor),
    )
    return _answer(_spelled(parts, page), stream)


def _more(parts: ControlParts, call: Call, asked_for: Filter, after: Cursor) -> Answer:
    try:
        return _part(parts, call, asked_for, after)
    except Pruned as error:
        fault = forms.Fault(code="Gone", message=_remedy(error))
        told = wire.dump(forms.ErrorForm(error=fault))
        return _answer(b"event: gone\ndata: " + told + b"\n\n", None)
    except Unavailable:
        # Whoever comes back when the store does misses nothing.
        return _answer(b": the store is away\n\n", None)


def _spelled(parts: ControlParts, page: Page) -> bytes:
    blocks: list[bytes] = []
    for number, line in enumerate(page.lines, start=1):
        following = page.lines[number : number + 1]
        is_last_of_commit = not following or following[0].cursor != line.cursor
        bears = f"id: {line.cursor}\n".encode() if is_last_of_commit else b""
        blocks.append(
            b"event: change\n" + bears + b"data: " + wire.dump(line_form(parts, line)) + b"\n\n"
        )
    return b"".join(blocks)


def _remedy(error: Pruned) -> str:
    return f"{error}; read what there is now (/fabric/v1/events), then follow without a cursor"


def _answer(body: bytes, stream: Stream | None) -> Answer:
    return Answer(status=HTTPStatus.OK, body=body, content_type=CONTENT_TYPE, stream=stream)


ROWS: Final = (
    Row(
        "GET",
        "/fabric/v1/changes",
        Right.READ,
        _changes,
        Described(
            name="followChanges",
            summary="Follow every change of an event as it happens, Completed and Canceled "
            "included: server-sent events `change`, each with a line of the journal as its data "
            "and the journal's cursor as its id.",
            query=(AFTER, *ABOUT_EVENTS),
            headers=(
                Parameter(name=LAST_EVENT_ID, about="The id that was seen last; before `after`."),
            ),
            answers={HTTPStatus.OK: CONTENT_TYPE},
            refusals=frozenset(
                {
                    HTTPStatus.NOT_FOUND,
                    HTTPStatus.CONFLICT,
                    HTTPStatus.GONE,
                    HTTPStatus.TOO_MANY_REQUESTS,
                }
            ),
        ),
    ),
)
