"""How much one guest's attack is felt by another: `python -m forewarn.testing.neighbors`.

Method: a real service on a core of its own; on the other core a neighbor that polls and takes the
time, and an assailant who gets what the neighbor leaves of that core, so that what is measured is the
service and not this machine's scheduler. Rounds with and without the attack alternate. Where the
machine has other work too, `--urgent` lets all three go before it; that takes root.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from forewarn.testing.assailants import CONNECTIONS, Assailant
from forewarn.testing.processes import ServiceProcess
from forewarn.testing.sieges import ADDRESSES, NEIGHBOR, WELL_BEHAVED, fleet

POLL_EVERY_SECONDS: Final = 0.002
# Every so many polls, one on a connection of its own.
NEW_EVERY: Final = 10
# Until the attack stands.
WARMUP_SECONDS: Final = 1.5

_URGENT: Final = 10

Place = tuple[str, int]
# How many connections, and how many seconds until one that was dropped is back.
Means = tuple[int, float]


def measure(place: Place, seconds: float) -> tuple[list[float], list[float]]:
    """What polls take, in milliseconds: on a kept connection, and on a new one each."""
    kept: list[float] = []
    new: list[float] = []
    until = time.monotonic() + seconds
    with _connect(place) as connection:
        _poll(connection)
        while time.monotonic() < until:
            for _ in range(NEW_EVERY):
                begun = time.perf_counter()
                _poll(connection)
                kept.append((time.perf_counter() - begun) * 1000)
                time.sleep(POLL_EVERY_SECONDS)  # noqa: TID251 - a real process lives in real time
            begun = time.perf_counter()
            with _connect(place) as another:
                _poll(another)
            new.append((time.perf_counter() - begun) * 1000)
    return kept, new


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of all values does not exceed."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def _connect(place: Place) -> socket.socket:
    connection = socket.create_connection(place, timeout=30, source_address=(NEIGHBOR, 0))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _poll(connection: socket.socket) -> None:
    connection.sendall(WELL_BEHAVED)
    data = connection.recv(65536)
    assert data.startswith(b"HTTP/1.1 200 "), f"the neighbor was answered {data!r}"


def _attack(place: Place, seconds: float, means: Means, feats: Connection) -> None:
    # The neighbor has this core first.
    if os.sched_getscheduler(0) == os.SCHED_FIFO:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_URGENT - 1))
    else:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    connections, rest_seconds = means
    assailant = Assailant(place, ADDRESSES[0], connections=connections, rest_seconds=rest_seconds)
    feats.send(asdict(assailant.attack(seconds)))


def _round(
    place: Place, seconds: float, means: Means | None
) -> tuple[list[float], list[float], dict[str, int]]:
    if means is None:
        return *measure(place, seconds), {}
    mine, theirs = multiprocessing.Pipe()
    lasting = seconds + WARMUP_SECONDS + 0.5
    attack = multiprocessing.Process(target=_attack, args=(place, lasting, means, theirs))
    attack.start()
    time.sleep(WARMUP_SECONDS)  # noqa: TID251 - ditto
    kept, new = measure(place, seconds)
    feats: dict[str, int] = mine.recv()
    attack.join()
    # Until what is left of it is cleared away.
    time.sleep(1)  # noqa: TID251 - ditto
    return kept, new, {name: round(count / lasting) for name, count in feats.items()}


def main(arguments: Sequence[str]) -> int:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(prog="make neighbors")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--rest", type=float, default=1.0, help="seconds until the dropped return")
    parser.add_argument("--urgent", action="store_true", help="go before all else on this machine")
    asked = parser.parse_args(arguments)
    found: dict[str, list[float]] = {}
    feats: dict[str, int] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        ServiceProcess(Path(folder), fleet()) as service,
    ):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(service.pid, {cores[0]})
        os.sched_setaffinity(0, {cores[-1]})
        for process in (service.pid, 0) if asked.urgent else ():
            os.sched_setscheduler(process, os.SCHED_FIFO, os.sched_param(_URGENT))
        service.announce("Reboot", f"rude-{ADDRESSES[0]}")
        base = urlsplit(service.metadata[0])
        place = (base.hostname or "", base.port or 0)
        measure(place, 1)
        for _ in range(asked.rounds):
            for name, means in (("quiet", None), ("attacked", (asked.connections, asked.rest))):
                kept, new, feats = _round(place, asked.seconds, means)
                for way, values in (("kept", kept), ("new", new)):
                    for label, share in (("p50", 0.5), ("p99", 0.99)):
                        found.setdefault(f"{way}_{name}_ms_{label}", []).append(
                            percentile(values, share)
                        )
    told: dict[str, object] = {
        name: round(statistics.median(values), 3) for name, values in found.items()
    }
    for way in ("kept", "new"):
        pairs = zip(found[f"{way}_attacked_ms_p99"], found[f"{way}_quiet_ms_p99"], strict=True)
        told[f"{way}_p99_factor"] = round(statistics.median(a / q for a, q in pairs), 2)
    told |= {f"attack_{name}_per_s": count for name, count in feats.items()}
    print(json.dumps(told, indent=2))  # noqa: T201 - a command
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
