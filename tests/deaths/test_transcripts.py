"""The judge is judged: each kind of lie that a service could tell after its death is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from forewarn.testing.transcripts import (
    Charge,
    Deed,
    Said,
    Transcript,
    inconsistencies,
    settled,
    undisturbed,
    verdict,
)

NOON = "2030-01-01T12:00:00Z"
LATER = "2030-01-01T12:00:31Z"
WISH = "wish 1 of life 1"


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def record(**changes: object) -> dict[str, Any]:
    return {
        "event_id": "A", "type": "Preempt", "status": "Completed", "scope": "web",
        "resources": ["web-0"], "description": WISH, "not_before": LATER,
        "not_before_earlier": [], "readable_at": NOON, "approved": None, "started_at": LATER,
        "ended_at": LATER, **changes,
    }  # fmt: skip


def line(what: str, event: object, incarnation: int = 1) -> dict[str, Any]:
    return {
        "what": what, "at": NOON, "event": event, "scope": "web", "resource_group": "default",
        "incarnation": incarnation,
    }  # fmt: skip


class Case:
    """A story that is true; tests tell it otherwise."""

    def __init__(self, deed: Deed = Deed.ANNOUNCE) -> None:
        self.transcript = Transcript()
        self.transcript.wish(WISH, 100.0)
        self.transcript.started["A"] = 131.0
        approval = {"by": "web-0"}
        now = {
            Deed.ANNOUNCE: record(),
            Deed.APPROVE: record(approved=approval),
            Deed.CANCEL: record(status="Canceled", started_at=None),
            Deed.POSTPONE: record(not_before_earlier=[NOON]),
        }[deed]
        if deed is Deed.APPROVE:
            self.transcript.ask_to_start("A", "web-0")
        said = Said(
            deed=deed, event_id="A", by="web-0", life=1, answered_at=instant(NOON),
            record=deepcopy(now),
        )  # fmt: skip
        self.transcript.hear(said)
        self.events: dict[str, Any] = {"A": now}
        whats = {
            Deed.APPROVE: ["announced", "readable", "approved", "started", "completed"],
            Deed.CANCEL: ["announced", "readable", "canceled"],
        }.get(deed, ["announced", "readable", "started", "completed"])
        self.journal = [line(what, now, number) for number, what in enumerate(whats)]

    @property
    def charges(self) -> set[Charge]:
        return {breach.charge for breach in verdict(self.transcript, self.events, self.journal)}


@pytest.mark.parametrize("deed", Deed)
def test_a_service_that_stands_by_its_word_is_not_accused(deed: Deed) -> None:
    assert Case(deed).charges == set()


@pytest.mark.parametrize("deed", Deed)
def test_an_event_that_nobody_knows_any_more_is_lost(deed: Deed) -> None:
    case = Case(deed)
    case.events.clear()

    assert Charge.LOST in case.charges


@pytest.mark.parametrize(
    ("deed", "changes"),
    [
        (Deed.ANNOUNCE, {"resources": ["web-1"]}),
        (Deed.APPROVE, {"approved": None}),
        (Deed.CANCEL, {"status": "Scheduled"}),
        (Deed.CANCEL, {"started_at": LATER}),
        (Deed.POSTPONE, {"not_before": NOON, "not_before_earlier": []}),
    ],
)
def test_an_answer_that_the_record_no_longer_knows_is_lost(
    deed: Deed, changes: dict[str, object]
) -> None:
    case = Case(deed)
    case.events["A"].update(changes)

    assert Charge.LOST in case.charges


def test_an_approval_of_what_was_under_way_already_changes_nothing() -> None:
    case = Case(Deed.APPROVE)
    case.events["A"].update(approved=None, started_at=NOON)

    assert Charge.LOST not in case.charges


@pytest.mark.parametrize(
    "changes",
    [{"started_at": NOON}, {"readable_at": None}, {"readable_at": "2030-01-01T12:00:02Z"}],
)
def test_a_start_without_its_notice_is_early(changes: dict[str, object]) -> None:
    case = Case()
    case.events["A"].update(changes)

    assert Charge.EARLY in case.charges


def test_a_start_is_early_by_a_clock_of_our_own() -> None:
    """Whatever the record says."""
    case = Case()
    case.transcript.started["A"] = 129.0

    assert case.charges == {Charge.EARLY}


def test_an_event_that_nobody_asked_for_is_invented() -> None:
    case = Case()
    case.transcript.wished.clear()

    assert Charge.INVENTED in case.charges


def test_one_announcement_makes_one_event() -> None:
    case = Case()
    case.events["B"] = record(event_id="B")

    assert Charge.INVENTED in case.charges


def test_an_approval_that_nobody_sent_is_invented() -> None:
    case = Case(Deed.APPROVE)
    case.transcript.approvers.clear()

    assert case.charges == {Charge.INVENTED}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda journal: journal.insert(2, journal[1]),
        lambda journal: journal.pop(0),
        lambda journal: journal.reverse(),
        lambda journal: journal.append(line("moved", journal[0]["event"], 9)),
    ],
)
def test_a_journal_that_repeats_itself_is_found(
    spoil: Callable[[list[dict[str, Any]]], object],
) -> None:
    case = Case()
    spoil(case.journal)

    assert Charge.REPEATED in case.charges


def test_an_incarnation_that_goes_back_in_the_journal_is_reused() -> None:
    case = Case()
    case.journal[-1]["incarnation"] = 0

    assert case.charges == {Charge.REUSED}


def document(incarnation: int, **events: str) -> bytes:
    shown = [{"EventId": name, "EventStatus": status} for name, status in events.items()]
    return json.dumps({"DocumentIncarnation": incarnation, "Events": shown}).encode()


def read(*bodies: bytes, is_later: bool = True) -> set[Charge]:
    transcript = Transcript()
    for body in bodies:
        floor = transcript.floor("web") if is_later else 0
        transcript.read("web", "2020-07-01", floor, body, at=1.0)
    return {breach.charge for breach in verdict(transcript, {}, ())}


def test_documents_that_only_go_on_are_fine() -> None:
    assert read(document(1), document(2, A="Scheduled"), document(3, A="Started")) == set()
    assert read(document(2), document(1), is_later=False) == set(), "asked before, answered after"


def test_an_incarnation_that_goes_back_is_reused() -> None:
    assert read(document(2), document(1)) == {Charge.REUSED}


def test_an_incarnation_with_two_documents_is_reused() -> None:
    assert read(document(2), document(2, A="Scheduled")) == {Charge.REUSED}


def test_what_is_gone_or_started_does_not_return() -> None:
    shown, gone, again = document(1, A="Scheduled"), document(2), document(3, A="Scheduled")
    assert read(shown, gone, again) == {Charge.RETURNED}
    assert read(document(1, A="Started"), document(2, A="Scheduled")) == {Charge.RETURNED}


def test_what_was_never_answered_may_be_either() -> None:
    case = Case(Deed.APPROVE)
    case.transcript.doubt(Deed.ANNOUNCE, WISH, "operator")
    case.transcript.doubt(Deed.APPROVE, "A", "web-0")
    case.transcript.doubt(Deed.APPROVE, "A", "web-1")
    case.transcript.doubt(Deed.CANCEL, "A", "operator")

    assert case.charges == set()
    assert settled(case.transcript.doubts, case.events) == 2


def test_a_journal_that_grew_is_still_the_same_journal() -> None:
    case = Case()

    assert inconsistencies(case.journal[:2], case.journal, case.events) == []


def test_a_journal_that_forgot_or_changed_a_line_is_found_out() -> None:
    case = Case()
    changed = [*case.journal[:-1], line("completed", record(), 99)]

    for journal in (case.journal[1:], case.journal[:-1], changed):
        assert inconsistencies(case.journal, journal, {})


@pytest.mark.parametrize("now", [{"A": record(status="Scheduled")}, {"B": record(event_id="B")}])
def test_a_ledger_that_knows_otherwise_is_found_out(now: dict[str, Any]) -> None:
    case = Case()

    assert inconsistencies(case.journal, case.journal, now)


def test_what_happens_while_the_service_is_examined_is_no_lie() -> None:
    """A notice ran out after the ledgers were read, and before the journal was."""
    scheduled, started = record(status="Scheduled"), record(status="Started")
    journal = [line("announced", scheduled)]
    unread = [line("started", started)]
    ledgers = iter([{"A": scheduled}, {"A": started}])

    def has_grown() -> bool:
        journal.extend(unread)
        return bool([unread.pop() for _ in tuple(unread)])

    events = undisturbed(lambda: next(ledgers), has_grown)

    assert inconsistencies(journal[:1], journal, events) == []
