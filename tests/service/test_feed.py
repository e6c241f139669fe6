"""What others committed, told here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.core.events import EventType
from forewarn.core.ledgers import Ledger
from forewarn.core.wishes import Wish
from forewarn.errors import Unavailable
from forewarn.ports.store import Change, CommitId, Cursor, Write
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import FaultyStore
from forewarn.testing.worlds import NOON, OPERATOR, WEB, World


class Pair:
    """Two services over one store and one clock."""

    def __init__(self) -> None:
        self.clock = SimulatedClock(NOON)
        self.store = FaultyStore(MemoryStore(self.clock))
        self.left = World(clock=self.clock, store=self.store)
        self.right = World(clock=self.clock, store=self.store)


def test_what_another_service_commits_is_on_the_board_once_the_feed_is_followed() -> None:
    pair = Pair()
    pair.left.declare(WEB)
    pair.left.announce(EventType.FREEZE, "web-0")
    assert pair.right.parts.board.posting(WEB.id) is None

    followed = pair.right.parts.feed.follow(100)

    assert followed == len(pair.store.changes(Cursor(""), 100))
    assert pair.right.document(WEB.id) == pair.left.document(WEB.id)
    assert pair.right.caller("10.0.0.10").machine == "web-0"


def test_the_feed_goes_on_where_it_stopped() -> None:
    pair = Pair()
    pair.left.declare(WEB)
    feed = pair.right.parts.feed

    assert feed.follow(100) == 1
    assert feed.follow(100) == 0

    pair.left.announce(EventType.FREEZE, "web-0")
    assert feed.follow(1) == 1
    assert feed.follow(1) == 1
    assert pair.right.document(WEB.id) == pair.left.document(WEB.id)


def test_what_was_committed_here_is_not_read_again() -> None:
    pair = Pair()
    pair.left.declare(WEB)
    posting = pair.left.parts.board.posting(WEB.id)

    pair.left.parts.feed.follow(100)

    assert pair.left.parts.board.posting(WEB.id) is posting


def test_records_that_are_no_ledgers_are_passed_over() -> None:
    pair = Pair()
    pair.store.commit(CommitId("other"), [Write("rollout/1", 0, b"{}")], [])

    assert pair.right.parts.feed.follow(100) == 1
    assert pair.right.parts.directory.scopes() == ()


def test_whoever_fell_behind_a_pruned_journal_reads_everything_anew() -> None:
    pair = Pair()
    pair.left.declare(WEB)
    pair.right.parts.feed.follow(100)
    pair.left.announce(EventType.FREEZE, "web-0")
    pair.left.declare(WEB, replace(WEB, name="more", machines=()))
    pair.store.prune(pair.store.head())

    assert pair.right.parts.feed.follow(100) == 2

    assert pair.right.document(WEB.id) == pair.left.document(WEB.id)
    assert pair.right.parts.directory.scopes() == ("rg1/more", "rg1/web")
    assert pair.right.parts.feed.follow(100) == 0


def test_what_could_not_be_read_is_read_the_next_time() -> None:
    pair = Pair()
    pair.left.declare(WEB)
    pair.store.is_away = True
    with pytest.raises(Unavailable):
        pair.right.parts.feed.follow(100)

    pair.store.is_away = False
    pair.right.parts.feed.follow(100)

    assert pair.right.document(WEB.id) == pair.left.document(WEB.id)


class FickleStore(FaultyStore):
    """Goes away once, as soon as it has told what changed."""

    is_fickle = True

    def changes(self, after: Cursor, limit: int, wait: timedelta = timedelta()) -> Sequence[Change]:
        told = super().changes(after, limit, wait)
        self.is_away, self.is_fickle = self.is_fickle, False
        return told


def test_what_was_told_and_could_not_be_read_is_told_again() -> None:
    pair = Pair()
    pair.left.declare(WEB)
    store = FickleStore(pair.store)
    right = World(clock=pair.clock, store=store)
    pair.left.announce(EventType.FREEZE, "web-0")
    with pytest.raises(Unavailable):
        right.parts.feed.follow(100)

    store.is_away = False
    right.parts.feed.follow(100)

    assert right.document(WEB.id) == pair.left.document(WEB.id)


def test_a_commit_during_the_first_reading_is_told_twice_rather_than_never() -> None:
    pair = Pair()
    pair.left.declare(WEB)
    seen: list[int] = []

    def read(ledger: Ledger) -> None:
        seen.append(ledger.revision)
        wish = Wish(type=EventType.FREEZE, machines=("web-0",))
        pair.left.desk.announce(wish, (), OPERATOR)

    pair.right.parts.feed.read_all(read)

    assert seen == [1]
    assert pair.right.parts.feed.follow(100) == 1
    assert len(pair.right.document(WEB.id).notices) == 1


def test_what_was_not_told_here_yet_can_be_approved_here() -> None:
    """Keeps S16: an event is unknown only if the store does not know it."""
    pair = Pair()
    pair.left.declare(WEB)
    pair.right.parts.feed.follow(100)
    event = pair.left.announce(EventType.REBOOT, "web-0")

    pair.right.desk.approve_as_guest(pair.right.caller("10.0.0.11"), (event.id,))

    approval = pair.left.event(event.id).approval
    assert approval is not None
    assert approval.by == "web-1"


def test_a_roster_that_others_changed_unheard_is_brought_in_step_again() -> None:
    """Keeps S14: that nothing need change is decided on what is stored."""
    pair = Pair()
    pair.left.declare(WEB)
    pair.right.parts.feed.follow(100)
    pair.left.declare(replace(WEB, location="west"))

    pair.right.declare(WEB)

    assert pair.left.parts.books.load(WEB.id).scope == WEB
