"""A change of an event as those outside read it: CloudEvents 1.0, or Azure's Event Grid form.

Every byte is in tests/wire/told/. What Azure documents of its form, and where it contradicts itself,
is in docs/protocol/.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from forewarn.core.events import Audience, Event, EventStatus
from forewarn.core.journal import Entry, What
from forewarn.core.scopes import Scope, ScopeKind
from forewarn.core.webhooks import ChangeId, Form, Webhook
from forewarn.wire import scheduled_events
from forewarn.wire.versions import Version

SPEC_VERSION: Final = "1.0"
EVENT_GRID_TYPE: Final = (
    "Microsoft.ResourceNotifications.MaintenanceResources.ScheduledEventEmitted"
)
EVENT_GRID_DATA_VERSION: Final = "3.0"
API_VERSION: Final = Version.V2020_07_01.value
# Of the profile that turns on Azure's own publishing.
ARM_API_VERSION: Final = "2025-04-01"

_TYPE_PREFIX: Final = "forewarn.event."
# The status that guests read is the better word for an announcement.
_TYPE_WORDS: Final = {What.ANNOUNCED: "scheduled"}
_CLOUD_EVENTS: Final = "application/cloudevents+json; charset=UTF-8"
_JSON: Final = "application/json; charset=utf-8"
_KINDS: Final = {
    ScopeKind.STANDALONE: "virtualMachines",
    ScopeKind.CLOUD_SERVICE: "cloudServices",
    ScopeKind.AVAILABILITY_SET: "availabilitySets",
    ScopeKind.SCALE_SET: "virtualMachineScaleSets",
}
_EVENT_TYPE: Final = "microsoft.maintenance/scheduledEvents"


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent, before it is signed."""

    content_type: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


def type_of(what: What) -> str:
    """The type of a change in CloudEvents: "forewarn.event.timed-out"."""
    return _TYPE_PREFIX + _TYPE_WORDS.get(what, what.value).replace(" ", "-")


def message(
    webhook: Webhook, change: ChangeId, entry: Entry, scope: Scope, subscription: str
) -> Message:
    """A change in the form that a webhook asked for."""
    event = entry.event
    assert event is not None, "whoever is told is told of an event"
    source = _resource_id(scope, event, subscription)
    if webhook.form is Form.CLOUD_EVENTS:
        return _cloud_event(_envelope(change, source, entry, event))
    return _event_grid(_grid_event(change, source, entry, event, scope, subscription))


def trial(webhook: Webhook, change: ChangeId, at: datetime, subscription: str) -> Message:
    """A message that tells of nothing: somebody wants to know whether it arrives."""
    source = f"/subscriptions/{quote(subscription)}"
    subject = f"webhooks/{webhook.id}"
    data: dict[str, object] = {"message": "forewarn was asked to try this webhook"}
    if webhook.form is Form.CLOUD_EVENTS:
        return _cloud_event(
            {
                "specversion": SPEC_VERSION,
                "id": change,
                "source": source,
                "type": "forewarn.test",
                "subject": subject,
                "time": _time(at),
                "datacontenttype": "application/json",
                "data": data,
            }
        )
    return _event_grid(
        {
            "id": change,
            "topic": source,
            "subject": subject,
            "data": data,
            "eventType": "Forewarn.Test",
            "dataVersion": EVENT_GRID_DATA_VERSION,
            "metadataVersion": "1",
            "eventTime": _time(at),
        }
    )


def _envelope(change: ChangeId, source: str, entry: Entry, event: Event) -> dict[str, object]:
    return {
        "specversion": SPEC_VERSION,
        "id": change,
        "source": source,
        "type": type_of(entry.what),
        "subject": event.id.upper(),
        "time": _time(entry.at),
        "datacontenttype": "application/json",
        "data": {
            **_face(event),
            "ScheduledEventApiVersion": API_VERSION,
            "DocumentIncarnation": entry.incarnation,
            "Scope": entry.scope,
            # What guests are never told of is told here too.
            "Announced": event.audience is Audience.GUESTS,
            "Actor": {"Role": entry.actor.role.value, "Name": entry.actor.name},
            "Note": entry.note,
        },
    }


def _grid_event(
    change: ChangeId, source: str, entry: Entry, event: Event, scope: Scope, subscription: str
) -> dict[str, object]:
    # Azure writes the id in lower case here, and in upper case for guests.
    name = event.id.lower()
    resource = f"{source}/providers/microsoft.maintenance/scheduledevents/{name}"
    face = _face(event)
    properties = {
        "DurationInSeconds": face["DurationInSeconds"],
        "Description": face["Description"],
        "EventId": name,
        "EventSource": face["EventSource"],
        "EventStatus": face["EventStatus"],
        "EventType": face["EventType"],
        "NotBefore": face["NotBefore"],
        "Resources": face["Resources"],
        "ResourceType": face["ResourceType"],
        "ScheduledEventApiVersion": API_VERSION,
    }
    info = {
        "id": resource,
        "name": name,
        "type": _EVENT_TYPE,
        "location": scope.location or "local",
        "properties": properties,
    }
    return {
        "id": change,
        "topic": f"/subscriptions/{quote(subscription)}",
        "subject": resource,
        "data": {"resourceInfo": info, "apiVersion": ARM_API_VERSION},
        "eventType": EVENT_GRID_TYPE,
        "dataVersion": EVENT_GRID_DATA_VERSION,
        "metadataVersion": "1",
        "eventTime": _time(entry.at),
    }


def _face(event: Event) -> dict[str, object]:
    """The members that guests read, of an event in any status."""
    is_scheduled = event.status is EventStatus.SCHEDULED
    return {
        "EventId": event.id.upper(),
        "EventStatus": event.status.value,
        "EventType": event.type.value,
        "ResourceType": "VirtualMachine",
        "Resources": list(event.machines),
        "NotBefore": scheduled_events.dump_time(event.not_before) if is_scheduled else "",
        "Description": event.description,
        "EventSource": event.source.value,
        "DurationInSeconds": scheduled_events.dump_seconds(event.duration),
    }


def _resource_id(scope: Scope, event: Event, subscription: str) -> str:
    """The resource that an event belongs to, as Azure names it."""
    # A machine on its own is a resource under its own name, whatever its scope is called.
    name = event.machines[0] if scope.kind is ScopeKind.STANDALONE else scope.name
    return (
        f"/subscriptions/{quote(subscription)}/resourceGroups/{quote(scope.resource_group)}"
        f"/providers/Microsoft.Compute/{_KINDS[scope.kind]}/{quote(name)}"
    )


def _cloud_event(content: dict[str, object]) -> Message:
    return Message(_CLOUD_EVENTS, (), _bytes(content))


def _event_grid(content: dict[str, object]) -> Message:
    # Event Grid delivers a list, of one as a rule.
    return Message(_JSON, (("aeg-event-type", "Notification"),), _bytes([content]))


def _bytes(content: object) -> bytes:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    # Half of a surrogate pair in somebody's description must not keep a change from being told.
    return text.encode("utf-8", "replace")


def _time(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
