"""What a service was heard to say while it lived, and whether it stands by it after it died.

A `Transcript` is written by many threads, an answer at a time. `verdict` holds it against what the
service says now: a list of broken promises, each with its story. Empty is what is wanted.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

# What happens to an event at most once, and in which order: a later word never precedes an
# earlier one. Written down once more on purpose, whatever the core says.
ONCE: Final = ("announced", "readable", "approved", "started", "completed", "canceled")
_RANK: Final = {"announced": 0, "readable": 1, "approved": 1, "started": 2, "completed": 3}
_ENDS: Final = frozenset({"completed", "canceled"})
MINIMUM: Final = {
    "Freeze": timedelta(minutes=15),
    "Reboot": timedelta(minutes=15),
    "Redeploy": timedelta(minutes=10),
    "Preempt": timedelta(seconds=30),
}

Record = Mapping[str, Any]


class Charge(Enum):
    """Which promise was broken."""

    LOST = "lost"
    EARLY = "early"
    REUSED = "reused"
    RETURNED = "returned"
    REPEATED = "repeated"
    INVENTED = "invented"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class Breach:
    """A promise that was broken, and the story of it."""

    charge: Charge
    story: str

    def __str__(self) -> str:
        return f"{self.charge.value}: {self.story}"


class Deed(Enum):
    """What somebody asked a service to do."""

    ANNOUNCE = "announce"
    APPROVE = "approve"
    CANCEL = "cancel"
    POSTPONE = "postpone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An answer that promises something: it was done."""

    deed: Deed
    event_id: str
    by: str
    life: int
    answered_at: datetime
    # The event as the answer showed it; guests' approvals have no body.
    record: Record = field(default_factory=dict)

    def __str__(self) -> str:
        when = self.answered_at.isoformat(timespec="milliseconds")
        return (
            f"{self.deed.value} of {self.event_id} by {self.by}, done at {when} in life {self.life}"
        )


@dataclass(frozen=True, slots=True)
class Doubt:
    """A request that was never answered: it was done, or it was not."""

    deed: Deed
    # Of the event, or of its announcement.
    name: str
    by: str


class Transcript:
    """All that was asked and answered. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.said: list[Said] = []
        self.doubts: list[Doubt] = []
        self.breaches: list[Breach] = []
        # By the description that only one announcement has: when it was asked for.
        self.wished: dict[str, float] = {}
        # Who ever asked for an event's start, answered or not.
        self.approvers: defaultdict[str, set[str]] = defaultdict(set)
        # The first sight of an event as Started.
        self.started: dict[str, float] = {}
        self.documents: defaultdict[tuple[str, str], dict[int, bytes]] = defaultdict(dict)
        self.reads = 0
        self._newest: defaultdict[str, int] = defaultdict(int)

    def blame(self, charge: Charge, story: str) -> None:
        """Note a promise that is broken already."""
        with self._lock:
            self.breaches.append(Breach(charge, story))

    def wish(self, description: str, at: float) -> None:
        """An announcement is about to be asked for."""
        with self._lock:
            self.wished[description] = at

    def ask_to_start(self, event_id: str, by: str) -> None:
        """An approval is about to be sent."""
        with self._lock:
            self.approvers[event_id].add(by)

    def hear(self, said: Said) -> None:
        """An answer came: from now on the service is held to it."""
        with self._lock:
            self.said.append(said)

    def doubt(self, deed: Deed, name: str, by: str) -> None:
        """No answer came."""
        with self._lock:
            self.doubts.append(Doubt(deed, name, by))

    def floor(self, scope: str) -> int:
        """The newest incarnation of which an answer was read: whoever asks now sees no older one."""
        with self._lock:
            return self._newest[scope]

    def read(self, scope: str, version: str, floor: int, body: bytes, at: float) -> int:
        """Note a document; `floor` as it was before the request was sent. Returns its incarnation."""
        document = json.loads(body)
        incarnation: int = document["DocumentIncarnation"]
        with self._lock:
            self.reads += 1
            if incarnation < floor:
                story = f"{scope} read incarnation {floor}, and later {incarnation}"
                self.breaches.append(Breach(Charge.REUSED, story))
            known = self.documents[scope, version].setdefault(incarnation, body)
            if known != body:
                story = f"{scope} ({version}) read two documents of incarnation {incarnation}: "
                self.breaches.append(Breach(Charge.REUSED, f"{story}{known!r} and {body!r}"))
            self._newest[scope] = max(self._newest[scope], incarnation)
            for event in document["Events"]:
                if event["EventStatus"] == "Started":
                    self.started.setdefault(event["EventId"], at)
        return incarnation


# -- the verdict ---------------------------------------------------------------------------------


def verdict(
    transcript: Transcript, events: Mapping[str, Record], journal: Sequence[Record]
) -> list[Breach]:
    """Every promise that is broken, given all events and the whole journal as they are now."""
    lines: defaultdict[str, list[Record]] = defaultdict(list)
    for line in journal:
        if line["event"] is not None:
            lines[line["event"]["event_id"]].append(line)
    return [
        *transcript.breaches,
        *_lost(transcript.said, events, lines),
        *_early(transcript, lines),
        *_invented(transcript, events, lines),
        *(breach for event_id, own in lines.items() for breach in _twice(event_id, own)),
        *_going_back(journal),
        *_returned(transcript.documents),
    ]


def settled(doubts: Iterable[Doubt], events: Mapping[str, Record]) -> int:
    """How many requests without an answer turn out to have been done."""
    announced = {event["description"] for event in events.values()}
    done = 0
    for doubt in doubts:
        record = events.get(doubt.name, {})
        if doubt.deed is Deed.ANNOUNCE:
            done += doubt.name in announced
        elif doubt.deed is Deed.APPROVE:
            done += (record.get("approved") or {}).get("by") == doubt.by
        elif doubt.deed is Deed.CANCEL:
            done += record.get("status") == "Canceled"
    return done


def undisturbed(
    read: Callable[[], Mapping[str, Record]], has_grown: Callable[[], bool]
) -> Mapping[str, Record]:
    """The events as of the end of the journal: a notice may run out between the two readings."""
    while True:
        events = read()
        if not has_grown():
            return events


def inconsistencies(
    known: Sequence[Record], journal: Sequence[Record], events: Mapping[str, Record]
) -> list[Breach]:
    """Where the journal is not what it was, or not what the ledgers say at its end."""
    found: list[Breach] = []
    if journal[: len(known)] != known:
        found.append(Breach(Charge.LOST, "the journal is another one than it was"))
    last = {line["event"]["event_id"]: line["event"] for line in journal if line["event"]}
    for event_id, event in events.items():
        told = last.get(event_id)
        if told != event:
            story = f"the journal knows {told}, the ledger {event}"
            found.append(Breach(Charge.LOST, story))
    return found


def _lost(
    said: Iterable[Said], events: Mapping[str, Record], lines: Mapping[str, Sequence[Record]]
) -> Iterator[Breach]:
    for word in said:
        record = events.get(word.event_id)
        own = lines.get(word.event_id, ())
        if record is None or not own:
            yield Breach(Charge.LOST, f"{word}; now nobody knows the event")
        elif not _holds(word, record):
            yield Breach(Charge.LOST, f"{word}; now {_story(record, own)}")


def _holds(word: Said, record: Record) -> bool:
    """Whether a record agrees with an answer that was given."""
    if word.deed is Deed.ANNOUNCE:
        same = all(word.record[name] == record[name] for name in ("type", "scope", "description"))
        return same and set(record["resources"]) == set(word.record["resources"])
    if word.deed is Deed.CANCEL:
        return bool(record["status"] == "Canceled" and record["started_at"] is None)
    if word.deed is Deed.POSTPONE:
        shown = (*record["not_before_earlier"], record["not_before"])
        return word.record["not_before"] in shown
    return _is_approved(word, record)


def _is_approved(word: Said, record: Record) -> bool:
    # An approval of what is under way, or over, is accepted and changes nothing.
    if record["approved"] is not None:
        return True
    late = record["started_at"] or record["ended_at"]
    return late is not None and datetime.fromisoformat(late) <= word.answered_at


def _early(transcript: Transcript, lines: Mapping[str, Sequence[Record]]) -> Iterator[Breach]:
    for event_id, own in lines.items():
        start = next((line["event"] for line in own if line["what"] == "started"), None)
        if start is None or start["approved"] is not None:
            continue
        minimum = MINIMUM[start["type"]]
        readable = start["readable_at"]
        since = datetime.fromisoformat(start["started_at"])
        story = f"nobody approved {event_id}, and {_story(start, own)}"
        if since < datetime.fromisoformat(start["not_before"]) or readable is None:
            yield Breach(Charge.EARLY, story)
        elif since - datetime.fromisoformat(readable) < minimum:
            yield Breach(Charge.EARLY, f"too little notice: {story}")
        # And by a clock of our own: between asking for it and seeing it, all its notice passes.
        wished = transcript.wished.get(start["description"])
        seen = transcript.started.get(event_id)
        if wished and seen and seen - wished < minimum.total_seconds():
            yield Breach(Charge.EARLY, f"{seen - wished:.3f} s after it was asked for: {story}")


def _invented(
    transcript: Transcript,
    events: Mapping[str, Record],
    lines: Mapping[str, Sequence[Record]],
) -> Iterator[Breach]:
    wishes = Counter(event["description"] for event in events.values())
    for description, count in wishes.items():
        if description not in transcript.wished or count > 1:
            yield Breach(Charge.INVENTED, f"{count} events from {description!r}, asked for once")
    for event_id, own in lines.items():
        approved = own[-1]["event"]["approved"]
        if approved is not None and approved["by"] not in transcript.approvers[event_id]:
            yield Breach(Charge.INVENTED, f"{event_id} is approved by {approved['by']}, who never")


def _twice(event_id: str, own: Sequence[Record]) -> Iterator[Breach]:
    whats = [line["what"] for line in own]
    counts = Counter(whats)
    ranks = [_RANK[what] for what in whats if what in _RANK]
    ends = [number for number, what in enumerate(whats) if what in _ENDS]
    is_whole = counts["announced"] == 1 and all(counts[what] <= 1 for what in ONCE)
    if not is_whole or ranks != sorted(ranks) or ends not in ([], [len(whats) - 1]):
        yield Breach(Charge.REPEATED, f"{event_id}: {', '.join(whats)}")


def _going_back(journal: Iterable[Record]) -> Iterator[Breach]:
    newest: dict[tuple[str, str], int] = {}
    for line in journal:
        scope = (line["resource_group"], line["scope"])
        before = newest.get(scope, 0)
        if line["incarnation"] < before:
            story = f"{scope[1]}: incarnation {line['incarnation']} was journaled after {before}"
            yield Breach(Charge.REUSED, story)
        newest[scope] = line["incarnation"]


def _returned(documents: Mapping[tuple[str, str], Mapping[int, bytes]]) -> Iterator[Breach]:
    """In the order of the incarnations: what is gone stays gone, what is Started stays so."""
    for (scope, version), shown in documents.items():
        last: dict[str, str] = {}
        gone: set[str] = set()
        for incarnation in sorted(shown):
            found = json.loads(shown[incarnation])["Events"]
            now = {event["EventId"]: event["EventStatus"] for event in found}
            for event_id, status in now.items():
                undone = last.get(event_id) == "Started" and status != "Started"
                if event_id in gone or undone:
                    story = f"{event_id} is {status} again in {scope} ({version}) {incarnation}"
                    yield Breach(Charge.RETURNED, story)
            gone |= last.keys() - now.keys()
            last = now


def _story(record: Record, own: Sequence[Record]) -> str:
    """An event's record in one line."""
    approved = record["approved"]
    return (
        f"it is {record['status']}, NotBefore {record['not_before']}, readable "
        f"{record['readable_at']}, approved {approved and approved['by']}, started "
        f"{record['started_at']}, ended {record['ended_at']}; journal: "
        + ", ".join(f"{line['what']} {line['at']}" for line in own)
    )
