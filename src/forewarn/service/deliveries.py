"""A delivery: one signed message for one webhook, made and carried out; and what is counted of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from http import HTTPStatus

from forewarn.core.journal import Entry
from forewarn.core.names import ScopeId
from forewarn.core.scopes import Scope
from forewarn.core.webhooks import ChangeId, Webhook, WebhookId
from forewarn.errors import Refused, Unavailable
from forewarn.ports.hooks import Post
from forewarn.wire import cloud_events, signatures
from forewarn.wire.cloud_events import Message

# A scope as it is now; None for one that nobody knows.
Scopes = Callable[[ScopeId], Scope | None]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message, signed, and whom it is for."""

    webhook: Webhook
    change: ChangeId
    headers: tuple[tuple[str, str], ...]
    body: bytes
    # What it tells; None: nothing.
    entry: Entry | None = None


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes messages in the form that a webhook asked for."""

    scopes: Scopes
    subscription: str

    def delivery(self, webhook: Webhook, change: ChangeId, entry: Entry, at: datetime) -> Delivery:
        """The message about a change."""
        scope = self.scopes(entry.scope)
        if scope is None:
            group, _, name = entry.scope.partition("/")
            scope = Scope(name=name, resource_group=group)
        message = cloud_events.message(webhook, change, entry, scope, self.subscription)
        return replace(_signed(webhook, change, message, at), entry=entry)

    def trial(self, webhook: Webhook, change: ChangeId, at: datetime) -> Delivery:
        """A message that tells of nothing."""
        message = cloud_events.trial(webhook, change, at, self.subscription)
        return _signed(webhook, change, message, at)


def _signed(webhook: Webhook, change: ChangeId, message: Message, at: datetime) -> Delivery:
    headers = (
        ("Content-Type", message.content_type),
        *message.headers,
        *signatures.sign(webhook.secret, change, at, message.body),
    )
    return Delivery(webhook, change, headers, message.body)


def carry(post: Post, delivery: Delivery) -> str:
    """Carry a delivery out; why it was not taken, "" if it was."""
    try:
        status = post.deliver(delivery.webhook.target, delivery.headers, delivery.body)
    except (Refused, Unavailable) as error:
        return str(error)
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return ""
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return f"answered {status}: redirections are not followed, give the final address"
    return f"answered {status}"


@dataclass(slots=True)
class Counts:
    """Plain numbers about webhooks, since the start or as of now; read by any thread."""

    delivered: int = 0
    failed: int = 0
    given_up: int = 0
    # Changes that were read and wait to be told.
    waiting: int = 0
    webhooks: int = 0
    # The dead letters that nobody has seen to.
    dead_letters: dict[WebhookId, int] = field(default_factory=dict)

    @property
    def dead(self) -> int:
        return sum(tuple(self.dead_letters.values()))
