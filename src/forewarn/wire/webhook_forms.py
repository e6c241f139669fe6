"""Webhooks in the operators' JSON: as they are asked for, and as they are shown.

A secret is shown once, in the answer to whoever added the webhook.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from forewarn.core.events import EventType
from forewarn.core.journal import Entry, What
from forewarn.core.names import ScopeId
from forewarn.core.webhooks import DeadLetter, Wanted, Webhook
from forewarn.core.webhooks import Form as HookForm
from forewarn.errors import Malformed
from forewarn.wire import cloud_events, signatures
from forewarn.wire.control import NAME_LENGTH_MAX, Asked, named
from forewarn.wire.control_forms import EventTypeWord, Form, Instant, one_of

FILTERS_MAX: Final = 100

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
_Names = Annotated[tuple[_Name, ...], msgspec.Meta(max_length=FILTERS_MAX)]
# What changes are called in the types of CloudEvents, which receivers see.
_WORDS: Final = {cloud_events.type_of(what).rpartition(".")[2]: what for what in What}

_Kind = Annotated[str, one_of(HookForm)]
_Change = Annotated[str, msgspec.Meta(extra_json_schema={"enum": [*_WORDS]})]


class NewWebhook(Asked, frozen=True, kw_only=True):
    """A webhook to be added; a filter that is left out wants all."""

    name: _Name
    url: str
    form: _Kind = HookForm.CLOUD_EVENTS.value
    groups: _Names = ()
    scopes: _Names = ()
    types: Annotated[tuple[EventTypeWord, ...], msgspec.Meta(max_length=FILTERS_MAX)] = ()
    changes: Annotated[tuple[_Change, ...], msgspec.Meta(max_length=FILTERS_MAX)] = ()

    @property
    def label(self) -> str:
        """Its name. Raises: Malformed."""
        if not self.name.isprintable() or self.name != self.name.strip():
            raise Malformed("a webhook's name is one line of text, without spaces around it")
        return self.name

    @property
    def kind(self) -> HookForm:
        """How it wants changes to be written. Raises: Malformed."""
        return named(HookForm, "form", self.form)

    @property
    def wanted(self) -> Wanted:
        """What it wants to be told. Raises: Malformed."""
        return Wanted(
            groups=tuple(group.lower() for group in self.groups),
            scopes=tuple(ScopeId(scope.lower()) for scope in self.scopes),
            types=tuple(named(EventType, "type", word) for word in self.types),
            changes=tuple(map(_change, self.changes)),
        )


class PatchedWebhook(Asked, frozen=True, kw_only=True):
    """What can be changed of a webhook."""

    paused: bool


class WebhookForm(Form, frozen=True, kw_only=True):
    """A webhook, and how it is doing."""

    id: str
    name: str
    url: str
    form: _Kind
    groups: tuple[str, ...]
    scopes: tuple[str, ...]
    types: tuple[EventTypeWord, ...]
    changes: tuple[_Change, ...]
    paused: bool
    created_by: str
    created_at: Instant
    # Changes that were read and not told yet.
    waiting: int
    # Why the last attempt failed, while something fails.
    trouble: str | None
    dead_letters: int


class AddedForm(Form, frozen=True, kw_only=True):
    """A webhook that was just added, and its secret, which nobody is ever shown again."""

    webhook: WebhookForm
    secret: str


class WebhooksForm(Form, frozen=True, kw_only=True):
    """Some webhooks."""

    webhooks: Sequence[WebhookForm]


class DeadLetterForm(Form, frozen=True, kw_only=True):
    """Something that a webhook was not told; without an id, what the journal no longer had."""

    number: int
    at: Instant
    why: str
    tries: int
    id: str | None
    type: str | None
    scope: str | None
    event_id: str | None
    changed_at: Instant | None


class DeadLettersForm(Form, frozen=True, kw_only=True):
    """Some dead letters."""

    dead_letters: Sequence[DeadLetterForm]


class TriedForm(Form, frozen=True, kw_only=True):
    """The id of a message that was taken."""

    id: str


def webhook_form(webhook: Webhook, *, waiting: int, trouble: str, dead_letters: int) -> WebhookForm:
    """A webhook, as people are shown it."""
    wanted = webhook.wanted
    return WebhookForm(
        id=webhook.id,
        name=webhook.name,
        url=webhook.target.url,
        form=webhook.form.value,
        groups=wanted.groups,
        scopes=wanted.scopes,
        types=tuple(one.value for one in wanted.types),
        changes=tuple(_word(one) for one in wanted.changes),
        paused=webhook.is_paused,
        created_by=webhook.created_by,
        created_at=webhook.created_at,
        waiting=waiting,
        trouble=trouble or None,
        dead_letters=dead_letters,
    )


def added_form(webhook: WebhookForm, secret: bytes) -> AddedForm:
    return AddedForm(webhook=webhook, secret=signatures.dump_secret(secret))


def dead_letter_form(letter: DeadLetter) -> DeadLetterForm:
    entry = letter.entry
    return DeadLetterForm(
        number=letter.number,
        at=letter.at,
        why=letter.why,
        tries=letter.tries,
        id=letter.change,
        type=None if entry is None else cloud_events.type_of(entry.what),
        scope=None if entry is None else entry.scope,
        event_id=None if entry is None else _event_id(entry),
        changed_at=None if entry is None else entry.at,
    )


def _event_id(entry: Entry) -> str:
    assert entry.event is not None, "whoever is told is told of an event"
    return entry.event.id


def _word(what: What) -> str:
    return cloud_events.type_of(what).rpartition(".")[2]


def _change(word: str) -> What:
    found = _WORDS.get(word.lower())
    if found is None:
        raise Malformed(f"no change is called {word[:50]!r}: give one of {', '.join(_WORDS)}")
    return found
