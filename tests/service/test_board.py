"""Documents, ready to be read."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

from forewarn.core.events import EventType
from forewarn.core.ledgers import Ledger
from forewarn.core.names import Incarnation, Revision, ScopeId
from forewarn.core.scopes import Enabling, ScopeKind
from forewarn.service.board import Board
from forewarn.testing.worlds import NOON, WEB, World
from forewarn.wire.versions import Version

NEWEST = Version.V2020_07_01

FIRST = Ledger(scope=WEB, revision=Revision(1))


def test_nothing_is_up_for_a_scope_nobody_declared() -> None:
    board = Board()

    assert board.posting(WEB.id) is None
    assert not board.shows(FIRST)


def test_a_posting_is_what_the_ledger_says() -> None:
    board = Board()

    board.post(FIRST)

    posting = board.posting(WEB.id)
    assert posting is not None
    assert posting.ledger is FIRST
    assert posting.scope == WEB
    assert posting.document == FIRST.document
    assert posting.revision == 1
    assert posting.is_enabled
    assert board.shows(FIRST)


def test_the_board_knows_its_scopes() -> None:
    board = Board()
    assert not board.scopes

    board.post(FIRST)

    assert board.scopes == (WEB.id,)


def test_a_scope_nobody_asked_for_yet_is_up_but_not_enabled() -> None:
    board = Board()

    board.post(replace(FIRST, scope=replace(WEB, enabling=Enabling.ON_REQUEST)))

    posting = board.posting(WEB.id)
    assert posting is not None
    assert not posting.is_enabled


def test_an_older_ledger_never_replaces_a_newer_one() -> None:
    """keeps S9: what guests read never goes back."""
    board = Board()
    newer = replace(FIRST, revision=Revision(2), incarnation=Incarnation(5))
    board.post(newer)

    board.post(FIRST)
    board.post(replace(newer, incarnation=Incarnation(4)))

    posting = board.posting(WEB.id)
    assert posting is not None
    assert posting.document.incarnation == 5
    assert not board.shows(FIRST)


def test_watchers_are_told_when_a_document_reads_differently_and_only_then() -> None:
    board = Board()
    told: list[ScopeId] = []
    board.watch(told.append)
    board.post(FIRST)
    assert told == [WEB.id]

    board.post(replace(FIRST, revision=Revision(2), heard_at=NOON))
    assert told == [WEB.id]

    board.post(replace(FIRST, revision=Revision(3), incarnation=Incarnation(2)))
    assert told == [WEB.id] * 2

    board.post(
        replace(
            FIRST,
            revision=Revision(4),
            incarnation=Incarnation(2),
            scope=replace(WEB, kind=ScopeKind.CLOUD_SERVICE),
        )
    )
    assert told == [WEB.id] * 3


def test_bytes_are_made_once_for_each_version() -> None:
    world = World(WEB)
    world.announce(EventType.FREEZE, "web-0")
    posting = world.parts.board.posting(WEB.id)
    assert posting is not None

    body = posting.body(NEWEST)

    assert json.loads(body)["DocumentIncarnation"] == posting.document.incarnation
    assert posting.body(NEWEST) is body
    assert posting.body(Version.V2017_03_01) != body


def test_a_new_document_means_new_bytes() -> None:
    world = World(WEB)
    before = world.parts.board.posting(WEB.id)
    assert before is not None

    world.announce(EventType.FREEZE, "web-0")

    after = world.parts.board.posting(WEB.id)
    assert after is not None
    assert before.body(NEWEST) != after.body(NEWEST)
    assert json.loads(before.body(NEWEST))["Events"] == []


def test_postings_of_the_past_stay_as_they_were() -> None:
    """Readers in other threads hold on to a posting while others are put up."""
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    held = world.parts.board.posting(WEB.id)
    assert held is not None

    world.advance(timedelta(hours=1))

    assert [notice.id for notice in held.document.notices] == [event.id]
