"""From what a VM reads to values: Azure's own bytes, what others write, and what is no document."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.client.documents import (
    Event,
    dump_event,
    load_document,
    load_error,
    load_event,
    load_name,
)
from forewarn.core.documents import Document, Notice
from forewarn.core.events import EventSource, EventStatus, EventType
from forewarn.core.names import EventId, Incarnation, MachineName
from forewarn.core.scopes import ScopeKind
from forewarn.errors import Malformed
from forewarn.wire.scheduled_events import dump_document
from forewarn.wire.versions import Version

# As recorded from Azure, under 2019-08-01.
RECORDED = (
    b'{"DocumentIncarnation":1,"Events":[{"EventId":"A123BC45-1234-5678-AB90-ABCDEF123456",'
    b'"EventStatus":"Scheduled","EventType":"Preempt","ResourceType":"VirtualMachine",'
    b'"Resources":["myspotvm"],"NotBefore":"Tue, 16 Mar 2021 00:58:46 GMT","Description":"",'
    b'"EventSource":"Platform"}]}'
)
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def test_a_recorded_document_is_understood() -> None:
    document = load_document(RECORDED)

    assert document.incarnation == 1
    assert document.events == (
        Event(
            id="A123BC45-1234-5678-AB90-ABCDEF123456",
            type="Preempt",
            status="Scheduled",
            resources=("myspotvm",),
            not_before=datetime(2021, 3, 16, 0, 58, 46, tzinfo=UTC),
            source="Platform",
        ),
    )


@pytest.mark.parametrize("version", Version)
def test_what_forewarn_writes_is_read_back(version: Version) -> None:
    notice = Notice(
        id=EventId("ABC"),
        status=EventStatus.STARTED,
        type=EventType.REBOOT,
        machines=(MachineName("web-0"),),
        not_before=None,
        description="Host server is undergoing maintenance.",
        source=EventSource.PLATFORM,
        duration=timedelta(seconds=9),
    )
    written = dump_document(Document(Incarnation(7), (notice,)), version, ScopeKind.CLOUD_SERVICE)

    (event,) = load_document(written).events

    assert (event.id, event.type, event.resources) == ("ABC", "Reboot", ("web-0",))
    assert event.has_started
    assert event.not_before is None
    newest = version is Version.V2020_07_01
    assert event.duration == (timedelta(seconds=9) if newest else None)


def test_the_documents_own_mistakes_are_forgiven() -> None:
    body = (
        b'\xef\xbb\xbf{"DocumentIncarnation":"3","Events":['
        b'{"EventId":"abc","EventStatus":"Scheduled","EventType":"New","NotBefore":"2030-01-01T12:00:00Z",'
        b'"DurationInSeconds":-1},'
        b'{"EventId":"def","NotBefore":"soon","Resources":null,"DurationInSeconds":1e308},'
        b'{"EventId":"def","NotBefore":"2030-01-01T12:00:00","DurationInSeconds":"9"}]}'
    )

    document = load_document(body)

    assert document.incarnation == 3
    assert document.events == (
        Event("ABC", "New", "Scheduled", not_before=NOON),
        Event("DEF", "", "", not_before=NOON),
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" \n",
        b"[]",
        b"{}",
        b'{"DocumentIncarnation":1}',
        b'{"DocumentIncarnation":1,"Events":null}',
        b'{"DocumentIncarnation":null,"Events":[]}',
        b'{"DocumentIncarnation":1,"Events":[{}]}',
        b'{"DocumentIncarnation":1,"Events":["x"]}',
        b"\xff",
        b"[" * 100_000,
        RECORDED[: len(RECORDED) // 2],
    ],
    ids=lambda body: repr(body[:40]),
)
def test_what_is_no_document_never_passes_for_one_without_events(body: bytes) -> None:
    with pytest.raises(Malformed):
        load_document(body)


@given(st.binary())
def test_no_bytes_break_the_reader(body: bytes) -> None:
    with suppress(Malformed):
        load_document(body)
    load_error(body)


@given(st.text() | st.from_regex(r"[A-Z][a-z]{2}, [0-9]+ [A-Z][a-z]{2} [0-9]+ [0-9:+-]+ [A-Z]*"))
def test_no_time_breaks_the_reader(text: str) -> None:
    event = load_event({"EventId": "A", "NotBefore": text})

    assert event.not_before is None or event.not_before.utcoffset() == timedelta()


EVENTS = st.builds(
    Event,
    id=st.text(min_size=1, max_size=5).map(str.upper).filter(lambda text: text == text.upper()),
    type=st.sampled_from(["Freeze", "Reboot", "Whatever"]),
    status=st.sampled_from(["Scheduled", "Started"]),
    resources=st.lists(st.text(max_size=5)).map(tuple),
    not_before=st.none() | st.datetimes(timezones=st.just(UTC)),
    description=st.text(max_size=5),
    source=st.sampled_from(["", "Platform", "User"]),
    duration=st.none() | st.integers(0, 10**6).map(lambda seconds: timedelta(seconds=seconds)),
)


@given(EVENTS)
def test_an_event_can_be_kept_over_a_restart(event: Event) -> None:
    kept = json.dumps(dump_event(event))

    assert load_event(json.loads(kept)) == event


def test_a_vm_learns_its_name() -> None:
    assert load_name(b'{"compute":{"name":"web-0"},"network":{}}') == "web-0"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"compute":[]}', b'{"compute":{"name":""}}'])
def test_a_name_that_is_not_there_is_not_made_up(body: bytes) -> None:
    with pytest.raises(Malformed):
        load_name(body)


def test_names_of_vms_ignore_case() -> None:
    event = Event("ABC", "Reboot", "Scheduled", resources=("Web-0",))

    assert event.concerns("web-0")
    assert not event.concerns("web-1")


def test_a_refusal_is_quoted() -> None:
    assert load_error(b'{ "error": "Bad request: . Required" }') == "Bad request: . Required"
    assert load_error(b"<html>") == ""
