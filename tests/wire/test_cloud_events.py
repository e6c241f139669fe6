"""Changes as those outside read them: CloudEvents 1.0 and Azure's Event Grid form, byte for byte."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forewarn.core.events import Audience, Event, EventSource, EventStatus, EventType
from forewarn.core.journal import Actor, Entry, Role, What
from forewarn.core.names import EventId, Incarnation, MachineName, ScopeId
from forewarn.core.scopes import Machine, Scope, ScopeKind
from forewarn.core.targets import Target
from forewarn.core.webhooks import ChangeId, DeadLetter, Form, Webhook, WebhookId
from forewarn.wire import cloud_events, signatures, webhook_forms

GOLDEN = Path(__file__).parent / "told"
REWRITE = "FOREWARN_REWRITE_GOLDEN"
NOON = datetime(2026, 11, 16, 12, 0, 0, 123456, tzinfo=UTC)
SUBSCRIPTION = "8d10da13-8125-4ba9-a717-bf7490507b3d"
CHANGE = ChangeId("5f1c0f0e9d7b4c7fb1b62a0cf0a1d111.0")

EVENT = Event(
    id=EventId("3DA1B9AA-5204-4335-8C33-C54E315DCFFE"),
    type=EventType.FREEZE,
    source=EventSource.PLATFORM,
    machines=(MachineName("myvmss_1"), MachineName("myvmss_2")),
    update_domain=0,
    description="Virtual machine is being paused — kürzlich.",
    duration=timedelta(seconds=5),
    announced_by="operator",
    announced_at=NOON,
    notice=timedelta(minutes=15),
    not_before=datetime(2026, 11, 16, 12, 15, 2, tzinfo=UTC),
)
SCOPE = Scope(
    name="MyVmss",
    resource_group="RG1",
    kind=ScopeKind.SCALE_SET,
    location="eastus",
    machines=(Machine(name=MachineName("myvmss_1")), Machine(name=MachineName("myvmss_2"))),
)
HOOK = Webhook(
    id=WebhookId("abc123"),
    name="pager",
    target=Target(scheme="https", host="hooks.example.org", port=443, path="/"),
    secret=b"secret",
    created_by="operator",
    created_at=NOON,
)
STATUSES = {
    EventStatus.SCHEDULED: What.ANNOUNCED,
    EventStatus.STARTED: What.STARTED,
    EventStatus.COMPLETED: What.COMPLETED,
    EventStatus.CANCELED: What.CANCELED,
}


def entry(status: EventStatus, event: Event = EVENT) -> Entry:
    return Entry(
        at=NOON,
        scope=ScopeId("rg1/myvmss"),
        what=STATUSES[status],
        actor=Actor(Role.OPERATOR, "operator", "10.0.0.7"),
        event=replace(event, status=status),
        note="",
        incarnation=Incarnation(7),
    )


def golden(name: str, told: bytes) -> bytes:
    """The bytes of a file, which is changed on purpose only."""
    path = GOLDEN / f"{name}.json"
    if os.environ.get(REWRITE) == "1":
        path.write_bytes(told)
    return path.read_bytes()


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("status", EventStatus)
def test_each_status_is_told_in_these_bytes(form: Form, status: EventStatus) -> None:
    """keeps N10"""
    hook = replace(HOOK, form=form)

    told = cloud_events.message(hook, CHANGE, entry(status), SCOPE, SUBSCRIPTION)

    assert told.body == golden(f"{form.value}-{status.value.lower()}", told.body)


@pytest.mark.parametrize("form", Form)
def test_a_trial_is_told_in_these_bytes(form: Form) -> None:
    told = cloud_events.trial(replace(HOOK, form=form), ChangeId("test-1"), NOON, SUBSCRIPTION)

    assert told.body == golden(f"{form.value}-test", told.body)


def test_a_cloud_event_has_what_the_specification_requires() -> None:
    """keeps N10"""
    told = cloud_events.message(HOOK, CHANGE, entry(EventStatus.STARTED), SCOPE, SUBSCRIPTION)
    content = json.loads(told.body)

    assert told.content_type == "application/cloudevents+json; charset=UTF-8"
    assert content["specversion"] == "1.0"
    for name in ("id", "source", "type", "subject", "time", "datacontenttype"):
        assert isinstance(content[name], str)
        assert content[name]
    assert all(name.isascii() and name.islower() and name.isalnum() for name in content)
    assert content["subject"] == EVENT.id
    assert datetime.fromisoformat(content["time"]) == NOON
    assert content["data"]["DocumentIncarnation"] == 7


def test_azures_form_is_a_list_of_one_in_azures_order() -> None:
    """keeps N10"""
    hook = replace(HOOK, form=Form.EVENT_GRID)
    told = cloud_events.message(hook, CHANGE, entry(EventStatus.COMPLETED), SCOPE, SUBSCRIPTION)
    (content,) = json.loads(told.body)

    assert ("aeg-event-type", "Notification") in told.headers
    assert content["eventType"] == cloud_events.EVENT_GRID_TYPE
    assert content["dataVersion"] == "3.0"
    info = content["data"]["resourceInfo"]
    assert list(info) == ["id", "name", "type", "location", "properties"]
    assert list(info["properties"]) == [
        *("DurationInSeconds", "Description", "EventId", "EventSource", "EventStatus"),
        *("EventType", "NotBefore", "Resources", "ResourceType", "ScheduledEventApiVersion"),
    ]
    assert info["name"] == info["properties"]["EventId"] == EVENT.id.lower()
    assert info["properties"]["EventStatus"] == "Completed"


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        (ScopeKind.STANDALONE, "virtualMachines/myvmss_1"),
        (ScopeKind.CLOUD_SERVICE, "cloudServices/MyVmss"),
        (ScopeKind.AVAILABILITY_SET, "availabilitySets/MyVmss"),
        (ScopeKind.SCALE_SET, "virtualMachineScaleSets/MyVmss"),
    ],
)
def test_the_source_is_the_resource(kind: ScopeKind, resource: str) -> None:
    scope = replace(SCOPE, kind=kind, location="")
    told = cloud_events.message(HOOK, CHANGE, entry(EventStatus.STARTED), scope, SUBSCRIPTION)

    source = json.loads(told.body)["source"]

    assert source == (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/RG1/providers/Microsoft.Compute/{resource}"
    )


def test_what_guests_are_never_told_says_so() -> None:
    hidden = replace(EVENT, audience=Audience.OPERATORS)
    told = cloud_events.message(
        HOOK, CHANGE, entry(EventStatus.STARTED, hidden), SCOPE, SUBSCRIPTION
    )

    assert json.loads(told.body)["data"]["Announced"] is False


def test_half_a_character_does_not_keep_a_change_from_being_told() -> None:
    odd = replace(EVENT, description="\ud800")
    told = cloud_events.message(HOOK, CHANGE, entry(EventStatus.STARTED, odd), SCOPE, SUBSCRIPTION)

    assert json.loads(told.body)["data"]["Description"] == "?"


def test_types_are_words_without_spaces() -> None:
    types = [cloud_events.type_of(what) for what in What]

    assert len(set(types)) == len(types)
    assert all(" " not in word and word.startswith("forewarn.event.") for word in types)


def test_the_signature_is_that_of_the_specification() -> None:
    """keeps N10: the example of the Standard Webhooks specification's libraries."""
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    at = datetime.fromtimestamp(1614265330, UTC)

    headers = dict(
        signatures.sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, b'{"test": 2432232314}')
    )

    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_dead_letter_is_shown_with_its_change() -> None:
    letter = DeadLetter(
        number=3,
        change=CHANGE,
        entry=entry(EventStatus.CANCELED),
        at=NOON,
        tries=9,
        why="answered 500",
    )

    form = webhook_forms.dead_letter_form(letter)

    assert form.type == "forewarn.event.canceled"
    assert form.event_id == EVENT.id
    assert form.scope == "rg1/myvmss"
