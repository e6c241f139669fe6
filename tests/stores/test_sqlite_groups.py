"""SqliteStore under many committers: a group shares one transaction and one sync, nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.errors import Conflict, Fenced, Unavailable
from forewarn.ports.store import CommitId, Cursor, Lease, Write
from forewarn.stores.sqlite import SqliteStore

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
BEGINNING = Cursor("")
SECONDS = 30
MEBIBYTE = 1 << 20

# Eight threads commit pairs, each over keys of its own, and say so once they are durable.
COMMIT_FOREVER = """
import os, sys, threading
from pathlib import Path
from forewarn.clocks import SystemClock
from forewarn.ports.store import CommitId, Write
from forewarn.stores.sqlite import SqliteStore

store = SqliteStore(Path(sys.argv[1]), SystemClock())

def commit_forever(name):
    keys = [f"a/{name}", f"b/{name}"]
    version = store.get(keys)[keys[0]].version
    while True:
        version += 1
        value = f"{name} {version}".encode() * 50
        writes = [Write(key, version - 1, value) for key in keys]
        store.commit(CommitId(f"{name} {version}"), writes, [value])
        os.write(1, f"{name} {version}\\n".encode())

for name in range(8):
    threading.Thread(target=commit_forever, args=(name,)).start()
"""

# The limit on the size of files stands for a disk that fails in the middle of a group.
COMMIT_ON_A_FAILING_DISK = """
import resource, signal, sys, threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from forewarn.clocks import SystemClock
from forewarn.errors import OutcomeUnknown
from forewarn.ports.store import CommitId, Cursor, Write
from forewarn.stores.sqlite import SqliteStore

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = SqliteStore(Path(sys.argv[1]), SystemClock())
store.commit(CommitId("before"), [Write("before", 0, b"")], [])
together = threading.Barrier(8)

def commit(name):
    together.wait()
    try:
        return store.commit(CommitId(name), [Write(name, 0, b"x" * 100_000)], [b"entry"])
    except OutcomeUnknown as error:
        return error

names = list("abcdefgh")
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
with ThreadPoolExecutor(8) as pool:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    failed = list(pool.map(commit, names))
    assert all(isinstance(outcome, OutcomeUnknown) for outcome in failed), failed
    assert len(set(map(id, failed))) == 8
    assert [record.key for record in store.scan("", "", 10)] == ["before"]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    for _ in range(2):
        assert list(pool.map(commit, names)) == [{name: 1} for name in names]
told = [change.commit_id for change in store.changes(Cursor(""), 100)]
assert told[0] == "before" and sorted(told[1:]) == names, told
store.close()
"""


class GatedClock(SimulatedClock):
    """A clock that can make whoever asks for the time wait: a commit with a lease does."""

    def __init__(self) -> None:
        super().__init__(NOON)
        self.gate = threading.Event()
        self.gate.set()
        self.asked = threading.Event()

    def now(self) -> datetime:
        self.asked.set()
        assert self.gate.wait(SECONDS)
        return super().now()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "forewarn.db"


@pytest.fixture
def clock() -> GatedClock:
    return GatedClock()


@pytest.fixture
def store(path: Path, clock: GatedClock) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path, clock)) as store:
        yield store


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(10) as pool:
        yield pool


@pytest.fixture
def lease(store: SqliteStore) -> Lease:
    lease = store.acquire("conductor", "east", timedelta(minutes=1))
    assert lease is not None
    return lease


def python(code: str, path: Path) -> subprocess.Popen[str]:
    """Another process, with the same packages as this one."""
    return subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def transactions(path: Path) -> int:
    """How many transactions the write-ahead log holds: frames that say how large the file is."""
    log = path.with_name(f"{path.name}-wal").read_bytes()
    page = int.from_bytes(log[8:12])
    salt = log[16:24]
    headers = (log[at : at + 24] for at in range(32, len(log), 24 + page))
    return sum(header[4:8] != bytes(4) and header[8:16] == salt for header in headers)


def wait_until(is_so: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(SECONDS * 1000):
        if is_so():
            return
        pause.wait(0.001)
    pytest.fail("it never came to that")


class Queue:
    """Commits that wait behind one with a lease, which waits for the clock."""

    def __init__(
        self, store: SqliteStore, clock: GatedClock, pool: ThreadPoolExecutor, lease: Lease
    ) -> None:
        self._store = store
        self._pool = pool
        clock.asked.clear()
        clock.gate.clear()
        self.first = self._submit("first", Write("first", 0, b""), lease)
        assert clock.asked.wait(SECONDS)

    def add(self, name: str, write: Write, lease: Lease | None = None) -> Future[object]:
        waiting = self._store._lane._waiting  # noqa: SLF001 - nothing else tells that it waits
        before = len(waiting)
        future = self._submit(name, write, lease)
        wait_until(lambda: len(waiting) > before)
        return future

    def _submit(self, name: str, write: Write, lease: Lease | None) -> Future[object]:
        return self._pool.submit(self._store.commit, CommitId(name), [write], [b""], lease)


@pytest.fixture
def queue(store: SqliteStore, clock: GatedClock, pool: ThreadPoolExecutor, lease: Lease) -> Queue:
    return Queue(store, clock, pool, lease)


def test_commits_that_wait_share_one_transaction(
    path: Path, store: SqliteStore, clock: GatedClock, queue: Queue
) -> None:
    before = transactions(path)
    others = [queue.add(name, Write(name, 0, b"")) for name in "dacb"]

    clock.gate.set()

    assert queue.first.result(SECONDS) == {"first": 1}
    assert [other.result(SECONDS) for other in others] == [{name: 1} for name in "dacb"]
    assert transactions(path) == before + 2
    told = [change.commit_id for change in store.changes(BEGINNING, 10)]
    assert told == ["first", "d", "a", "c", "b"]


def test_each_in_a_group_is_answered_as_if_it_had_come_alone(
    store: SqliteStore, clock: GatedClock, queue: Queue
) -> None:
    wins = queue.add("wins", Write("a", 0, b"1"))
    loses = queue.add("loses", Write("a", 0, b"2"))
    repeats = queue.add("wins", Write("a", 0, b"1"))
    fenced = queue.add("fenced", Write("b", 0, b""), Lease("conductor", "west", 1))
    goes_on = queue.add("goes on", Write("a", 1, b"3"))

    clock.gate.set()

    assert wins.result(SECONDS) == repeats.result(SECONDS) == {"a": 1}
    assert goes_on.result(SECONDS) == {"a": 2}
    with pytest.raises(Conflict):
        loses.result(SECONDS)
    with pytest.raises(Fenced):
        fenced.result(SECONDS)
    assert [change.commit_id for change in store.changes(BEGINNING, 10)] == [
        "first",
        "wins",
        "goes on",
    ]
    assert [record.value for record in store.scan("a", "", 10)] == [b"3"]


def test_a_bug_in_one_commit_is_not_the_others_outcome(
    store: SqliteStore, clock: GatedClock, queue: Queue
) -> None:
    """Half of a surrogate pair is no text, and cannot be written."""
    before = queue.add("before", Write("a", 0, b""))
    bug = queue.add("bug", Write("\ud800", 0, b""))
    after = queue.add("after", Write("a", 1, b""))

    clock.gate.set()

    assert (before.result(SECONDS), after.result(SECONDS)) == ({"a": 1}, {"a": 2})
    with pytest.raises(UnicodeEncodeError):
        bug.result(SECONDS)
    told = [change.commit_id for change in store.changes(BEGINNING, 10)]
    assert told == ["first", "before", "after"]


def test_closing_tells_every_commit_that_waits(
    path: Path, store: SqliteStore, clock: GatedClock, queue: Queue, pool: ThreadPoolExecutor
) -> None:
    others = {name: queue.add(name, Write(name, 0, b"")) for name in "abcd"}
    closing_it = pool.submit(store.close)

    clock.gate.set()

    closing_it.result(SECONDS)
    assert queue.first.result(SECONDS) == {"first": 1}
    acknowledged = {"first"}
    for name, other in others.items():
        error = other.exception(SECONDS)
        if error is None:
            acknowledged.add(name)
        else:
            assert type(error) is Unavailable
            assert "is closed" in str(error)
    with closing(SqliteStore(path, clock)) as again:
        assert {change.commit_id for change in again.changes(BEGINNING, 10)} == acknowledged


def test_a_killed_process_loses_no_acknowledged_commit_of_many_threads(
    path: Path, clock: GatedClock
) -> None:
    """Each commit of a group is whole, and it is there if it was answered."""
    acknowledged = dict.fromkeys(range(8), 0)
    for lines in (1, 100, 300):
        with python(COMMIT_FOREVER, path) as child:
            assert child.stdout is not None
            said = [child.stdout.readline() for _ in range(lines)]
            child.kill()
            said += child.stdout.read().splitlines()
        for line in said:
            name, version = map(int, line.split())
            acknowledged[name] = max(acknowledged[name], version)

        with closing(SqliteStore(path, clock)) as store:
            told = store.changes(BEGINNING, 100_000)
            for name, version in acknowledged.items():
                pair = store.get([f"a/{name}", f"b/{name}"])
                own = [change for change in told if change.commit_id.startswith(f"{name} ")]
                a, b = pair.values()
                assert a.version == b.version >= version
                assert [change.commit_id for change in own] == [
                    f"{name} {number}" for number in range(1, a.version + 1)
                ]
                if own:
                    assert a.value == b.value == own[-1].journal[0]


def test_a_group_on_a_failing_disk_is_repeated_to_a_known_end(path: Path) -> None:
    with python(COMMIT_ON_A_FAILING_DISK, path) as child:
        _, errors = child.communicate(timeout=60)

    assert (child.returncode, errors) == (0, "")


def large(store: SqliteStore, *, mebibytes: int) -> None:
    writes = [Write(f"large/{n}", 0, bytes(MEBIBYTE)) for n in range(mebibytes)]
    store.commit(CommitId("large"), writes, [])


def test_commits_go_on_while_a_backup_is_made(
    store: SqliteStore, clock: GatedClock, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    large(store, mebibytes=12)
    stop = threading.Event()

    def commit_pairs() -> None:
        version = 0
        while not stop.is_set():
            value = str(version).encode() * 500
            writes = [Write("a", version, value), Write("z", version, value)]
            store.commit(CommitId(f"c{version}"), writes, [value])
            version += 1

    committing = pool.submit(commit_pairs)
    store.changes(store.head(), 1, wait=timedelta(seconds=SECONDS))
    before = store.get(["a"])["a"].version
    store.backup_to(tmp_path / "copy.db")
    stop.set()
    committing.result(SECONDS)

    with closing(SqliteStore(tmp_path / "copy.db", clock)) as copy:
        pair = copy.get(["a", "z"])
        told = copy.changes(BEGINNING, 100_000)
        assert pair["a"].version == pair["z"].version == len(told) - 1
        assert pair["a"].value == pair["z"].value == told[-1].journal[0]
        assert pair["a"].version > before + 2


def test_closing_ends_a_backup_and_frees_the_file(
    path: Path, store: SqliteStore, clock: GatedClock, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    large(store, mebibytes=24)
    copying = pool.submit(store.backup_to, tmp_path / "copy.db")
    wait_until(lambda: any(entry.name.startswith(".copy") for entry in tmp_path.iterdir()))

    store.close()

    with pytest.raises(Unavailable, match="is closed"):
        copying.result(SECONDS)
    assert {entry.name for entry in tmp_path.iterdir()} == {path.name}
    SqliteStore(path, clock).close()
