"""How webhooks, what they were told, and what they were not, are spelled in a store: versioned JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from forewarn.core.names import ScopeId
from forewarn.core.webhooks import ChangeId, DeadLetter, Webhook, WebhookId
from forewarn.wire import pages

WEBHOOK_PREFIX: Final = "webhook/"
POSITION_PREFIX: Final = "webhook-position/"
LETTER_PREFIX: Final = "webhook-letter/"
# Raised when an older forewarn could no longer understand what is written.
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Position:
    """How far a webhook was told.

    Of the commits up to the cursor, everything. Beyond it, in each scope that is named, everything up
    to that change.
    """

    cursor: str
    beyond: Mapping[ScopeId, ChangeId] = field(default_factory=dict)
    # How many dead letters there ever were: no number is used twice.
    given_up: int = 0


@dataclass(frozen=True, slots=True)
class _WebhookPage:
    format: int
    webhook: Webhook


@dataclass(frozen=True, slots=True)
class _PositionPage:
    format: int
    position: Position


@dataclass(frozen=True, slots=True)
class _LetterPage:
    format: int
    letter: DeadLetter


_webhook = msgspec.json.Decoder(_WebhookPage)
_position = msgspec.json.Decoder(_PositionPage)
_letter = msgspec.json.Decoder(_LetterPage)
_encoder = msgspec.json.Encoder()


def webhook_key(webhook: WebhookId) -> str:
    """Where a webhook is kept."""
    return WEBHOOK_PREFIX + webhook


def position_key(webhook: WebhookId) -> str:
    """Where it is kept how far a webhook was told."""
    return POSITION_PREFIX + webhook


def letters_prefix(webhook: WebhookId) -> str:
    """What the keys of a webhook's dead letters begin with."""
    return f"{LETTER_PREFIX}{webhook}/"


def letter_key(webhook: WebhookId, number: int) -> str:
    """Where a dead letter is kept; keys are in the order of their numbers."""
    return f"{letters_prefix(webhook)}{number:010}"


def dump_webhook(webhook: Webhook) -> bytes:
    return _encoder.encode(_WebhookPage(FORMAT, webhook))


def load_webhook(value: bytes) -> Webhook:
    """A webhook from its bytes. Raises: Refused if a newer forewarn wrote it, Damaged."""
    return pages.read(_webhook, value, "a webhook", FORMAT).webhook


def dump_position(position: Position) -> bytes:
    return _encoder.encode(_PositionPage(FORMAT, position))


def load_position(value: bytes) -> Position:
    """A position from its bytes. Raises: Refused if a newer forewarn wrote it, Damaged."""
    return pages.read(_position, value, "a webhook's position", FORMAT).position


def dump_letter(letter: DeadLetter) -> bytes:
    return _encoder.encode(_LetterPage(FORMAT, letter))


def load_letter(value: bytes) -> DeadLetter:
    """A dead letter from its bytes. Raises: Refused if a newer forewarn wrote it, Damaged."""
    return pages.read(_letter, value, "a webhook's dead letter", FORMAT).letter
