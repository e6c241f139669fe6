"""A crowd of guests and operators that keep a real service busy until it dies under them."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from random import Random  # noqa: TID251 - each is seeded
from typing import Final

from forewarn.clocks import SystemClock
from forewarn.testing.processes import PATH, VERSION, HttpReply, connect
from forewarn.testing.transcripts import Charge, Deed, Record, Said, Transcript

VERSIONS: Final = ("2017-08-01", "2017-11-01", "2019-01-01", "2019-08-01", VERSION)
ANSWER_SECONDS_MAX: Final = 30
OPEN_PER_SCOPE_MAX: Final = 6
SPOT: Final = "spot"
# Machines of the spot scope that are never evicted, and so can always ask.
SPOT_STAYS: Final = 2

_KINDS: Final = {"web": "availability-set", "roles": "cloud-service", "batch": "scale-set"}
_SIZES: Final = {"web": 6, "roles": 3, "batch": 4, "one": 1, "two": 1, SPOT: 40}


@dataclass(frozen=True, slots=True)
class Guest:
    """A machine of the crowd's fleet."""

    scope: str
    name: str
    address: str


GUESTS: Final = tuple(
    Guest(scope, f"{scope}-{number}", f"127.0.{4 + place}.{10 + number}")
    for place, (scope, size) in enumerate(_SIZES.items())
    for number in range(size)
)
AT_HOME: Final = tuple(
    guest for guest in GUESTS if guest.scope != SPOT or int(guest.name[5:]) < SPOT_STAYS
)


def fleet_file() -> str:
    """The crowd's fleet: every kind of scope, and many spot machines to lose."""
    lines = ["[periods]", 'recovery = "0s"']
    for scope in _SIZES:
        lines += ["[[scope]]", f'name = "{scope}"', 'enabled = "always"']
        if scope in _KINDS:
            lines += [f'kind = "{_KINDS[scope]}"', "update_domains = 3"]
        if scope == SPOT:
            lines += ['kind = "scale-set"', "spot = true"]
        for guest in GUESTS:
            if guest.scope == scope:
                lines += ["[[scope.machine]]", f'name = "{guest.name}"']
                lines += [f'address = "{guest.address}"']
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Life:
    """One run of the service, from its start to its death."""

    number: int
    metadata: str
    control: str
    token: str = field(repr=False)
    # The certificate that the control plane is known by.
    ca: Path
    # Set before anybody lays hands on it: from then on, connections may break.
    dying: threading.Event = field(default_factory=threading.Event)


class Line:
    """A connection that is kept, from one address; dead once the service is."""

    def __init__(self, life: Life, base: str, source: str, transcript: Transcript) -> None:
        self._life = life
        self._transcript = transcript
        self._connection = connect(base, source=source, seconds_max=ANSWER_SECONDS_MAX, ca=life.ca)

    def ask(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> HttpReply | None:
        """The answer; None if the service died meanwhile."""
        try:
            self._connection.request(method, target, body=body, headers=dict(headers))
            answer = self._connection.getresponse()
            reply = HttpReply(answer.status, dict(answer.getheaders()), answer.read())
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if not self._life.dying.is_set():
                story = f"{method} {target} broke in life {self._life.number}: {error!r}"
                self._transcript.blame(Charge.UNANSWERED, story)
            return None
        if reply.status >= http.client.INTERNAL_SERVER_ERROR and not self._life.dying.is_set():
            story = f"{method} {target} was answered {reply.status}: {reply.body!r}"
            self._transcript.blame(Charge.UNANSWERED, story)
        return reply

    def close(self) -> None:
        self._connection.close()


class Crowd:
    """Guests that poll and approve, operators that announce, cancel and postpone."""

    def __init__(self, transcript: Transcript, seed: str) -> None:
        self._transcript = transcript
        self._seed = seed
        self._clock = SystemClock()
        self._numbers = count(1)
        self._lock = threading.Lock()
        # Events of which nobody has heard that they are over, by scope.
        self._open: dict[str, str] = {}
        self._threads: list[threading.Thread] = []

    def enter(self, life: Life) -> None:
        """Keep this life busy, from threads that end with it."""
        roles: Sequence[Callable[[Life, Random], None]] = (
            self._poll, self._poll, self._wait, self._approve, self._approve, self._operate,
            self._operate, self._spot,
        )  # fmt: skip
        self._threads = [
            threading.Thread(target=role, args=(life, self._chance(life, number)))
            for number, role in enumerate(roles)
        ]
        for thread in self._threads:
            thread.start()

    def leave(self) -> None:
        """Wait until everybody has noticed that the service is dead."""
        for thread in self._threads:
            thread.join()

    def learn(self, events: Mapping[str, Record]) -> None:
        """What is open now, whoever announced it."""
        with self._lock:
            self._open = {
                event_id: event["scope"]
                for event_id, event in events.items()
                if event["status"] == "Scheduled" and event["approved"] is None
            }

    def pick(self, chance: Random, *, spot: bool = False) -> tuple[str, str] | None:
        """An open event and its scope."""
        with self._lock:
            found = [pair for pair in self._open.items() if spot or pair[1] != SPOT]
        return chance.choice(found) if found else None

    def now(self) -> datetime:
        return self._clock.now()

    # -- guests --------------------------------------------------------------------------------

    def _poll(self, life: Life, chance: Random) -> None:
        lines = {guest: self._guest_line(life, guest) for guest in chance.sample(AT_HOME, 6)}
        while not life.dying.is_set():
            guest = chance.choice(list(lines))
            version = chance.choice(VERSIONS)
            self._read(lines[guest], guest, f"api-version={version}", version)
        _close(lines.values())

    def _wait(self, life: Life, chance: Random) -> None:
        """A long poll after another."""
        guest = chance.choice(AT_HOME)
        line, known = self._guest_line(life, guest), 0
        while not life.dying.is_set():
            target = f"api-version={VERSION}&wait=1"
            known = self._read(line, guest, target, VERSION, known) or known
        line.close()

    def _read(self, line: Line, guest: Guest, query: str, version: str, known: int = 0) -> int:
        tag = {"If-None-Match": f'"{known}"'} if known else {}
        floor = self._transcript.floor(guest.scope)
        reply = line.ask("GET", f"{PATH}?{query}", {"Metadata": "true", **tag})
        if reply is None or reply.status != http.client.OK:
            return 0
        seen_at = time.monotonic()
        return self._transcript.read(guest.scope, version, floor, reply.body, seen_at)

    def _approve(self, life: Life, chance: Random) -> None:
        lines: dict[Guest, Line] = {}
        while not life.dying.is_set():
            picked = self.pick(chance)
            if picked is None or chance.random() < 0.3:
                life.dying.wait(chance.uniform(0, 0.02))
                continue
            event_id, scope = picked
            guest = chance.choice([guest for guest in AT_HOME if guest.scope == scope])
            line = lines.setdefault(guest, self._guest_line(life, guest))
            self._transcript.ask_to_start(event_id, guest.name)
            body = json.dumps({"StartRequests": [{"EventId": event_id}]}).encode()
            target = f"{PATH}?api-version={VERSION}"
            reply = line.ask("POST", target, {"Metadata": "true"}, body)
            self.note_approval(life, guest, event_id, None if reply is None else reply.status)
        _close(lines.values())

    def note_approval(self, life: Life, guest: Guest, event_id: str, status: int | None) -> None:
        """What came of a guest's approval; None: no answer came."""
        if status == http.client.OK:
            self._hear(life, Deed.APPROVE, event_id, guest.name, {})
        elif status is None:
            self._transcript.doubt(Deed.APPROVE, event_id, guest.name)

    # -- operators -----------------------------------------------------------------------------

    def _operate(self, life: Life, chance: Random) -> None:
        line = Line(life, life.control, "", self._transcript)
        while not life.dying.is_set():
            scope = chance.choice([scope for scope in _SIZES if scope != SPOT])
            with self._lock:
                is_crowded = list(self._open.values()).count(scope) >= OPEN_PER_SCOPE_MAX
            picked = self.pick(chance, spot=chance.random() < 0.05)
            if picked is not None and (is_crowded or chance.random() < 0.4):
                self._change(life, line, chance, picked[0])
            elif not is_crowded:
                wish = {
                    "type": chance.choice(("Freeze", "Reboot", "Redeploy")),
                    "source": chance.choice(("platform", "user")),
                    "machines": [
                        chance.choice([guest.name for guest in GUESTS if guest.scope == scope])
                    ],
                }
                self._announce(life, line, wish)
        line.close()

    def _spot(self, life: Life, chance: Random) -> None:
        """Evictions that nobody approves: only time starts them."""
        line = Line(life, life.control, "", self._transcript)
        spots = [guest.name for guest in GUESTS if guest.scope == SPOT and guest not in AT_HOME]
        while not life.dying.wait(chance.uniform(0.05, 0.5)):
            self._announce(life, line, {"type": "Preempt", "machines": [chance.choice(spots)]})
        line.close()

    def _announce(self, life: Life, line: Line, wish: Mapping[str, object]) -> None:
        description = f"wish {next(self._numbers)} of life {life.number}"
        body = json.dumps({**wish, "description": description, "duration_seconds": 0}).encode()
        self._transcript.wish(description, time.monotonic())
        reply = line.ask("POST", "/fabric/v1/events", _authorized(life), body)
        if reply is None:
            self._transcript.doubt(Deed.ANNOUNCE, description, "operator")
        elif reply.status == http.client.CREATED:
            for record in reply.json["events"]:
                self._hear(life, Deed.ANNOUNCE, record["event_id"], "operator", record)
                with self._lock:
                    self._open[record["event_id"]] = record["scope"]

    def _change(self, life: Life, line: Line, chance: Random, event_id: str) -> None:
        deed = chance.choice((Deed.CANCEL, Deed.POSTPONE, Deed.APPROVE))
        body = b""
        if deed is Deed.POSTPONE:
            body = json.dumps({"by_seconds": chance.randint(60, 600)}).encode()
        if deed is Deed.APPROVE:
            self._transcript.ask_to_start(event_id, "operator")
        target = f"/fabric/v1/events/{event_id}/{deed.value}"
        reply = line.ask("POST", target, _authorized(life), body)
        if reply is None:
            self._transcript.doubt(deed, event_id, "operator")
        elif reply.status == http.client.OK:
            self._hear(life, deed, event_id, "operator", reply.json)

    def _hear(self, life: Life, deed: Deed, event_id: str, by: str, record: Record) -> None:
        said = Said(
            deed=deed,
            event_id=event_id,
            by=by,
            life=life.number,
            answered_at=self._clock.now(),
            record=record,
        )
        self._transcript.hear(said)
        if deed in (Deed.APPROVE, Deed.CANCEL):
            with self._lock:
                self._open.pop(event_id, None)

    def _chance(self, life: Life, number: int) -> Random:
        return Random(f"{self._seed}/{life.number}/{number}")  # noqa: S311 - repeatable on purpose

    def _guest_line(self, life: Life, guest: Guest) -> Line:
        return Line(life, life.metadata, guest.address, self._transcript)


def _authorized(life: Life) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {life.token}"}


def _close(lines: Iterable[Line]) -> None:
    for line in lines:
        line.close()
