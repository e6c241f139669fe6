"""The document of scheduled events to bytes, and requests to start them from bytes.

Every decision about a byte is in docs/protocol/, every byte in tests/wire/golden/.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Final

from forewarn.core.documents import Document, Notice
from forewarn.core.names import Incarnation
from forewarn.core.scopes import ScopeKind
from forewarn.errors import Malformed
from forewarn.wire import versions
from forewarn.wire.versions import Version

# More than any document offers: a placement group has at most a hundred machines.
START_REQUESTS_MAX: Final = 1000
# A GUID in braces has 38 characters.
EVENT_ID_LENGTH_MAX: Final = 128

_SECOND: Final = timedelta(seconds=1)
_UNKNOWN_DURATION: Final = -1
# strftime would write these in the language of the host.
_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
# An entity tag, strong or weak, quoted or (as some clients send it) bare.
_TAG: Final = re.compile(r'(?:W/)?(?:"([^"]*)"|([^\s,"]+))', re.IGNORECASE)


def dump_document(document: Document, version: Version, kind: ScopeKind) -> bytes:
    """The document as a machine reads it under that version: one line of compact UTF-8 JSON.

    The incarnation is the same under all versions: it also counts changes to events that
    an older version does not show.
    """
    shown = [
        _event(notice, version, kind)
        for notice in document.notices
        if versions.shows(version, notice.type)
    ]
    content = {"DocumentIncarnation": document.incarnation, "Events": shown}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    # Half of a surrogate pair in somebody's description must not cost a scope its document.
    return text.encode("utf-8", "replace")


def _event(notice: Notice, version: Version, kind: ScopeKind) -> dict[str, object]:
    everything: dict[str, object] = {
        "EventId": notice.id.upper(),
        "EventStatus": notice.status.value,
        "EventType": notice.type.value,
        "ResourceType": "VirtualMachine",
        "Resources": [versions.resource_name(name, version, kind) for name in notice.machines],
        # Azure blanks the time once the event has started.
        "NotBefore": "" if notice.not_before is None else dump_time(notice.not_before),
        "Description": notice.description,
        "EventSource": notice.source.value,
        "DurationInSeconds": dump_seconds(notice.duration),
    }
    return {member: everything[member] for member in versions.members(version)}


def dump_seconds(duration: timedelta | None) -> int:
    """A length of time in whole seconds; -1 where nobody knows it."""
    # Rounded up, because 0 means that there will be no interruption at all.
    return _UNKNOWN_DURATION if duration is None else -(-duration // _SECOND)


def dump_time(instant: datetime) -> str:
    """An instant as RFC 1123 has it, with the true weekday: strict parsers check it.

    Fractions are cut off. Shown too early, a time is still one before which nothing starts.
    """
    assert instant.utcoffset() == timedelta(), "times are UTC, always"
    weekday, month = _WEEKDAYS[instant.weekday()], _MONTHS[instant.month - 1]
    return (
        f"{weekday}, {instant.day:02} {month} {instant.year:04} "
        f"{instant.hour:02}:{instant.minute:02}:{instant.second:02} GMT"
    )


def load_start_requests(body: bytes) -> tuple[str, ...]:
    """The ids of the events to start, as they were sent.

    Members beside StartRequests and EventId are ignored: clients of 2017 send the incarnation
    too, as a number or as text. Raises: Malformed.
    """
    requests = _member(_load(body), "StartRequests")
    if not isinstance(requests, list):
        raise Malformed("StartRequests is not a list")
    if not requests:
        raise Malformed("StartRequests is empty: there is nothing to start")
    if len(requests) > START_REQUESTS_MAX:
        raise Malformed(f"StartRequests has more than {START_REQUESTS_MAX} elements")
    return tuple(_event_id(request) for request in requests)


def _load(body: bytes) -> object:
    try:
        # Some clients begin UTF-8 with a byte order mark.
        content: object = json.loads(body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Malformed("the body is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise Malformed("the body is not JSON") from error
    return content


def _member(content: object, name: str) -> object:
    if not isinstance(content, dict):
        raise Malformed(f"expected an object with the member {name}")
    # Azure's own serializers do not mind the case of a name, so a client may have it wrong.
    named = [value for key, value in content.items() if key.lower() == name.lower()]
    if len(named) != 1:
        raise Malformed(f"expected one member {name}, found {len(named)}")
    found: object = named[0]
    return found


def _event_id(request: object) -> str:
    event_id = _member(request, "EventId")
    if not isinstance(event_id, str) or not event_id.strip():
        raise Malformed("an EventId is not a string, or is empty")
    if len(event_id) > EVENT_ID_LENGTH_MAX or not event_id.isascii():
        raise Malformed("an EventId is not the id of any event")
    return event_id


def etag(incarnation: Incarnation) -> str:
    """The entity tag of every document with that incarnation."""
    return f'"{incarnation}"'


def matches(if_none_match: str, incarnation: Incarnation) -> bool:
    """Whether a client's If-None-Match names the document that we would send.

    Lenient, for nobody knows how Azure quotes its tags: quoted, bare, weak, a list, or `*`.
    """
    current = str(incarnation)
    return any(
        quoted == current or bare in (current, "*") for quoted, bare in _TAG.findall(if_none_match)
    )
