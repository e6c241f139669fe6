"""What every store promises of its feed and its journal: a part of the store contract."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import timedelta

import pytest

from forewarn.errors import Pruned
from forewarn.ports.store import Change, CommitId, Cursor, Store, Touch, Write

# Long enough that no test passes by sitting it out.
LONG = timedelta(seconds=30)
BEGINNING = Cursor("")


def put(store: Store, key: str, value: bytes | None, *, commit_id: str = "") -> int:
    """Write one record over whatever is there; the new version."""
    expected = store.get([key])[key].version
    write = Write(key, expected, value)
    return store.commit(CommitId(commit_id or f"{key}@{expected}"), [write], [])[key]


def follow(store: Store, cursor: Cursor, limit: int = 100) -> list[Change]:
    """All changes after a cursor, page by page."""
    found: list[Change] = []
    while page := store.changes(cursor, limit):
        assert len(page) <= limit
        found.extend(page)
        cursor = page[-1].cursor
    return found


class FeedContract:
    """What was committed, told to everyone."""

    def test_a_new_store_has_nothing_to_tell(self, store: Store) -> None:
        assert store.head() == BEGINNING
        assert store.changes(BEGINNING, 10) == []

    def test_the_feed_tells_each_commit_once_and_in_order(self, store: Store) -> None:
        store.commit(CommitId("c1"), [Write("b", 0, b"1"), Write("a", 0, b"1")], [b"x", b"y"])
        store.commit(CommitId("c2"), [Write("a", 1, None)], [b"", b"y"])

        first, second = follow(store, BEGINNING)

        assert (first.commit_id, second.commit_id) == ("c1", "c2")
        assert first.touched == (Touch("b", 1), Touch("a", 1))
        assert first.journal == (b"x", b"y")
        assert second.touched == (Touch("a", 2),)
        assert second.journal == (b"", b"y")
        assert store.changes(first.cursor, 10) == [second]
        assert store.changes(second.cursor, 10) == []

    def test_the_head_is_the_cursor_of_the_newest_commit(self, store: Store) -> None:
        put(store, "a", b"one")
        head = store.head()
        put(store, "a", b"two")

        assert head != store.head()
        assert [change.touched for change in store.changes(head, 10)] == [(Touch("a", 2),)]
        assert follow(store, BEGINNING)[-1].cursor == store.head()

    def test_pages_of_the_feed_neither_repeat_nor_miss(self, store: Store) -> None:
        for number in range(11):
            put(store, "a", str(number).encode())

        assert len(store.changes(BEGINNING, 4)) == 4
        touched = [change.touched for change in follow(store, BEGINNING, limit=4)]
        assert touched == [(Touch("a", number),) for number in range(1, 12)]

    def test_a_wait_ends_with_the_commit_it_waited_for(self, store: Store) -> None:
        put(store, "a", b"one")
        head = store.head()
        began = time.monotonic()
        later = threading.Timer(0.05, put, (store, "a", b"two"))
        later.start()

        seen: Sequence[Change] = []
        while not seen:
            seen = store.changes(head, 10, wait=LONG)
        later.join()

        assert [change.touched for change in seen] == [(Touch("a", 2),)]
        assert time.monotonic() - began < LONG.total_seconds() / 2

    def test_a_wait_for_nothing_comes_to_an_end(self, store: Store) -> None:
        put(store, "a", b"one")
        began = time.monotonic()

        assert store.changes(store.head(), 10, wait=timedelta(milliseconds=20)) == []
        assert time.monotonic() - began < LONG.total_seconds() / 2

    def test_a_wait_with_something_to_tell_does_not_wait(self, store: Store) -> None:
        put(store, "a", b"one")
        began = time.monotonic()

        assert len(store.changes(BEGINNING, 10, wait=LONG)) == 1
        assert time.monotonic() - began < LONG.total_seconds() / 2


class PruneContract:
    """The journal may be forgotten from its old end; records never are."""

    def test_pruning_forgets_what_is_before_the_cursor_and_counts_it(self, store: Store) -> None:
        for value in (b"1", b"2", b"3", b"4"):
            put(store, "a", value)
        first, _, third, fourth = follow(store, BEGINNING)

        assert store.prune(third.cursor) == 2

        assert follow(store, BEGINNING) == [third, fourth]
        assert store.changes(third.cursor, 10) == [fourth]
        with pytest.raises(Pruned):
            store.changes(first.cursor, 10)

    def test_pruning_leaves_records_and_the_head_alone(self, store: Store) -> None:
        put(store, "a", b"1")
        put(store, "b", b"2")
        head = store.head()

        assert store.prune(head) == 1

        assert store.head() == head
        assert [record.key for record in store.scan("", "", 10)] == ["a", "b"]
        assert store.commit(CommitId("c3"), [Write("a", 1, b"3")], []) == {"a": 2}
        assert [change.commit_id for change in store.changes(head, 10)] == ["c3"]

    def test_pruning_twice_or_from_the_beginning_forgets_nothing(self, store: Store) -> None:
        put(store, "a", b"1")
        put(store, "a", b"2")

        assert store.prune(BEGINNING) == 0
        assert store.prune(store.head()) == 1
        assert store.prune(store.head()) == 0
        assert store.prune(BEGINNING) == 0

    def test_an_empty_store_has_nothing_to_prune(self, store: Store) -> None:
        assert store.prune(store.head()) == 0

    def test_what_is_kept_is_still_repeatable(self, store: Store) -> None:
        put(store, "a", b"1")
        put(store, "a", b"2", commit_id="kept")
        store.prune(store.head())

        assert store.commit(CommitId("kept"), [Write("a", 1, b"2")], []) == {"a": 2}
        assert store.get(["a"])["a"].version == 2
