#!/usr/bin/env python3
"""Leave haproxy before an event, and come back after it: a hook for `forewarn agent`.

For hooks.d/prepare and hooks.d/undo; docs/recipes/haproxy.md has the rest. What is drained was drained
by this hook; what is in maintenance was put there by people, and stays so.
"""

from __future__ import annotations

import csv
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NOTHING_TO_DO: Final = 70
# In haproxy's srv_admin_state: maintenance of every kind, and a drain that somebody asked for.
MAINTENANCE: Final = 0x01 | 0x02 | 0x04 | 0x20
DRAINED: Final = 0x08
ANSWER_SECONDS_MAX: Final = 5.0
LOOK_SECONDS: Final = 0.2
# To say what is wrong before the agent says that it took too long.
LAST_WORDS_SECONDS: Final = 1.0
BY_HAND_SECONDS: Final = 600.0


class Trouble(Exception):
    """What the log shall say."""


@dataclass(frozen=True, slots=True)
class Seat:
    """What one haproxy has for this VM: `backend/server`, at the place of its stats socket."""

    place: str
    backend: str
    server: str

    def __str__(self) -> str:
        return f"{self.backend}/{self.server} at {self.place}"

    def admin_state(self) -> int:
        """What people and this hook asked for. Raises: Trouble, OSError."""
        _, header, *rows = ask(self.place, f"show servers state {self.backend}").splitlines()
        names = header.removeprefix("# ").split()
        for row in rows:
            found = dict(zip(names, row.split(), strict=False))
            if found.get("srv_name") == self.server:
                return int(found["srv_admin_state"])
        raise Trouble(f"{self} is unknown there: are the names those of haproxy.cfg?")

    def sessions(self) -> int:
        """How many requests it is at. Raises: OSError."""
        text = ask(self.place, f"show stat {self.backend} 4 -1").removeprefix("# ")
        rows = csv.DictReader(text.splitlines())
        return sum(int(r["scur"]) + int(r["qcur"]) for r in rows if r["svname"] == self.server)

    def put(self, state: str) -> None:
        """Raises: Trouble, OSError."""
        if said := ask(self.place, f"set server {self.backend}/{self.server} state {state}"):
            raise Trouble(f"{self}: {said}")


def ask(place: str, command: str) -> str:
    """What haproxy says to a command at its stats socket. Raises: Trouble, OSError."""
    host, _, port = place.rpartition(":")
    try:
        if place.startswith("/"):
            line = socket.socket(socket.AF_UNIX)
            line.settimeout(ANSWER_SECONDS_MAX)
            line.connect(place)
        else:
            line = socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS_MAX)
        with line:
            line.sendall(f"{command}\n".encode())
            line.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: line.recv(65536), b"")).decode().strip()
    except OSError as error:
        raise OSError(f"haproxy at {place} does not answer: {error}") from None
    if answer.startswith(("Permission denied", "Can't find backend", "Unknown command")):
        raise Trouble(f"haproxy at {place}: {answer.splitlines()[0]}")
    return answer


class Deadline:
    """How long is left: until EVENT_DEADLINE, or until the agent asks to end."""

    def __init__(self) -> None:
        told = os.environ.get("EVENT_DEADLINE")
        at = float(told) - LAST_WORDS_SECONDS if told else time.time() + BY_HAND_SECONDS
        self._until = time.monotonic() + at - time.time()
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        self._until = time.monotonic()

    def looks(self) -> Iterator[None]:
        """One now, and more until the time is up."""
        yield
        while time.monotonic() < self._until:
            time.sleep(LOOK_SECONDS)
            yield


def leave(seats: list[Seat], deadline: Deadline) -> int:
    """Drain every seat, and wait until nobody is served there any more. Raises: Trouble, OSError."""
    ours = 0
    for seat in seats:
        state = seat.admin_state()
        if not state & MAINTENANCE:
            ours += 1
            seat.put("drain")
            print(f"{seat}: drained")
    busy = ""
    for _ in deadline.looks():
        counts = {seat: seat.sessions() for seat in seats}
        busy = ", ".join(f"{count} at {seat}" for seat, count in counts.items() if count)
        if not busy:
            return 0 if ours else NOTHING_TO_DO
    raise Trouble(f"there are sessions still: {busy}")


def is_healthy(command: str) -> bool:
    """Whether a line for the shell says so, and soon."""
    words = ["/bin/sh", "-c", command]
    try:
        return subprocess.run(words, check=False, timeout=ANSWER_SECONDS_MAX).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def come_back(seats: list[Seat], healthy: str, deadline: Deadline) -> int:
    """Once this VM serves again, have every haproxy send it requests. Raises: Trouble."""
    for _ in deadline.looks():
        if not healthy or is_healthy(healthy):
            break
    else:
        raise Trouble(f"left drained, as this VM does not serve: {healthy}")
    ours, troubles, left = 0, "", list(seats)
    for _ in deadline.looks():
        troubles = ""
        for seat in tuple(left):
            try:
                if seat.admin_state() & DRAINED:
                    seat.put("ready")
                    ours += 1
                    print(f"{seat}: ready")
                left.remove(seat)
            except OSError as error:
                # After a reboot the network may come later than this.
                troubles = str(error)
        if not left:
            return 0 if ours else NOTHING_TO_DO
    raise Trouble(f"{', '.join(map(str, left))}: left drained: {troubles}")


def settings(file: Path) -> tuple[list[Seat], str]:
    """The seats, and what tells whether this VM serves. Raises: Trouble, OSError."""
    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise Trouble(f"{file}: {error}") from None
    places = listed(file, told, "haproxies", r"/.+|.+:\d+", "10.0.0.2:9999")
    names = listed(file, told, "servers", r"[\w.:-]+/[\w.:-]+", "backend/server")
    seats = [Seat(place, *name.split("/")) for place in places for name in names]
    return seats, str(told.get("healthy", ""))


def listed(file: Path, told: dict[str, object], key: str, form: str, example: str) -> list[str]:
    """A list of texts of some form. Raises: Trouble."""
    values = told.get(key)
    if isinstance(values, list) and values and all(re.fullmatch(form, str(v)) for v in values):
        return [str(value) for value in values]
    raise Trouble(f'{file}: write {key} = ["{example}"]')


def main() -> int:
    here = Path(sys.argv[0]).absolute().parent
    file = Path(sys.argv[1]) if sys.argv[1:] else here.parent.parent / "haproxy.toml"
    try:
        seats, healthy = settings(file)
        if os.environ.get("EVENT_PHASE") == "undo":
            return come_back(seats, healthy, Deadline())
        return leave(seats, Deadline())
    except (Trouble, OSError) as error:
        print(error, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
