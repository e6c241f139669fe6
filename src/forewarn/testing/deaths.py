"""Real deaths: a real service under load, killed again and again, and held to every word it gave.

`python -m forewarn.testing.deaths --kills 300 --seed 1` prints the figures of a run. The seed fixes
how each death is aimed and what the crowd is like; when exactly it strikes is up to the machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from random import Random  # noqa: TID251 - it is seeded
from typing import Any, Final
from urllib.parse import urlsplit

from forewarn.testing.crowds import AT_HOME, Crowd, Life, fleet_file
from forewarn.testing.processes import PATH, VERSION, ServiceProcess
from forewarn.testing.transcripts import (
    Breach,
    Charge,
    Deed,
    Record,
    Transcript,
    inconsistencies,
    settled,
    undisturbed,
    verdict,
)

# A database is given up after so many deaths: ledgers remember a day's events, and a day's load
# comes together in a minute here.
KILLS_PER_DATABASE: Final = 60
JOURNAL_PAGE: Final = 1000
SETTLE_SECONDS_MAX: Final = 90
BREACHES_TOLD_MAX: Final = 10


class Aim(Enum):
    """When a death strikes."""

    ANYWHERE = "anywhere"
    # An approval was sent, and its answer is not there yet.
    APPROVAL = "approval"
    # The write-ahead log is being written: in the middle of a commit.
    COMMIT = "commit"
    # Before it serves.
    START = "start"
    # While it ends by itself.
    STOP = "stop"


_AIMS: Final = (
    *(Aim.ANYWHERE,) * 5,
    *(Aim.APPROVAL,) * 6,
    *(Aim.COMMIT,) * 6,
    *(Aim.START,) * 2,
    Aim.STOP,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a run came to."""

    seed: str
    kills: int
    aims: dict[str, int]
    announcements: int
    approvals: int
    cancels: int
    postpones: int
    documents: int
    # Requests without an answer, and those among them that turned out to be done.
    in_doubt: int
    in_doubt_done: int
    started_by_notice: int
    breaches: tuple[Breach, ...]
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        """How often each promise was broken."""
        found = Counter(breach.charge for breach in self.breaches)
        return {charge.value: found[charge] for charge in Charge}

    def __str__(self) -> str:
        told = {name: value for name, value in asdict(self).items() if name != "breaches"}
        return json.dumps({**told, **self.counts})


def die_often(
    directory: Path, *, kills: int, seed: str, say: Callable[[str], object] = lambda _: None
) -> Figures:
    """Kill services under load so many times, and tell what became of their promises.

    It ends with the first database in which a promise is found broken.
    """
    began = time.monotonic()
    tales: list[_Tale] = []
    left = kills
    while left > 0 and not any(tale.breaches for tale in tales):
        some = min(left, KILLS_PER_DATABASE)
        tale = _Tale(directory / f"data-{len(tales)}", f"{seed}/{len(tales)}", say)
        tale.tell(some)
        tales.append(tale)
        left -= some
    said = Counter(word.deed for tale in tales for word in tale.transcript.said)
    aims = Counter(aim.value for tale in tales for aim in tale.aims)
    return Figures(
        seed=seed,
        kills=sum(aims.values()),
        aims=dict(aims),
        announcements=said[Deed.ANNOUNCE],
        approvals=said[Deed.APPROVE],
        cancels=said[Deed.CANCEL],
        postpones=said[Deed.POSTPONE],
        documents=sum(tale.transcript.reads for tale in tales),
        in_doubt=sum(len(tale.transcript.doubts) for tale in tales),
        in_doubt_done=sum(tale.settled for tale in tales),
        started_by_notice=sum(tale.started_by_notice for tale in tales),
        breaches=tuple(breach for tale in tales for breach in tale.breaches),
        seconds=round(time.monotonic() - began, 1),
    )


class _Tale:
    """One database and its many deaths."""

    def __init__(self, data: Path, seed: str, say: Callable[[str], object]) -> None:
        self.transcript = Transcript()
        self.breaches: list[Breach] = []
        self.aims: list[Aim] = []
        self.settled = 0
        self.started_by_notice = 0
        self._say = say
        self._chance = Random(seed)  # noqa: S311 - repeatable on purpose
        # Of its own: whom an approval is sent for depends on what there is, and so on time.
        self._aiming = Random(f"{seed}/aims")  # noqa: S311 - ditto
        self._crowd = Crowd(self.transcript, seed)
        self._service = ServiceProcess(data, fleet_file())
        self._wal = data / "forewarn.db-wal"
        self._journal: list[Record] = []
        self._cursor = ""

    def tell(self, kills: int) -> None:
        # Its very first start is cut off as well: a database that is half made.
        self._service.spawn()
        _pause(self._chance.uniform(0.2, 0.8))
        self._service.kill()
        with self._service:
            self._examine()
            while len(self.aims) < kills and not self.breaches:
                aim = self._aiming.choice(_AIMS)
                self.aims.append(aim)
                self._die(aim)
                self._examine()
                if not len(self.aims) % 10:
                    self._say(f"{len(self.aims)} deaths, {len(self.transcript.said)} promises kept")
            if not self.breaches:
                self._settle()
                self._reread()

    # -- dying ---------------------------------------------------------------------------------

    def _die(self, aim: Aim) -> None:
        life = Life(
            len(self.aims),
            self._service.metadata[0],
            self._service.control,
            self._service.token,
            self._service.ca,
        )
        self._crowd.enter(life)
        try:
            life.dying.wait(self._chance.uniform(0.05, 0.6))
            if aim is Aim.APPROVAL:
                self._strike_after_an_approval(life)
            elif aim is Aim.COMMIT:
                self._strike_in_a_commit(life)
            elif aim is Aim.STOP:
                life.dying.set()
                self._service.signal(signal.SIGTERM)
                _pause(self._chance.uniform(0, 0.3))
        finally:
            life.dying.set()
            self._service.kill()
            self._crowd.leave()
        if aim is Aim.START:
            self._service.spawn()
            _pause(self._chance.uniform(0, 0.6))
            self._service.kill()
        self._service.start()

    def _strike_after_an_approval(self, life: Life) -> None:
        picked = self._crowd.pick(self._chance)
        if picked is None:
            return
        event_id, scope = picked
        guest = self._chance.choice([guest for guest in AT_HOME if guest.scope == scope])
        body = json.dumps({"StartRequests": [{"EventId": event_id}]})
        place = urlsplit(life.metadata)
        assert place.hostname is not None, "a base URL names its host"
        assert place.port is not None, "a base URL names its port"
        address = (place.hostname, place.port)
        with socket.create_connection(address, 30, (guest.address, 0)) as caller:
            self.transcript.ask_to_start(event_id, guest.name)
            caller.sendall(
                f"POST {PATH}?api-version={VERSION} HTTP/1.1\r\nHost: forewarn\r\n"
                f"Metadata: true\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            _pause(self._chance.choice((0, 0.001, 0.002, 0.005, 0.01)))
            life.dying.set()
            self._service.kill()
            status = _status(caller)
        # It may have answered just before: then that counts.
        self._crowd.note_approval(life, guest, event_id, status)

    def _strike_in_a_commit(self, life: Life) -> None:
        before = self._wal.stat()
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            now = self._wal.stat()
            if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
                break
        life.dying.set()
        self._service.signal(signal.SIGKILL)

    # -- examining -----------------------------------------------------------------------------

    def _examine(self) -> None:
        """Hold the service to everything it ever said."""
        events = self._events()
        self._read_on()
        self.breaches = verdict(self.transcript, events, self._journal)
        self.settled = settled(self.transcript.doubts, events)
        self._crowd.learn(events)
        self.started_by_notice = sum(
            line["what"] == "started" and line["event"]["approved"] is None
            for line in self._journal
        )

    def _settle(self) -> None:
        """What was approved comes to its end, and something starts because its notice is over."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while True:
            self._examine()
            waiting = [
                line["event"]["event_id"]
                for line in self._last_lines().values()
                if line["event"]["status"] in ("Scheduled", "Started")
                and line["event"]["approved"] is not None
            ]
            if self.breaches or (not waiting and self.started_by_notice):
                return
            if time.monotonic() > deadline:
                story = f"approved or due, and not over: {', '.join(waiting)}"
                self.breaches.append(Breach(Charge.LOST, story))
                return
            _pause(0.2)

    def _last_lines(self) -> dict[str, Record]:
        """The last word on each event."""
        return {line["event"]["event_id"]: line for line in self._journal if line["event"]}

    def _reread(self) -> None:
        """The whole journal once more: it only ever grew, and agrees with the ledgers."""
        known, self._journal, self._cursor = self._journal, [], ""
        self._read_on()
        events = undisturbed(self._events, self._read_on)
        self.breaches += inconsistencies(known, self._journal, events)

    def _read_on(self) -> bool:
        """Read what the journal has gained; whether that is anything."""
        lines = self._lines(self._cursor)
        self._journal += lines
        if lines:
            self._cursor = lines[-1]["cursor"]
        return bool(lines)

    def _events(self) -> dict[str, Record]:
        found = self._ask("/fabric/v1/events?status=all")["events"]
        return {event["event_id"]: event for event in found}

    def _lines(self, cursor: str) -> list[Record]:
        lines: list[Record] = []
        while True:
            page = self._ask(f"/fabric/v1/journal?limit={JOURNAL_PAGE}&after={cursor}")
            lines += page["entries"]
            cursor = page["cursor"]
            if page["is_last"]:
                return lines

    def _ask(self, target: str) -> Any:  # noqa: ANN401 - whatever the service said
        reply = self._service.ask("GET", target, headers=self._service.authorized)
        assert reply.status == http.client.OK, reply
        return reply.json


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def _status(caller: socket.socket) -> int | None:
    """The status of an answer that came before the connection's end; None if none did."""
    answer = http.client.HTTPResponse(caller)
    try:
        answer.begin()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        answer.close()
    return answer.status


def story(figures: Figures) -> str:
    """What a failed run has to tell."""
    told = "\n".join(f"  {breach}" for breach in figures.breaches[:BREACHES_TOLD_MAX])
    return (
        f"{len(figures.breaches)} promises broken after {figures.kills} deaths; once more:\n"
        f"  make deaths KILLS={figures.kills} SEED={figures.seed}\n{told}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a program; the exit status says whether every promise was kept."""
    parser = argparse.ArgumentParser(prog="python -m forewarn.testing.deaths", description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", default=secrets.token_hex(4))
    asked = parser.parse_args(arguments)

    def say(text: str) -> None:
        sys.stderr.write(text + "\n")

    say(f"seed {asked.seed}")
    with tempfile.TemporaryDirectory(prefix="forewarn-deaths-") as directory:
        figures = die_often(Path(directory), kills=asked.kills, seed=asked.seed, say=say)
    sys.stdout.write(f"{figures}\n")
    if figures.breaches:
        sys.stderr.write(story(figures) + "\n")
    return 1 if figures.breaches else 0


if __name__ == "__main__":
    sys.exit(main())
