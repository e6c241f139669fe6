"""What every store promises. Subclass, and provide the fixtures `clock` and `store`.

The store must be empty, and must take its time from that clock.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.errors import Conflict, Fenced
from forewarn.ports.store import Change, CommitId, Lease, Record, Store, Write
from forewarn.testing.feed_contract import (
    BEGINNING,
    LONG,
    FeedContract,
    PruneContract,
    follow,
    put,
)

MINUTE = timedelta(minutes=1)

COMMITTERS = 6
COMMITS_EACH = 20
HOT_KEYS = ("hot/a", "hot/b", "hot/c")


def held(lease: Lease | None) -> Lease:
    assert lease is not None, "the lease should have been free"
    return lease


class RecordContract:
    """Reading and paging."""

    def test_a_key_never_written_has_version_0_and_no_value(self, store: Store) -> None:
        assert store.get(["a", "b"]) == {"a": Record("a", 0, None), "b": Record("b", 0, None)}

    def test_a_commit_is_read_back_one_version_later(self, store: Store) -> None:
        versions = store.commit(CommitId("c1"), [Write("a", 0, b"one")], [])

        assert versions == {"a": 1}
        assert store.get(["a"]) == {"a": Record("a", 1, b"one")}

    def test_an_empty_value_is_a_value(self, store: Store) -> None:
        put(store, "a", b"")

        assert store.get(["a"])["a"].value == b""
        assert store.scan("", "", 10) == [Record("a", 1, b"")]

    def test_a_value_is_kept_byte_for_byte(self, store: Store) -> None:
        value = bytes(range(256)) * 40

        put(store, "a", value)

        assert store.get(["a"])["a"].value == value

    def test_a_deleted_record_keeps_its_version(self, store: Store) -> None:
        put(store, "a", b"one")

        assert put(store, "a", None) == 2
        assert store.get(["a"]) == {"a": Record("a", 2, None)}

    def test_a_deleted_key_cannot_be_written_as_if_it_were_new(self, store: Store) -> None:
        put(store, "a", b"one")
        put(store, "a", None)

        with pytest.raises(Conflict):
            store.commit(CommitId("again"), [Write("a", 0, b"two")], [])
        assert store.commit(CommitId("aware"), [Write("a", 2, b"two")], []) == {"a": 3}

    def test_a_scan_gives_the_living_records_of_a_prefix_in_order(self, store: Store) -> None:
        for key in ("s/b", "s/a", "s", "s0", "r/z", "s/c", "t"):
            put(store, key, key.encode())
        put(store, "s/b", None)

        assert store.scan("s/", "", 10) == [Record("s/a", 1, b"s/a"), Record("s/c", 1, b"s/c")]

    def test_a_scan_orders_keys_by_code_points(self, store: Store) -> None:
        """Not by UTF-16 units, nor by the custom of some language."""
        keys = ["Z", "a", "é", "z\U0001f600", "z\uffee", "z\U0010ffff", "z\U0010ffff!", "ab", "{"]
        for key in keys:
            put(store, key, b"")

        assert [record.key for record in store.scan("", "", 100)] == sorted(keys)
        of_z = [record.key for record in store.scan("z", "", 100)]
        assert of_z == ["z\uffee", "z\U0001f600", "z\U0010ffff", "z\U0010ffff!"]

    def test_a_scan_does_not_take_keys_for_patterns(self, store: Store) -> None:
        for key in ("a%b", "a_b", "axb", "a*b", "A%b"):
            put(store, key, b"")

        assert [record.key for record in store.scan("a%", "", 10)] == ["a%b"]
        assert [record.key for record in store.scan("a_", "", 10)] == ["a_b"]
        assert [record.key for record in store.scan("a*", "", 10)] == ["a*b"]

    def test_pages_of_a_scan_neither_repeat_nor_miss(self, store: Store) -> None:
        keys = [f"s/{number:02}" for number in range(25)]
        store.commit(CommitId("c1"), [Write(key, 0, b"") for key in keys], [])

        seen: list[str] = []
        after = ""
        while page := store.scan("s/", after, 10):
            seen.extend(record.key for record in page)
            after = page[-1].key
            if len(page) < 10:
                break

        assert seen == keys


class CommitContract:
    """All or nothing, once, and only over what was read."""

    def test_of_two_commits_over_one_version_the_second_conflicts(self, store: Store) -> None:
        store.commit(CommitId("c1"), [Write("a", 0, b"first")], [])

        with pytest.raises(Conflict) as conflict:
            store.commit(CommitId("c2"), [Write("a", 0, b"second")], [b"lost"])

        assert conflict.value.keys == ("a",)
        assert store.get(["a"]) == {"a": Record("a", 1, b"first")}

    def test_a_version_from_the_future_conflicts(self, store: Store) -> None:
        with pytest.raises(Conflict):
            store.commit(CommitId("c1"), [Write("a", 1, b"")], [])

    def test_one_conflict_keeps_every_record_and_entry_out(self, store: Store) -> None:
        put(store, "b", b"taken")
        put(store, "d", b"taken")
        head = store.head()

        writes = [Write(key, 0, b"mine") for key in ("a", "b", "c", "d")]
        with pytest.raises(Conflict) as conflict:
            store.commit(CommitId("c1"), writes, [b"entry"])

        assert conflict.value.keys == ("b", "d")
        assert [record.value for record in store.scan("", "", 10)] == [b"taken", b"taken"]
        assert store.head() == head
        assert store.changes(head, 10) == []

    def test_a_commit_that_conflicted_may_use_its_id_again(self, store: Store) -> None:
        put(store, "a", b"one")
        with pytest.raises(Conflict):
            store.commit(CommitId("c1"), [Write("a", 0, b"two")], [])

        assert store.commit(CommitId("c1"), [Write("a", 1, b"two")], []) == {"a": 2}

    def test_repeating_a_commit_id_changes_nothing(self, store: Store) -> None:
        writes = [Write("b", 0, b"one"), Write("a", 0, b"one")]
        first = store.commit(CommitId("c1"), writes, [b"entry"])
        put(store, "a", b"two")
        head = store.head()

        again = store.commit(CommitId("c1"), writes, [b"entry"])

        assert again == first == {"a": 1, "b": 1}
        assert store.get(["a"])["a"] == Record("a", 2, b"two")
        assert store.head() == head

    def test_journal_entries_may_be_committed_without_records(self, store: Store) -> None:
        assert store.commit(CommitId("c1"), [], [b"seen"]) == {}

        (change,) = follow(store, BEGINNING)
        assert (change.touched, change.journal) == ((), (b"seen",))
        assert store.commit(CommitId("c1"), [], [b"seen"]) == {}
        assert len(follow(store, BEGINNING)) == 1

    def test_a_key_written_twice_in_one_commit_is_a_bug(self, store: Store) -> None:
        with pytest.raises(AssertionError):
            store.commit(CommitId("c1"), [Write("a", 0, b"x"), Write("a", 1, b"y")], [])


class LeaseContract:
    """A right of one owner, and what keeps a former owner from writing."""

    def test_a_free_lease_is_taken_and_then_refused_to_others(self, store: Store) -> None:
        lease = held(store.acquire("conductor", "east", MINUTE))

        assert (lease.name, lease.owner) == ("conductor", "east")
        assert store.acquire("conductor", "west", MINUTE) is None
        assert held(store.acquire("registrar", "west", MINUTE)).owner == "west"

    def test_renewing_keeps_the_fence_and_starts_the_time_anew(
        self, store: Store, clock: SimulatedClock
    ) -> None:
        lease = held(store.acquire("conductor", "east", MINUTE))
        clock.advance(MINUTE * 0.75)
        assert store.acquire("conductor", "east", MINUTE) == lease
        clock.advance(MINUTE * 0.75)

        assert store.acquire("conductor", "west", MINUTE) is None
        assert store.acquire("conductor", "east", MINUTE) == lease

    def test_an_expired_lease_goes_to_whoever_asks_with_a_higher_fence(
        self, store: Store, clock: SimulatedClock
    ) -> None:
        east = held(store.acquire("conductor", "east", MINUTE))
        clock.advance(MINUTE)
        west = held(store.acquire("conductor", "west", MINUTE))
        clock.advance(MINUTE)
        west_again = held(store.acquire("conductor", "west", MINUTE))

        assert east.fence < west.fence < west_again.fence

    def test_the_holder_of_a_lease_commits(self, store: Store) -> None:
        lease = held(store.acquire("conductor", "east", MINUTE))

        assert store.commit(CommitId("c1"), [Write("a", 0, b"")], [], lease) == {"a": 1}

    def test_a_former_owner_is_fenced_off(self, store: Store, clock: SimulatedClock) -> None:
        east = held(store.acquire("conductor", "east", MINUTE))
        clock.advance(MINUTE)
        west = held(store.acquire("conductor", "west", MINUTE))

        with pytest.raises(Fenced):
            store.commit(CommitId("c1"), [Write("a", 0, b"east")], [b"entry"], east)
        assert store.head() == BEGINNING
        assert store.commit(CommitId("c2"), [Write("a", 0, b"west")], [], west) == {"a": 1}

    def test_an_expired_lease_no_longer_holds(self, store: Store, clock: SimulatedClock) -> None:
        lease = held(store.acquire("conductor", "east", MINUTE))
        clock.advance(MINUTE)

        with pytest.raises(Fenced):
            store.commit(CommitId("c1"), [Write("a", 0, b"")], [], lease)

    def test_a_lease_nobody_ever_gave_does_not_hold(self, store: Store) -> None:
        with pytest.raises(Fenced):
            store.commit(CommitId("c1"), [], [b"entry"], Lease("conductor", "east", 1))

    def test_being_fenced_comes_before_being_late(
        self, store: Store, clock: SimulatedClock
    ) -> None:
        """A former owner should stop, not reload and decide again."""
        lease = held(store.acquire("conductor", "east", MINUTE))
        put(store, "a", b"")
        clock.advance(MINUTE)

        with pytest.raises(Fenced):
            store.commit(CommitId("c1"), [Write("a", 0, b"")], [], lease)

    def test_a_commit_that_took_effect_is_repeatable_after_the_lease_was_lost(
        self, store: Store, clock: SimulatedClock
    ) -> None:
        """It asks what became of its commit, and must not be told that it was not written."""
        lease = held(store.acquire("conductor", "east", MINUTE))
        store.commit(CommitId("c1"), [Write("a", 0, b"")], [], lease)
        clock.advance(MINUTE)

        assert store.commit(CommitId("c1"), [Write("a", 0, b"")], [], lease) == {"a": 1}


class ConcurrencyContract:
    """Many threads at once."""

    def test_a_live_reader_misses_nothing_while_many_commit(self, store: Store) -> None:
        total = COMMITTERS * COMMITS_EACH
        with ThreadPoolExecutor(COMMITTERS + 1) as pool:
            reader = pool.submit(_read_live, store, total)
            committers = [pool.submit(_commit_many, store, name) for name in range(COMMITTERS)]
            acknowledged = [one for committer in committers for one in committer.result()]
            seen = reader.result()

        assert len(acknowledged) == total
        assert Counter(change.commit_id for change in seen) == Counter(acknowledged)
        assert follow(store, BEGINNING) == seen
        for key, record in store.get([*HOT_KEYS, "all"]).items():
            told = [
                touch.version for change in seen for touch in change.touched if touch.key == key
            ]
            assert told == list(range(1, record.version + 1))

    def test_readers_see_a_commit_whole(self, store: Store) -> None:
        keys = ["a", "b"]

        def write_pairs() -> None:
            for number in range(50):
                value = str(number).encode()
                store.commit(CommitId(value.decode()), [Write(k, number, value) for k in keys], [])

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write_pairs)
            while not writing.done():
                pair = store.get(keys)
                assert pair["a"].value == pair["b"].value
            writing.result()

    def test_one_of_many_gets_the_lease(self, store: Store) -> None:
        with ThreadPoolExecutor(COMMITTERS) as pool:
            owners = [f"owner-{number}" for number in range(COMMITTERS)]
            leases = list(pool.map(lambda owner: store.acquire("one", owner, MINUTE), owners))

        assert sum(lease is not None for lease in leases) == 1

    def test_a_commit_repeated_at_the_same_time_takes_effect_once(self, store: Store) -> None:
        def repeat(_: int) -> int:
            return store.commit(CommitId("c1"), [Write("a", 0, b"")], [b"entry"])["a"]

        with ThreadPoolExecutor(COMMITTERS) as pool:
            assert list(pool.map(repeat, range(COMMITTERS))) == [1] * COMMITTERS
        assert len(follow(store, BEGINNING)) == 1

    def test_each_of_many_commits_at_once_has_its_own_outcome(
        self, store: Store, clock: SimulatedClock
    ) -> None:
        """One that is refused spoils no other, whether they are written together or not."""
        lost = held(store.acquire("one", "east", MINUTE))
        clock.advance(MINUTE)
        lease = held(store.acquire("one", "west", MINUTE))
        put(store, "taken", b"", commit_id="old")
        together = threading.Barrier(5)

        def commit(name: str, key: str, with_lease: Lease | None = None) -> str:
            together.wait()
            try:
                versions = store.commit(CommitId(name), [Write(key, 0, b"")], [b""], with_lease)
            except (Conflict, Fenced) as refusal:
                return type(refusal).__name__
            assert versions == {key: 1}
            return "done"

        with ThreadPoolExecutor(5) as pool:
            for number in range(COMMITS_EACH):
                outcomes = [
                    pool.submit(commit, f"late {number}", "taken"),
                    pool.submit(commit, f"free {number}", f"free/{number}"),
                    pool.submit(commit, f"fenced {number}", f"fenced/{number}", lost),
                    pool.submit(commit, "old", "taken"),
                    pool.submit(commit, f"leased {number}", f"leased/{number}", lease),
                ]
                expected = ["Conflict", "done", "Fenced", "done", "done"]
                assert [outcome.result() for outcome in outcomes] == expected

        done = {f"{name} {n}" for name in ("free", "leased") for n in range(COMMITS_EACH)}
        assert {change.commit_id for change in follow(store, BEGINNING)} == {"old", *done}
        assert store.scan("fenced/", "", 10) == []

    def test_of_many_commits_at_once_over_one_version_one_wins(self, store: Store) -> None:
        together = threading.Barrier(COMMITTERS)

        def commit(committer: int, version: int) -> int:
            together.wait()
            own = f"own/{committer}/{version}"
            with suppress(Conflict):
                store.commit(CommitId(own), [Write("hot", version, b""), Write(own, 0, b"")], [])
                return 1
            return 0

        with ThreadPoolExecutor(COMMITTERS) as pool:
            for version in range(COMMITS_EACH):
                assert sum(pool.map(commit, range(COMMITTERS), [version] * COMMITTERS)) == 1

        assert len(follow(store, BEGINNING)) == COMMITS_EACH
        assert len(store.scan("own/", "", 100)) == COMMITS_EACH


class StoreContract(
    RecordContract,
    CommitContract,
    FeedContract,
    PruneContract,
    LeaseContract,
    ConcurrencyContract,
):
    """Everything that `forewarn.ports.store.Store` promises."""


def _commit_many(store: Store, committer: int) -> list[CommitId]:
    """Raise a shared key and a key shared by all, each time from what was read."""
    done: list[CommitId] = []
    while len(done) < COMMITS_EACH:
        commit_id = CommitId(f"{committer}.{len(done)}")
        keys = [HOT_KEYS[len(done) % len(HOT_KEYS)], "all"]
        read = store.get(keys)
        try:
            store.commit(commit_id, [Write(key, read[key].version, b"") for key in keys], [b""])
        except Conflict:
            continue
        done.append(commit_id)
    return done


def _read_live(store: Store, total: int) -> list[Change]:
    seen: list[Change] = []
    cursor = BEGINNING
    give_up = time.monotonic() + LONG.total_seconds()
    while len(seen) < total and time.monotonic() < give_up:
        page = store.changes(cursor, 7, wait=timedelta(milliseconds=200))
        seen.extend(page)
        cursor = seen[-1].cursor if seen else BEGINNING
    return seen
