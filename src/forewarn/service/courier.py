"""The courier: tells webhooks of changes, at least once, in the order of each scope.

Called in turns by one thread, as the conductor is; it never waits for a receiver. What is to be sent is
handed over, and comes back through `came_back`. How far each webhook was told is stored after the fact:
whoever dies in between tells the same changes again, under the same ids.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from forewarn.core.journal import SERVICE, Entry, What
from forewarn.core.names import ScopeId
from forewarn.core.webhooks import DEAD_LETTERS_MAX, DeadLetter, Webhook, WebhookId
from forewarn.errors import Conflict, OutcomeUnknown, Pruned
from forewarn.ports.clock import Clock
from forewarn.ports.ids import Ids
from forewarn.ports.store import Change, CommitId, Cursor, Store, Write
from forewarn.service.deliveries import Counts, Delivery, Writer
from forewarn.service.satchels import Letter, Satchel
from forewarn.wire import records
from forewarn.wire import webhook_records as spelling

PAGE: Final = 200
WEBHOOKS_PAGE: Final = 1000
# A position that moved over nothing to tell is stored this often, lest pruning looks like a loss.
STORED_EVERY: Final = timedelta(seconds=60)

Send = Callable[[Delivery], None]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a webhook is doing, for people."""

    waiting: int
    # Why the last attempt failed, while something fails; else "".
    trouble: str


@dataclass(frozen=True, slots=True)
class Rounds:
    """What came of one turn: how long until there is something to try again, and who is in trouble."""

    wait: timedelta | None
    troubles: Mapping[WebhookId, str]


@dataclass(frozen=True, slots=True)
class _Commit:
    """What is being stored, under one id until its outcome is known."""

    id: CommitId
    writes: tuple[Write, ...]
    journal: tuple[bytes, ...]


@dataclass(slots=True)
class _Round:
    """One webhook's satchel, and what the store knows of it."""

    satchel: Satchel
    version: int
    stored_at: timedelta
    # Whether something was told or given up on since; whether the journal moved on without us.
    has_news: bool = False
    has_moved: bool = False
    given_up: list[DeadLetter] = field(default_factory=list)
    commit: _Commit | None = None
    in_flight: dict[str, Letter] = field(default_factory=dict)


class Courier:
    """Tells every webhook what it wants to know."""

    def __init__(
        self, clock: Clock, store: Store, ids: Ids, writer: Writer, send: Send, counts: Counts
    ) -> None:
        self._clock = clock
        self._store = store
        self._ids = ids
        self._writer = writer
        self._send = send
        self.counts = counts
        # Written by any thread that carried something out.
        self._returned: deque[tuple[Delivery, str]] = deque()
        self._rounds: dict[WebhookId, _Round] = {}
        self._head: Cursor | None = None
        # Replaced whole by each turn.
        self.standings: Mapping[WebhookId, Standing] = {}

    def came_back(self, delivery: Delivery, why: str) -> None:
        """A delivery was carried out; `why` it was not taken, "" if it was. Safe from any thread."""
        self._returned.append((delivery, why))

    def turn(self) -> Rounds:
        """Take note of what came back, store it, read on, and send what is due.

        Raises: Unavailable, after which the next turn goes on from there.
        """
        while self._returned:
            self._take_back(*self._returned.popleft())
        head = self._store.head()
        if head != self._head:
            self._call_roll()
            self._head = head
        for webhook, round_ in tuple(self._rounds.items()):
            self._tend(webhook, round_, head)
        self.counts.waiting = sum(r.satchel.waiting for r in self._rounds.values())
        self.standings = {
            webhook: _standing(round_.satchel) for webhook, round_ in self._rounds.items()
        }
        return Rounds(self._wait(), {w: s.trouble for w, s in self.standings.items() if s.trouble})

    def _tend(self, webhook: WebhookId, round_: _Round, head: Cursor) -> None:
        try:
            self._keep(round_)
        except Conflict:
            # It was removed meanwhile; or, if somebody else told it, we begin where they are.
            del self._rounds[webhook]
            self._head = None
            return
        if self._is_stopped(round_.satchel.webhook):
            return
        if round_.satchel.has_room and round_.satchel.read != head:
            self._read_on(round_)
        for letter in round_.satchel.due(self._clock.elapsed()):
            self._hand_over(round_, letter)

    # -- who is to be told -----------------------------------------------------------------

    def _call_roll(self) -> None:
        """Take note of webhooks that came, went or were paused. Raises: Unavailable."""
        found: dict[WebhookId, Webhook] = {}
        for record in self._store.scan(spelling.WEBHOOK_PREFIX, "", WEBHOOKS_PAGE):
            assert record.value is not None, "a scan tells of what has a value"
            webhook = spelling.load_webhook(record.value)
            found[webhook.id] = webhook
        for gone in self._rounds.keys() - found.keys():
            del self._rounds[gone]
        for id_, webhook in found.items():
            if id_ in self._rounds:
                self._rounds[id_].satchel.webhook = webhook
            else:
                self._begin(webhook)
        self.counts.webhooks = len(found)

    def _begin(self, webhook: Webhook) -> None:
        key = spelling.position_key(webhook.id)
        record = self._store.get([key])[key]
        if record.value is None:
            # Removed since the roll was called.
            return
        letters = self._store.scan(spelling.letters_prefix(webhook.id), "", WEBHOOKS_PAGE)
        self.counts.dead_letters[webhook.id] = len(letters)
        satchel = Satchel(webhook, spelling.load_position(record.value))
        self._rounds[webhook.id] = _Round(satchel, record.version, self._clock.elapsed())

    def _is_stopped(self, webhook: Webhook) -> bool:
        return webhook.is_paused or self.counts.dead_letters.get(webhook.id, 0) >= DEAD_LETTERS_MAX

    # -- what is to be told ----------------------------------------------------------------

    def _read_on(self, round_: _Round) -> None:
        satchel = round_.satchel
        try:
            changes = self._store.changes(satchel.read, PAGE)
        except Pruned:
            round_.satchel.given_up += 1
            round_.given_up.append(self._missed(satchel))
            round_.has_news = True
            satchel.start_over()
            changes = self._store.changes(satchel.read, PAGE)
        satchel.fill(changes)
        # Our own commits are no reason for another one.
        round_.has_moved = round_.has_moved or not all(map(_is_ours, changes))

    def _missed(self, satchel: Satchel) -> DeadLetter:
        return DeadLetter(
            number=satchel.given_up,
            change=None,
            entry=None,
            at=self._clock.now(),
            tries=0,
            why=(
                "the journal was pruned before everything in it was told: whatever was committed "
                f"between cursor {satchel.read or 'of its beginning'} and the oldest entry that is "
                "kept may be missing; an export of the journal has it"
            ),
        )

    def _hand_over(self, round_: _Round, letter: Letter) -> None:
        round_.in_flight[letter.change] = letter
        webhook = round_.satchel.webhook
        self._send(self._writer.delivery(webhook, letter.change, letter.entry, self._clock.now()))

    def _take_back(self, delivery: Delivery, why: str) -> None:
        round_ = self._rounds.get(delivery.webhook.id)
        letter = None if round_ is None else round_.in_flight.pop(delivery.change, None)
        if round_ is None or letter is None:
            # Sent for a satchel that is no more: the next one tells it again, if need be.
            return
        if not why:
            self.counts.delivered += 1
            round_.satchel.settle(letter)
            round_.has_news = True
            return
        self.counts.failed += 1
        now = self._clock.now()
        hopeless = round_.satchel.fail(letter, why, now, self._clock.elapsed())
        if hopeless is not None:
            round_.satchel.given_up += 1
            round_.given_up.append(
                DeadLetter(
                    number=round_.satchel.given_up,
                    change=letter.change,
                    entry=letter.entry,
                    at=now,
                    tries=hopeless.tries,
                    why=why,
                )
            )
            round_.satchel.settle(letter)
            round_.has_news = True

    # -- what is stored --------------------------------------------------------------------

    def _keep(self, round_: _Round) -> None:
        """Store how far a webhook was told. Raises: Conflict, Unavailable."""
        elapsed = self._clock.elapsed()
        if round_.commit is None:
            if not round_.has_news and (
                not round_.has_moved or elapsed - round_.stored_at < STORED_EVERY
            ):
                return
            round_.commit = self._commit(round_)
            round_.has_news = round_.has_moved = False
        with suppress(OutcomeUnknown):
            self._store.commit(round_.commit.id, round_.commit.writes, round_.commit.journal)
            webhook = round_.satchel.webhook.id
            letters = len(round_.commit.writes) - 1
            self.counts.given_up += letters
            counted = self.counts.dead_letters.get(webhook, 0)
            self.counts.dead_letters[webhook] = counted + letters
            round_.version += 1
            round_.stored_at = elapsed
            round_.commit = None

    def _commit(self, round_: _Round) -> _Commit:
        webhook = round_.satchel.webhook
        position = spelling.dump_position(round_.satchel.position)
        writes = [Write(spelling.position_key(webhook.id), round_.version, position)]
        journal: list[bytes] = []
        for letter in round_.given_up:
            key = spelling.letter_key(webhook.id, letter.number)
            writes.append(Write(key, 0, spelling.dump_letter(letter)))
            journal.append(records.dump_entry(_gave_up(webhook, letter)))
        round_.given_up = []
        return _Commit(self._ids.commit_id(), tuple(writes), tuple(journal))

    def _wait(self) -> timedelta | None:
        """How long until something is to be tried again; None: until something happens."""
        if self._returned or self._head is None:
            return timedelta()
        elapsed = self._clock.elapsed()
        waits: list[timedelta] = []
        for round_ in self._rounds.values():
            if self._is_stopped(round_.satchel.webhook):
                continue
            if round_.has_news or (round_.satchel.has_room and round_.satchel.read != self._head):
                return timedelta()
            due = round_.satchel.next_due()
            if due is not None:
                waits.append(max(due - elapsed, timedelta()))
        return min(waits, default=None)


def _is_ours(change: Change) -> bool:
    """Whether a commit only says how far webhooks were told."""
    return not change.journal and all(
        touch.key.startswith(spelling.POSITION_PREFIX) for touch in change.touched
    )


def _standing(satchel: Satchel) -> Standing:
    trouble = next((letter.why for letter in satchel.failing()), "")
    return Standing(satchel.waiting, trouble)


def _gave_up(webhook: Webhook, letter: DeadLetter) -> Entry:
    about = "" if letter.entry is None else f" of change {letter.change} in {letter.entry.scope}"
    return Entry(
        at=letter.at,
        scope=ScopeId(""),
        what=What.WEBHOOK,
        actor=SERVICE,
        note=f"{webhook.name} was not told{about} (dead letter {letter.number}): {letter.why}",
    )
