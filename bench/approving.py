"""Approvals, each durable before it is answered, beside SQLite with nothing around it."""

from __future__ import annotations

import json
import os
import select
import socket
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

from bench import callers, measuring
from bench.contenders import Service
from bench.fleets import fleet_file, machine_name
from forewarn.web.limits import Limits
from forewarn.wire import records

UNDER_WAY: Final = 64
# Scopes that one announcement names; each gets an event of its own.
TOGETHER: Final = 250
PATIENCE_SECONDS: Final = 60


def measure(*, approvals: int, rounds: int) -> dict[str, float]:
    """Approvals a second over sockets, and beside them the same writes by SQLite alone."""
    os.sched_setaffinity(0, {measuring.cores()[1]})
    served: list[float] = []
    grouped: list[float] = []
    single: list[float] = []
    for _ in range(rounds):
        with measuring.workplace() as directory:
            rate, value = _served(directory, approvals)
            served.append(rate)
            group = Limits().workers
            grouped.append(_bare(directory / "grouped.db", value, writes=approvals, group=group))
            single.append(_bare(directory / "single.db", value, writes=approvals // 4, group=1))
    return {
        "approvals_per_s": max(served),
        "sqlite_grouped_writes_per_s": max(grouped),
        "sqlite_single_writes_per_s": max(single),
        "approve_vs_sqlite": measuring.ratio(served, grouped),
        "approve_vs_sqlite_single": measuring.ratio(served, single),
    }


def _served(directory: Path, approvals: int) -> tuple[float, bytes]:
    """Approvals a second by the service; and a ledger as it wrote one."""
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
            began = time.perf_counter()
            _approve(guests, [_approval(event_id) for event_id in events])
            rate = approvals / (time.perf_counter() - began)
        service.stop()
        return rate, _ledger(service.data / "forewarn.db")


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


def _ledger(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as db:
        query = "SELECT value FROM records WHERE key LIKE ? LIMIT 1"
        value: bytes = db.execute(query, (f"{records.LEDGER_PREFIX}%",)).fetchone()[0]
        return value


def _bare(path: Path, value: bytes, *, writes: int, group: int) -> float:
    """Records written a second, with a journal line each, so many in a transaction."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE records (key TEXT PRIMARY KEY, version INTEGER, value BLOB)")
        db.execute("CREATE TABLE journal (position INTEGER PRIMARY KEY, entry BLOB)")
        began = time.perf_counter()
        for first in range(0, writes, group):
            keys = [f"ledger/rg1/set-{number}" for number in range(first, first + group)]
            db.execute("BEGIN IMMEDIATE")
            db.executemany(
                "INSERT OR REPLACE INTO records VALUES (?, 1, ?)", [(key, value) for key in keys]
            )
            db.executemany("INSERT INTO journal (entry) VALUES (?)", [(value,) for _ in keys])
            db.execute("COMMIT")
        return writes / (time.perf_counter() - began)
