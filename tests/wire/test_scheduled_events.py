"""Documents to bytes, and entity tags."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core.documents import INCARNATION_MAX, Document, Notice
from forewarn.core.events import EventSource, EventStatus, EventType
from forewarn.core.names import EventId, Incarnation, MachineName
from forewarn.core.scopes import ScopeKind
from forewarn.wire import versions
from forewarn.wire.scheduled_events import dump_document, dump_time, etag, matches
from forewarn.wire.versions import Version

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
FREEZE = Notice(
    id=EventId("A123BC45-1234-5678-AB90-ABCDEF123456"),
    status=EventStatus.SCHEDULED,
    type=EventType.FREEZE,
    machines=(MachineName("web-0"),),
    not_before=NOON,
    description="",
    source=EventSource.PLATFORM,
    duration=None,
)

times = st.datetimes(timezones=st.just(UTC))
# Lone surrogates included: nothing an operator types may cost a scope its document.
texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)
notices = st.builds(
    Notice,
    id=st.uuids().map(lambda value: EventId(str(value))),
    status=st.sampled_from([EventStatus.SCHEDULED, EventStatus.STARTED]),
    type=st.sampled_from(EventType),
    machines=st.lists(texts.map(MachineName), min_size=1, max_size=3).map(tuple),
    not_before=st.none() | times,
    description=texts,
    source=st.sampled_from(EventSource),
    duration=st.none() | st.timedeltas(timedelta(), timedelta(days=9)),
)
incarnations = st.integers(1, INCARNATION_MAX).map(Incarnation)
documents = st.builds(
    Document, incarnation=incarnations, notices=st.lists(notices, max_size=4).map(tuple)
)


def only_event(notice: Notice) -> dict[str, object]:
    body = dump_document(Document(notices=(notice,)), Version.V2020_07_01, ScopeKind.STANDALONE)
    (event,) = json.loads(body)["Events"]
    assert isinstance(event, dict)
    return event


def test_the_documented_example_comes_out_to_the_byte() -> None:
    """Keeps S7 and S8: as in Azure's page on testing evictions."""
    preempt = FREEZE._replace(
        type=EventType.PREEMPT,
        machines=(MachineName("myspotvm"),),
        not_before=datetime(2021, 3, 16, 0, 58, 46, tzinfo=UTC),
    )

    body = dump_document(
        Document(Incarnation(1), (preempt,)), Version.V2019_08_01, ScopeKind.STANDALONE
    )

    assert body == (
        b'{"DocumentIncarnation":1,"Events":[{"EventId":"A123BC45-1234-5678-AB90-ABCDEF123456",'
        b'"EventStatus":"Scheduled","EventType":"Preempt","ResourceType":"VirtualMachine",'
        b'"Resources":["myspotvm"],"NotBefore":"Tue, 16 Mar 2021 00:58:46 GMT",'
        b'"Description":"","EventSource":"Platform"}]}'
    )


@pytest.mark.parametrize("version", Version)
def test_an_empty_document_is_37_bytes(version: Version) -> None:
    """Keeps S7; 37 bytes as in a capture of the real service."""
    body = dump_document(Document(), version, ScopeKind.STANDALONE)

    assert body == b'{"DocumentIncarnation":1,"Events":[]}'
    assert len(body) == 37


@given(documents, st.sampled_from(Version), st.sampled_from(ScopeKind))
def test_a_document_has_exactly_the_members_of_its_version(
    document: Document, version: Version, kind: ScopeKind
) -> None:
    """Keeps S3, S5, S7 and S8."""
    body = dump_document(document, version, kind)

    content = json.loads(body.decode("utf-8"))
    assert list(content) == ["DocumentIncarnation", "Events"]
    assert content["DocumentIncarnation"] == document.incarnation
    visible = [n for n in document.notices if versions.shows(version, n.type)]
    assert [event["EventId"] for event in content["Events"]] == [n.id.upper() for n in visible]
    for event, notice in zip(content["Events"], visible, strict=True):
        assert tuple(event) == versions.members(version)
        assert event["EventType"] == notice.type.value
        assert event["EventStatus"] in ("Scheduled", "Started")
        assert event["ResourceType"] == "VirtualMachine"
        assert len(event["Resources"]) == len(notice.machines)
        assert (event["NotBefore"] == "") == (notice.not_before is None)
        assert isinstance(event.get("DurationInSeconds", 0), int)
    assert b"\n" not in body


@given(documents, st.sampled_from(ScopeKind))
def test_older_versions_never_show_newer_types(document: Document, kind: ScopeKind) -> None:
    """Keeps S5."""
    for version in (Version.V2017_03_01, Version.V2017_08_01):
        shown = json.loads(dump_document(document, version, kind))["Events"]
        assert not {event["EventType"] for event in shown} & {"Preempt", "Terminate"}
    shown = json.loads(dump_document(document, Version.V2017_11_01, kind))["Events"]
    assert "Terminate" not in {event["EventType"] for event in shown}


@given(documents, st.sampled_from(ScopeKind))
def test_all_versions_agree_on_the_incarnation(document: Document, kind: ScopeKind) -> None:
    """Keeps S9: one number, also where an event is hidden."""
    numbers = {
        json.loads(dump_document(document, version, kind))["DocumentIncarnation"]
        for version in Version
    }

    assert numbers == {document.incarnation}


def test_ids_are_upper_case_whatever_the_ledger_says() -> None:
    """Keeps S8."""
    lower = FREEZE._replace(id=EventId(FREEZE.id.lower()))

    assert only_event(lower)["EventId"] == "A123BC45-1234-5678-AB90-ABCDEF123456"


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        (None, -1),
        (timedelta(), 0),
        (timedelta(seconds=9), 9),
        (timedelta(milliseconds=1), 1),
        (timedelta(seconds=9, microseconds=1), 10),
        (timedelta(days=1), 86400),
    ],
)
def test_a_duration_is_whole_seconds_and_unknown_is_minus_one(
    duration: timedelta | None, seconds: int
) -> None:
    assert only_event(FREEZE._replace(duration=duration))["DurationInSeconds"] == seconds


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (datetime(2016, 9, 19, 18, 29, 47, tzinfo=UTC), "Mon, 19 Sep 2016 18:29:47 GMT"),
        (datetime(2024, 2, 29, tzinfo=UTC), "Thu, 29 Feb 2024 00:00:00 GMT"),
        (datetime(2026, 8, 1, 5, 41, 2, 999_999, tzinfo=UTC), "Sat, 01 Aug 2026 05:41:02 GMT"),
        (datetime(1, 1, 1, tzinfo=UTC), "Mon, 01 Jan 0001 00:00:00 GMT"),
    ],
)
def test_a_time_is_rfc_1123_with_its_true_weekday(instant: datetime, text: str) -> None:
    """Keeps S8."""
    assert dump_time(instant) == text


@given(st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - hypothesis adds the zone
def test_a_time_survives_a_round_trip(instant: datetime) -> None:
    text = dump_time(instant)

    parsed = parsedate_to_datetime(text)
    assert parsed == instant.replace(microsecond=0)
    assert text.startswith(("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[parsed.weekday()])
    assert len(text) == 29


def test_text_goes_out_as_utf_8_on_one_line() -> None:
    odd = FREEZE._replace(machines=(MachineName("büro"),), description="a\r\nb \ud800")

    body = dump_document(Document(notices=(odd,)), Version.V2020_07_01, ScopeKind.STANDALONE)

    assert '"Resources":["büro"]'.encode() in body
    assert rb'"Description":"a\r\nb ?"' in body


def test_a_tag_is_the_quoted_incarnation() -> None:
    """Keeps S9."""
    assert etag(Incarnation(7)) == '"7"'


@given(incarnations)
def test_a_tag_we_issued_matches(incarnation: Incarnation) -> None:
    """Keeps S9."""
    assert matches(etag(incarnation), incarnation)
    assert matches(f"W/{etag(incarnation)}", incarnation)
    assert not matches(etag(Incarnation(incarnation + 1)), incarnation)


@pytest.mark.parametrize(
    "value",
    ['"7"', "7", 'W/"7"', "w/7", "*", '"6", "7"', '"6","7"', "6, 7", ' \t"7" ', '"a,b", W/"7"'],
)
def test_a_tag_is_matched_leniently(value: str) -> None:
    assert matches(value, Incarnation(7))


@pytest.mark.parametrize(
    "value",
    [
        "",
        "0",
        '"0"',
        '"6"',
        "77",
        '"77"',
        "07",
        '"*"',
        '"6, 7"',
        '" 7 "',
        "-7",
        "\u0667",
        '"',
        "W/",
        ",",
    ],
)
def test_another_tag_does_not_match(value: str) -> None:
    assert not matches(value, Incarnation(7))


@pytest.mark.parametrize("value", ['"1"', "1", '"7"', "7", '"1', '"", "1"'])
def test_a_part_of_a_tag_does_not_match(value: str) -> None:
    assert not matches(value, Incarnation(17))


@given(st.text(), incarnations)
def test_any_header_is_answered(value: str, incarnation: Incarnation) -> None:
    assert matches(value, incarnation) in (True, False)
