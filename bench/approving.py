"""Approvals, each durable before it is answered, beside SQLite with nothing around it."""

from __future__ import annotations

import json
import os
import select
import socket
import sqlite3
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench import callers, measuring
from bench.contenders import Service
from bench.fleets import fleet_file, machine_name
from forewarn.core.journal import What
from forewarn.stores.sqlite_file import CACHE_KB, LOG_PAGES
from forewarn.stores.sqlite_schema import MIGRATIONS
from forewarn.wire import records

UNDER_WAY: Final = 64
# Scopes that one announcement names; each gets an event of its own.
TOGETHER: Final = 250
PATIENCE_SECONDS: Final = 60
REST_SECONDS: Final = 0.3


class Sample(NamedTuple):
    """What the service wrote, to be written again by SQLite alone."""

    rate: float
    # A ledger and an entry of the journal as one approval wrote them.
    ledger: bytes
    entry: bytes
    # How many approvals shared a commit, as a mean.
    group: int


def measure(*, approvals: int, rounds: int) -> dict[str, float]:
    """Approvals a second over sockets, and beside them the same writes by SQLite alone."""
    os.sched_setaffinity(0, {measuring.cores()[1]})
    served: list[float] = []
    grouped: list[float] = []
    single: list[float] = []
    groups: list[float] = []
    for _ in range(rounds):
        with measuring.workplace() as directory:
            sample = _served(directory, approvals)
            served.append(sample.rate)
            groups.append(sample.group)
            grouped.append(_bare(directory / "grouped.db", sample, approvals, sample.group))
            single.append(_bare(directory / "single.db", sample, approvals // 4, 1))
    return {
        "approvals_per_s": max(served),
        "approvals_per_commit": median(groups),
        "sqlite_grouped_writes_per_s": max(grouped),
        "sqlite_single_writes_per_s": max(single),
        "approve_vs_sqlite": measuring.ratio(served, grouped),
        "approve_vs_sqlite_single": measuring.ratio(served, single),
    }


def _served(directory: Path, approvals: int) -> Sample:
    """Approvals a second by the service, each guest with an event of its own."""
    fleet = fleet_file(machines=approvals, per_scope=1, options='enabled = "always"')
    with Service(directory / "data", fleet) as service:
        events: list[str] = []
        for first in range(0, approvals, TOGETHER):
            names = map(machine_name, range(first, min(first + TOGETHER, approvals)))
            events += service.announce_to(*names)
        with ExitStack() as stack:
            server = service.contender.server
            guests = [
                stack.enter_context(callers.connect(server, callers.address(number)))
                for number in range(approvals)
            ]
            texts = [_approval(event_id) for event_id in events]
            _await_rest(service.pid)
            began = time.perf_counter()
            _approve(guests, texts)
            rate = approvals / (time.perf_counter() - began)
        service.stop()
        return _sample(service.data / "forewarn.db", rate)


def _await_rest(pid: int) -> None:
    """Wait until what was announced is written down as readable: that is no part of approving."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        before = measuring.processor_seconds(pid)
        time.sleep(REST_SECONDS)
        if measuring.processor_seconds(pid) - before < REST_SECONDS / 20:
            return
    raise AssertionError("a service with nothing to do rests")


def _approval(event_id: str) -> bytes:
    body = json.dumps({"StartRequests": [{"EventId": event_id}]})
    return (
        f"POST {callers.TARGET} HTTP/1.1\r\nHost: 169.254.169.254\r\nMetadata: true\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def _approve(guests: Sequence[socket.socket], texts: Sequence[bytes]) -> None:
    """Each guest approves its event; so many at a time wait for their answers."""
    coming = iter(list(zip(guests, texts, strict=True)))
    by_number = {guest.fileno(): guest for guest in guests}
    with select.epoll() as epoll:
        left = len(guests)
        for _ in range(min(UNDER_WAY, left)):
            _send_next(coming, epoll)
        while left:
            ready = epoll.poll(PATIENCE_SECONDS)
            assert ready, "approvals are answered"
            for number, _ in ready:
                answer = by_number[number].recv(4096)
                assert answer.startswith(b"HTTP/1.1 200 "), answer
                epoll.unregister(number)
                left -= 1
                _send_next(coming, epoll)


def _send_next(coming: Iterator[tuple[socket.socket, bytes]], epoll: select.epoll) -> None:
    following = next(coming, None)
    if following is not None:
        guest, text = following
        guest.sendall(text)
        epoll.register(guest.fileno(), select.EPOLLIN)


def _sample(path: Path, rate: float) -> Sample:
    with closing(sqlite3.connect(path)) as db:
        lines = db.execute("SELECT position, entry FROM journal").fetchall()
        approved = [(place, entry) for place, entry in lines if _is_approval(entry)]
        query = "SELECT value FROM records WHERE key LIKE ? LIMIT 1"
        (ledger,) = db.execute(query, (f"{records.LEDGER_PREFIX}%",)).fetchone()
    commits = len({place for place, _ in approved})
    return Sample(rate, ledger, approved[0][1], max(round(len(approved) / commits), 1))


def _is_approval(entry: bytes) -> bool:
    return records.load_entry(entry).what is What.APPROVED


def _bare(path: Path, sample: Sample, writes: int, group: int) -> float:
    """Approvals a second if SQLite alone writes their rows, so many approvals in a transaction.

    The same tables, rows, values, settings and syncs; nobody decides, asks or answers, and nothing is
    started.
    """
    keys = [f"{records.LEDGER_PREFIX}rg1/set-{number}" for number in range(writes)]
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA cache_size = -{CACHE_KB}")
        db.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
        db.executescript("".join(MIGRATIONS))
        db.execute("BEGIN IMMEDIATE")
        rows = [(key, sample.ledger) for key in keys]
        db.executemany("INSERT INTO records VALUES (?, 1, ?)", rows)
        db.execute("COMMIT")
        began = time.perf_counter()
        for position, first in enumerate(range(0, writes, group), 1):
            lot = list(enumerate(keys[first : first + group]))
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO commits VALUES (?, ?)", (position, uuid.uuid4().hex))
            db.executemany(
                "UPDATE records SET version = 2, value = ? WHERE key = ?",
                [(sample.ledger, key) for _, key in lot],
            )
            touches = [(position, line, key) for line, key in lot]
            db.executemany("INSERT INTO touches VALUES (?, ?, ?, 2)", touches)
            entries = [(position, line, sample.entry) for line, _ in lot]
            db.executemany("INSERT INTO journal VALUES (?, ?, ?)", entries)
            db.execute("COMMIT")
        return writes / (time.perf_counter() - began)
