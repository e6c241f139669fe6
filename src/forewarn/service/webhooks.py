"""Webhooks as people ask for them: added, paused, removed, tried; and what became of dead letters."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final

from forewarn.core.journal import Actor, Entry, Role, What
from forewarn.core.names import ScopeId
from forewarn.core.targets import Target
from forewarn.core.webhooks import (
    WEBHOOKS_MAX,
    WEBHOOKS_OF_ONE_MAX,
    ChangeId,
    DeadLetter,
    Form,
    Wanted,
    Webhook,
    WebhookId,
)
from forewarn.errors import Conflict, OutcomeUnknown, Refused, Unavailable, Unknown
from forewarn.ports.clock import Clock
from forewarn.ports.hooks import Post
from forewarn.ports.ids import Ids
from forewarn.ports.store import Record, Store, Write
from forewarn.service.deliveries import Counts, Delivery, Writer, carry
from forewarn.wire import records
from forewarn.wire import webhook_records as spelling
from forewarn.wire.webhook_records import Position

CONFLICTS_MAX: Final = 100
REPEATS_MAX: Final = 5
PAGE: Final = 1000
# Somebody waits for these, and occupies a thread meanwhile.
TRIALS_MAX: Final = 2
_ID_LENGTH: Final = 12

NewSecret = Callable[[], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What somebody asks for: a webhook that does not exist yet."""

    name: str
    target: Target
    form: Form = Form.CLOUD_EVENTS
    wanted: Wanted


class Webhooks:
    """Keeps the webhooks and their dead letters. Safe to call from any thread."""

    def __init__(  # noqa: PLR0913 - all it stands on
        self,
        *,
        clock: Clock,
        store: Store,
        ids: Ids,
        writer: Writer,
        post: Post,
        new_secret: NewSecret,
        counts: Counts,
    ) -> None:
        self._clock = clock
        self._store = store
        self._ids = ids
        self._writer = writer
        self._post = post
        self._new_secret = new_secret
        self._counts = counts
        self._free = deque(range(TRIALS_MAX))

    def add(self, asked: Subscription, actor: Actor) -> Webhook:
        """Add a webhook, which is told of every change from now on.

        Raises: Refused if its target is not allowed or its name is taken, Unavailable.
        """
        self._post.check(asked.target)
        there = self.all()
        if len(there) >= WEBHOOKS_MAX:
            raise Refused(f"there are {WEBHOOKS_MAX} webhooks already: remove one")
        own = sum(known.created_by == actor.name for known in there)
        if actor.role is not Role.OPERATOR and own >= WEBHOOKS_OF_ONE_MAX:
            raise Refused(f"{actor.name} has {own} webhooks already: remove one")
        if any(known.name.lower() == asked.name.lower() for known in there):
            raise Refused(f"a webhook is called {asked.name} already: give another name")
        webhook = Webhook(
            id=WebhookId(self._ids.commit_id()[:_ID_LENGTH]),
            name=asked.name,
            target=asked.target,
            form=asked.form,
            wanted=asked.wanted,
            secret=self._new_secret(),
            created_by=actor.name,
            created_at=self._clock.now(),
        )
        position = Position(self._store.head())
        writes = (
            Write(spelling.webhook_key(webhook.id), 0, spelling.dump_webhook(webhook)),
            Write(spelling.position_key(webhook.id), 0, spelling.dump_position(position)),
        )
        self._commit(writes, f"added {webhook.name}, told at {webhook.target.place}", actor)
        return webhook

    def all(self) -> tuple[Webhook, ...]:
        """Every webhook, by name. Raises: Unavailable."""
        found = map(_webhook, self._store.scan(spelling.WEBHOOK_PREFIX, "", PAGE))
        return tuple(sorted(found, key=lambda webhook: webhook.name.lower()))

    def get(self, webhook: str) -> Webhook:
        """A webhook by its id. Raises: Unknown, Unavailable."""
        return self._get(webhook)[0]

    def pause(self, webhook: str, actor: Actor) -> Webhook:
        """Tell it nothing until it is resumed; what happens meanwhile is told then."""
        return self._set_paused(webhook, actor, paused=True)

    def resume(self, webhook: str, actor: Actor) -> Webhook:
        """Go on telling it, from where it was paused."""
        return self._set_paused(webhook, actor, paused=False)

    def pause_all_of(self, name: str, actor: Actor) -> None:
        """Tell nothing more to what somebody added. Raises: Conflict, Unavailable."""
        for webhook in self.all():
            if webhook.created_by == name:
                self.pause(webhook.id, actor)

    def remove(self, webhook: str, actor: Actor) -> None:
        """Remove a webhook with its dead letters. Raises: Unknown, Unavailable."""
        for _ in range(CONFLICTS_MAX):
            found, version = self._get(webhook)
            key = spelling.position_key(found.id)
            position = self._store.get([key])[key]
            letters = self._letters(found.id)
            writes = [
                Write(spelling.webhook_key(found.id), version, None),
                Write(key, position.version, None),
                *(Write(record.key, record.version, None) for record in letters),
            ]
            with suppress(Conflict):
                self._commit(writes, f"removed {found.name}", actor)
                self._counts.dead_letters.pop(found.id, None)
                return
        raise Conflict([spelling.webhook_key(WebhookId(webhook))])

    def dead_letters(self, webhook: str) -> tuple[DeadLetter, ...]:
        """What a webhook was not told, oldest first. Raises: Unknown, Unavailable."""
        return tuple(map(_letter, self._letters(self.get(webhook).id)))

    def redeliver(self, webhook: str, number: int, actor: Actor) -> None:
        """Try once more to tell what was given up on; a letter that is taken is a dead one no more.

        Raises: Unknown, Refused if there is nothing to tell, Unavailable if it was not taken.
        """
        found = self.get(webhook)
        record = self._letter(found.id, number)
        letter = _letter(record)
        if letter.entry is None or letter.change is None:
            raise Refused(
                f"dead letter {number} only says what is missing: read the journal or an export of "
                "it, then discard the letter"
            )
        now = self._clock.now()
        self._carry(self._writer.delivery(found, letter.change, letter.entry, now))
        with suppress(Conflict):
            self._drop(found, record, f"delivered dead letter {number} to {found.name}", actor)

    def discard(self, webhook: str, number: int, actor: Actor) -> None:
        """Forget a dead letter. Raises: Unknown, Conflict, Unavailable."""
        found = self.get(webhook)
        record = self._letter(found.id, number)
        self._drop(found, record, f"discarded dead letter {number} of {found.name}", actor)

    def try_out(self, webhook: str) -> ChangeId:
        """Send a message that tells of nothing; returns its id. Raises: Unknown, Unavailable."""
        found = self.get(webhook)
        change = ChangeId(f"test-{self._ids.commit_id()}")
        self._carry(self._writer.trial(found, change, self._clock.now()))
        return change

    def _carry(self, delivery: Delivery) -> None:
        with self._turn():
            why = carry(self._post, delivery)
        if why:
            raise Unavailable(f"{delivery.webhook.target.place} did not take it: {why}")

    @contextmanager
    def _turn(self) -> Iterator[None]:
        try:
            place = self._free.pop()
        except IndexError:
            raise Unavailable("others are trying webhooks at the moment: try again") from None
        try:
            yield
        finally:
            self._free.append(place)

    def _set_paused(self, webhook: str, actor: Actor, *, paused: bool) -> Webhook:
        word = "paused" if paused else "resumed"
        for _ in range(CONFLICTS_MAX):
            found, version = self._get(webhook)
            if found.is_paused == paused:
                return found
            changed = replace(found, is_paused=paused)
            write = Write(spelling.webhook_key(found.id), version, spelling.dump_webhook(changed))
            with suppress(Conflict):
                self._commit((write,), f"{word} {found.name}", actor)
                return changed
        raise Conflict([spelling.webhook_key(WebhookId(webhook))])

    def _get(self, webhook: str) -> tuple[Webhook, int]:
        key = spelling.webhook_key(WebhookId(webhook.lower()))
        record = self._store.get([key])[key]
        if record.value is None:
            raise Unknown(f"no webhook {webhook}; `forewarn webhook list` lists them")
        return _webhook(record), record.version

    def _letters(self, webhook: WebhookId) -> list[Record]:
        prefix = spelling.letters_prefix(webhook)
        found: list[Record] = []
        while True:
            page = self._store.scan(prefix, found[-1].key if found else "", PAGE)
            found += page
            if len(page) < PAGE:
                return found

    def _letter(self, webhook: WebhookId, number: int) -> Record:
        key = spelling.letter_key(webhook, number)
        record = self._store.get([key])[key]
        if record.value is None:
            raise Unknown(
                f"no dead letter {number}; `forewarn webhook dead-letters WEBHOOK` lists them"
            )
        return record

    def _drop(self, webhook: Webhook, record: Record, note: str, actor: Actor) -> None:
        self._commit((Write(record.key, record.version, None),), note, actor)
        left = self._counts.dead_letters.get(webhook.id, 1) - 1
        self._counts.dead_letters[webhook.id] = left

    def _commit(self, writes: Sequence[Write], note: str, actor: Actor) -> None:
        """Commit, with a line in the journal; again under the same id while the outcome is unknown."""
        entry = Entry(
            at=self._clock.now(), scope=ScopeId(""), what=What.WEBHOOK, actor=actor, note=note
        )
        commit_id, journal = self._ids.commit_id(), (records.dump_entry(entry),)
        for _ in range(REPEATS_MAX):
            with suppress(OutcomeUnknown):
                self._store.commit(commit_id, writes, journal)
                return
        self._store.commit(commit_id, writes, journal)


def _webhook(record: Record) -> Webhook:
    assert record.value is not None, "found by its value"
    return spelling.load_webhook(record.value)


def _letter(record: Record) -> DeadLetter:
    assert record.value is not None, "found by its value"
    return spelling.load_letter(record.value)
