"""What a VM reads at the endpoint, from bytes to values; the mirror of `wire.scheduled_events`.

Lenient where that one is exact: of a document that others wrote, whatever can be understood is.
Members that an api-version does not have are empty, types and sources are text that may be new to us,
and only what is no document at all is Malformed: it must never pass for one without events.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from forewarn.errors import Malformed

SCHEDULED: Final = "Scheduled"
STARTED: Final = "Started"


@dataclass(frozen=True, slots=True)
class Event:
    """An event, as its document shows it."""

    # In upper case, as Azure writes it, whatever the server wrote.
    id: str
    # Freeze, Reboot, Redeploy, Preempt, Terminate, or what Azure may yet think of.
    type: str
    # "Scheduled" or "Started".
    status: str
    # The VMs that it concerns, by Azure's names; the first may be taken for the leader.
    resources: tuple[str, ...] = ()
    # None once it has started: there is nothing left to wait for.
    not_before: datetime | None = None
    description: str = ""
    # "Platform", "User", or "" where nobody says.
    source: str = ""
    # How long the VMs will be interrupted; None where nobody knows.
    duration: timedelta | None = None

    @property
    def has_started(self) -> bool:
        return self.status == STARTED

    def concerns(self, name: str) -> bool:
        """Whether a VM is among those that will be hit. Azure's names ignore case."""
        return name.casefold() in (resource.casefold() for resource in self.resources)


@dataclass(frozen=True, slots=True)
class Document:
    """All events that a VM can read of, each once, under the document's number."""

    incarnation: int
    events: tuple[Event, ...] = ()


def load_document(body: bytes) -> Document:
    """The document that an answer has for its body. Raises: Malformed."""
    content = _object(_load(body))
    events = content.get("Events")
    if not isinstance(events, list):
        raise Malformed("the answer has no list of Events")
    try:
        # A number, but some servers write it as text.
        incarnation = int(str(content.get("DocumentIncarnation")))
    except ValueError as error:
        raise Malformed("the answer has no DocumentIncarnation") from error
    found = {event.id: event for event in map(load_event, events)}
    return Document(incarnation, tuple(found.values()))


def load_event(content: object) -> Event:
    """One event of a document, or one that `dump_event` wrote. Raises: Malformed."""
    members = _object(content)
    event_id = _text(members, "EventId")
    if not event_id:
        raise Malformed("an event has no EventId")
    resources = members.get("Resources")
    return Event(
        id=event_id.upper(),
        type=_text(members, "EventType"),
        status=_text(members, "EventStatus"),
        resources=tuple(map(str, resources)) if isinstance(resources, list) else (),
        not_before=_instant(_text(members, "NotBefore")),
        description=_text(members, "Description"),
        source=_text(members, "EventSource"),
        duration=_duration(members.get("DurationInSeconds")),
    )


def dump_event(event: Event) -> dict[str, object]:
    """An event as JSON can keep it, for who must know after a restart what was known before."""
    return {
        "EventId": event.id,
        "EventStatus": event.status,
        "EventType": event.type,
        "Resources": list(event.resources),
        "NotBefore": "" if event.not_before is None else event.not_before.isoformat(),
        "Description": event.description,
        "EventSource": event.source,
        "DurationInSeconds": -1 if event.duration is None else event.duration.total_seconds(),
    }


def dump_approval(event_ids: tuple[str, ...]) -> bytes:
    """The body that approves these events."""
    return json.dumps({"StartRequests": [{"EventId": one} for one in event_ids]}).encode()


def load_name(body: bytes) -> str:
    """The VM's own name, of /metadata/instance. Raises: Malformed."""
    compute = _object(_load(body)).get("compute")
    name = _text(compute, "name") if isinstance(compute, dict) else ""
    if not name:
        raise Malformed("the answer has no compute.name")
    return name


def load_error(body: bytes) -> str:
    """What a refusal says, as far as it says anything."""
    try:
        return _text(_object(_load(body)), "error")
    except Malformed:
        return ""


def _load(body: bytes) -> object:
    if not body.strip():
        raise Malformed("the answer is empty")
    try:
        content: object = json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Malformed("the answer is not JSON") from error
    return content


def _object(content: object) -> Mapping[str, object]:
    if not isinstance(content, dict):
        raise Malformed("expected a JSON object")
    return content


def _text(members: Mapping[str, object], name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""


def _instant(text: str) -> datetime | None:
    """RFC 1123, or ISO 8601 as old documents and Microsoft's own mock server have it."""
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            instant = parse(text)
        except (ValueError, OverflowError):
            continue
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    return None


def _duration(seconds: object) -> timedelta | None:
    if not isinstance(seconds, int | float) or seconds < 0:
        return None
    try:
        return timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return None
