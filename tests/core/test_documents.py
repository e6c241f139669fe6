"""What guests see of events."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from forewarn.core import documents, events
from forewarn.core.documents import FIRST_INCARNATION, Document
from forewarn.core.events import (
    ANNOUNCED_TYPES,
    Approval,
    Audience,
    Event,
    EventStatus,
    EventType,
)
from forewarn.testing import strategies
from forewarn.testing.strategies import EPOCH

REBOOT = EventType.REBOOT
LISTS = st.lists(strategies.events(), max_size=5, unique_by=lambda event: event.id)


@given(LISTS)
def test_guests_see_open_events_that_are_meant_for_them_in_the_order_of_creation(
    listed: list[Event],
) -> None:
    """keeps S8."""
    shown = documents.notices(listed)

    assert [notice.id for notice in shown] == [
        event.id
        for event in listed
        if event.status in (EventStatus.SCHEDULED, EventStatus.STARTED)
        and event.audience is Audience.GUESTS
    ]


@given(strategies.events())
def test_a_notice_is_the_face_of_its_event(event: Event) -> None:
    for notice in documents.notices([event]):
        assert notice.status is event.status
        assert notice.type is (REBOOT if event.type is EventType.REIMAGE else event.type)
        assert notice.source is event.source
        assert notice.machines == event.machines
        assert notice.description == event.description
        assert notice.duration == event.duration
        scheduled = event.status is EventStatus.SCHEDULED
        assert notice.not_before == (event.not_before if scheduled else None)


@given(LISTS)
def test_what_owners_do_to_their_own_machines_shows_in_no_document(listed: list[Event]) -> None:
    """keeps S5: a Reimage of which guests are told is a Reboot to them."""
    shown = documents.notices(listed)

    assert {notice.type for notice in shown} <= set(ANNOUNCED_TYPES)


@given(strategies.events())
def test_an_approval_is_not_news(event: Event) -> None:
    """Guests poll every second; waking them all for nothing would be rude."""
    approved = events.approve(event, Approval("web-0", "guest", "", EPOCH))

    assert documents.notices([approved]) == documents.notices([event])


@given(strategies.events())
def test_what_holds_an_event_is_not_news(event: Event) -> None:
    held = replace(event, hold="another event", readable_at=EPOCH)

    assert documents.notices([held]) == documents.notices([event])


def test_the_first_document_is_empty_and_bears_the_number_one() -> None:
    """keeps S7."""
    assert Document() == Document(FIRST_INCARNATION, ())
    assert FIRST_INCARNATION == 1
