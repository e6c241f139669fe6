"""What two documents mean to who has read both."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.client.changes import Change, Kind, compare
from forewarn.client.documents import Event

SCHEDULED = Event("A", "Reboot", "Scheduled", ("web-0",), datetime(2030, 1, 1, tzinfo=UTC))
STARTED = replace(SCHEDULED, status="Started", not_before=None)
POSTPONED = replace(SCHEDULED, not_before=datetime(2030, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ([], [], []),
        ([], [SCHEDULED], [Kind.ANNOUNCED]),
        ([], [STARTED], [Kind.STARTED]),
        ([SCHEDULED], [SCHEDULED], []),
        ([SCHEDULED], [POSTPONED], [Kind.CHANGED]),
        ([SCHEDULED], [STARTED], [Kind.STARTED]),
        ([SCHEDULED], [], [Kind.GONE]),
        ([STARTED], [STARTED], []),
        ([STARTED], [replace(STARTED, description="longer")], [Kind.CHANGED]),
        ([STARTED], [SCHEDULED], [Kind.CHANGED]),
        ([STARTED], [], [Kind.GONE]),
    ],
)
def test_every_pair_of_states_has_its_meaning(
    before: list[Event], after: list[Event], kinds: list[Kind]
) -> None:
    assert [change.kind for change in compare(before, after, "web-0")] == kinds


def test_what_is_gone_is_told_first_and_as_it_was_last_seen() -> None:
    other = replace(SCHEDULED, id="B")

    changes = compare([STARTED], [other], "web-0")

    assert changes == (
        Change(Kind.GONE, STARTED, concerns_me=True),
        Change(Kind.ANNOUNCED, other, concerns_me=True),
    )


def test_a_neighbors_event_is_told_and_marked() -> None:
    """Keeps S22: a VM can tell whether it is in Resources."""
    (change,) = compare([], [SCHEDULED], "web-1")

    assert not change.concerns_me


def test_a_vm_that_was_taken_out_of_an_event_is_told() -> None:
    without = replace(SCHEDULED, resources=("web-1",))

    (change,) = compare([SCHEDULED], [without], "web-0")

    assert change == Change(Kind.CHANGED, without, concerns_me=True)


DOCUMENTS = st.dictionaries(
    st.sampled_from("ABCD"), st.sampled_from([SCHEDULED, STARTED, POSTPONED])
).map(lambda events: tuple(replace(event, id=name) for name, event in events.items()))


@given(DOCUMENTS, DOCUMENTS)
def test_who_was_told_everything_knows_the_document(
    before: tuple[Event, ...], after: tuple[Event, ...]
) -> None:
    known = {event.id: event for event in before}

    for change in compare(before, after, "web-0"):
        if change.kind is Kind.GONE:
            del known[change.event.id]
        else:
            known[change.event.id] = change.event

    assert known == {event.id: event for event in after}
