"""The unit of everything: events in a ledger, and when its document counts as new."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forewarn.core import documents, ledgers
from forewarn.core.documents import INCARNATION_MAX
from forewarn.core.events import Event, EventSource
from forewarn.core.journal import SERVICE, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import Incarnation
from forewarn.core.scopes import Enabling, Scope
from forewarn.errors import UnknownEvent
from forewarn.testing import strategies
from forewarn.testing.strategies import EPOCH

EMPTY = Ledger(scope=Scope(name="web", resource_group="rg1"))


@given(strategies.ledgers(), st.data())
def test_incarnation_rises_by_one_exactly_when_the_notices_change(
    ledger: Ledger, data: st.DataObject
) -> None:
    """keeps S9."""
    kept = data.draw(st.lists(st.sampled_from(ledger.events), unique=True)) if ledger.events else []
    more = data.draw(st.lists(strategies.events(), max_size=2))
    after = replace(ledger, events=(*(e for e in ledger.events if e in kept), *more))

    sealed = ledgers.seal(ledger, Decision(after)).ledger

    changed = documents.notices(after.events) != documents.notices(ledger.events)
    assert sealed.incarnation - ledger.incarnation == changed
    assert sealed.document.notices == documents.notices(after.events)


@given(strategies.ledgers(), st.integers(0, 1_000_000))
def test_a_leap_is_kept_and_is_itself_the_change(ledger: Ledger, leap: int) -> None:
    leapt = replace(ledger, incarnation=Incarnation(ledger.incarnation + leap), events=())

    sealed = ledgers.seal(ledger, Decision(leapt)).ledger

    assert sealed.incarnation == ledger.incarnation + max(
        leap, documents.notices(ledger.events) != ()
    )


@given(strategies.events())
def test_every_line_of_a_commit_bears_the_incarnation_it_made(event: Event) -> None:
    decision = ledgers.note(EMPTY, What.ANNOUNCED, SERVICE, EPOCH, event, "text")

    sealed = ledgers.seal(EMPTY, decision)

    (entry,) = sealed.entries
    assert entry.incarnation == sealed.ledger.incarnation
    assert (entry.what, entry.actor, entry.at) == (What.ANNOUNCED, SERVICE, EPOCH)
    assert (entry.scope, entry.event, entry.note) == ("rg1/web", event, "text")


def test_an_incarnation_never_goes_back() -> None:
    later = replace(EMPTY, incarnation=Incarnation(7))

    with pytest.raises(AssertionError, match="never goes back"):
        ledgers.seal(later, Decision(EMPTY))


@given(strategies.events())
def test_an_incarnation_stays_within_what_clients_can_read(event: Event) -> None:
    assume(documents.notices([event]))
    last = replace(EMPTY, incarnation=INCARNATION_MAX)

    with pytest.raises(AssertionError, match="32 bits"):
        ledgers.seal(last, Decision(ledgers.record(last, event)))


@given(strategies.ledgers(), strategies.events())
def test_a_recorded_event_takes_its_own_place_or_the_last(ledger: Ledger, event: Event) -> None:
    assume(ledger.find(event.id) is None)
    recorded = ledgers.record(ledger, event)
    assert recorded.events == (*ledger.events, event)

    for known in ledger.events:
        changed = replace(known, hold="changed")
        again = ledgers.record(recorded, changed)
        assert [e.id for e in again.events] == [e.id for e in recorded.events]
        assert again.event(known.id) == changed


@given(strategies.events())
def test_an_event_is_found_however_a_client_writes_its_id(event: Event) -> None:
    ledger = ledgers.record(EMPTY, event)

    for spelling in (event.id, event.id.lower(), "{" + event.id.lower() + "}"):
        assert ledger.event(spelling) is event


def test_an_event_never_seen_is_unknown() -> None:
    assert EMPTY.find("E1") is None
    with pytest.raises(UnknownEvent, match="no event E1"):
        EMPTY.event("E1")


@given(strategies.ledgers())
def test_an_open_event_of_a_user_counts_as_a_user_operation(ledger: Ledger) -> None:
    """keeps S19."""
    users = [event for event in ledger.open_events if event.source is EventSource.USER]

    assert ledger.user_operations == len(users)
    assert all(event.ended_at is None for event in users)


@given(strategies.ledgers())
def test_guests_are_shown_the_visible_events(ledger: Ledger) -> None:
    shown = [event.id for event in ledgers.visible(ledger.events)]

    assert shown == [notice.id for notice in ledger.document.notices]
    assert ledger.document.incarnation == ledger.incarnation


@given(strategies.ledgers())
def test_a_scope_is_enabled_by_its_setting_or_by_a_request(ledger: Ledger) -> None:
    """keeps S13."""
    always = ledger.scope.enabling is Enabling.ALWAYS

    assert ledger.is_enabled is (always or ledger.enabled_at is not None)


def test_two_decisions_are_one_with_the_second_ones_ledger() -> None:
    first = ledgers.note(EMPTY, What.ENABLED, SERVICE, EPOCH)
    second = ledgers.note(replace(EMPTY, enabled_at=EPOCH), What.DISABLED, SERVICE, EPOCH)

    both = ledgers.then(first, second)

    assert both.ledger is second.ledger
    assert [entry.what for entry in both.entries] == [What.ENABLED, What.DISABLED]


@given(strategies.ledgers())
def test_only_what_ended_by_then_may_be_forgotten(ledger: Ledger) -> None:
    ended = {event.id: event.ended_at for event in ledger.events if event.ended_at is not None}

    for event_id, ended_at in ended.items():
        assert event_id in ledgers.forgettable(ledger, ended_at)
    assert set(ledgers.forgettable(ledger, EPOCH)) == {i for i, at in ended.items() if at <= EPOCH}
