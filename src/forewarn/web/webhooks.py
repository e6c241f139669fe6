"""Webhooks under /fabric/v1/webhooks.

Owners have webhooks that are limited to their own resource groups, and see no others; operators have all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from forewarn.core.rights import Right
from forewarn.core.webhooks import Wanted, Webhook, WebhookId
from forewarn.errors import Forbidden, Malformed, Unknown
from forewarn.service.courier import Standing
from forewarn.service.deliveries import Counts
from forewarn.service.webhooks import Subscription, Webhooks
from forewarn.web.calls import Answer, Call, reply
from forewarn.web.described import Described
from forewarn.web.routes import Route
from forewarn.web.rows import Row, routes_of
from forewarn.wire import control as wire
from forewarn.wire import control_forms, targets
from forewarn.wire import webhook_forms as forms

_QUIET: Final = Standing(0, "")
_DIGITS_MAX: Final = 9


@dataclass(frozen=True, kw_only=True)
class WebhookParts:
    """What the webhooks' part of the API stands on."""

    webhooks: Webhooks
    counts: Counts
    # How each of them is doing.
    standings: Callable[[], Mapping[WebhookId, Standing]]


def _list(parts: WebhookParts, call: Call) -> Answer:
    found = [_form(parts, one) for one in parts.webhooks.all() if _concerns(call, one)]
    return reply(forms.WebhooksForm(webhooks=found))


def _add(parts: WebhookParts, call: Call) -> Answer:
    asked = wire.load(forms.NewWebhook, call.body)
    wanted = asked.wanted
    _insist(call, wanted)
    added = parts.webhooks.add(
        Subscription(
            name=asked.label,
            target=targets.load_target(asked.url),
            form=asked.kind,
            wanted=wanted,
        ),
        call.actor,
    )
    form = forms.added_form(_form(parts, added), added.secret)
    return reply(form, status=HTTPStatus.CREATED)


def _show(parts: WebhookParts, call: Call) -> Answer:
    return reply(_form(parts, _found(parts, call)))


def _patch(parts: WebhookParts, call: Call) -> Answer:
    found = _found(parts, call)
    paused = wire.load(forms.PatchedWebhook, call.body).paused
    change = parts.webhooks.pause if paused else parts.webhooks.resume
    return reply(_form(parts, change(found.id, call.actor)))


def _remove(parts: WebhookParts, call: Call) -> Answer:
    parts.webhooks.remove(_found(parts, call).id, call.actor)
    return reply(control_forms.NothingForm())


def _try_out(parts: WebhookParts, call: Call) -> Answer:
    found = _found(parts, call)
    wire.load(wire.Nothing, call.body)
    return reply(forms.TriedForm(id=parts.webhooks.try_out(found.id)))


def _dead_letters(parts: WebhookParts, call: Call) -> Answer:
    letters = parts.webhooks.dead_letters(_found(parts, call).id)
    return reply(forms.DeadLettersForm(dead_letters=[*map(forms.dead_letter_form, letters)]))


def _discard(parts: WebhookParts, call: Call) -> Answer:
    parts.webhooks.discard(_found(parts, call).id, _number(call), call.actor)
    return reply(control_forms.NothingForm())


def _redeliver(parts: WebhookParts, call: Call) -> Answer:
    found = _found(parts, call)
    wire.load(wire.Nothing, call.body)
    parts.webhooks.redeliver(found.id, _number(call), call.actor)
    return reply(control_forms.NothingForm())


def _insist(call: Call, wanted: Wanted) -> None:
    """Refuse a webhook that would be told of other people's groups. Raises: Forbidden, Malformed."""
    for scope in wanted.scopes:
        group, slash, name = scope.partition("/")
        if not slash or not group or not name:
            raise Malformed(f"{scope[:50]!r} is no scope's id: write it like rg1/web")
        call.insist(group)
    for group in wanted.groups:
        call.insist(group)
    if not wanted.groups and not wanted.scopes and not call.sees(None):
        raise Forbidden(
            f"{call.caller.name} may not be told of every resource group: name some with --group"
        )


def _concerns(call: Call, webhook: Webhook) -> bool:
    """Whether all that a webhook is told of concerns whoever calls."""
    wanted = webhook.wanted
    groups = {*wanted.groups, *(scope.partition("/")[0] for scope in wanted.scopes)}
    return all(map(call.sees, groups)) if groups else call.sees(None)


def _found(parts: WebhookParts, call: Call) -> Webhook:
    """The webhook that the path names. One of others does not exist for whoever calls."""
    name = call.names["webhook"]
    found = parts.webhooks.get(name)
    if not _concerns(call, found):
        raise Unknown(f"no webhook {name}; `forewarn webhook list` lists them")
    return found


def _number(call: Call) -> int:
    text = call.names["letter"]
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
        raise Unknown(f"no dead letter {text[:50]}: their numbers are listed")
    return int(text)


def _form(parts: WebhookParts, webhook: Webhook) -> forms.WebhookForm:
    standing = parts.standings().get(webhook.id, _QUIET)
    return forms.webhook_form(
        webhook,
        waiting=standing.waiting,
        trouble=standing.trouble,
        dead_letters=parts.counts.dead_letters.get(webhook.id, 0),
    )


_ROOT: Final = "/fabric/v1/webhooks"
_ONE: Final = f"{_ROOT}/{{webhook}}"
_LETTER: Final = f"{_ONE}/dead-letters/{{letter}}"
_WEBHOOK: Final = {HTTPStatus.OK: forms.WebhookForm}
_DONE: Final = {HTTPStatus.OK: control_forms.NothingForm}

ROWS: Final = (
    Row(
        "GET",
        _ROOT,
        Right.OWN,
        _list,
        Described(
            name="listWebhooks",
            summary="List webhooks, and how each of them is doing.",
            answers={HTTPStatus.OK: forms.WebhooksForm},
        ),
    ),
    Row(
        "POST",
        _ROOT,
        Right.OWN,
        _add,
        Described(
            name="addWebhook",
            summary="Add a webhook; its secret is in the answer, this once.",
            asks=forms.NewWebhook,
            answers={HTTPStatus.CREATED: forms.AddedForm},
        ),
    ),
    Row(
        "GET",
        _ONE,
        Right.OWN,
        _show,
        Described(
            name="showWebhook",
            summary="Show a webhook, and how it is doing.",
            answers=_WEBHOOK,
        ),
    ),
    Row(
        "PATCH",
        _ONE,
        Right.OWN,
        _patch,
        Described(
            name="changeWebhook",
            summary="Pause a webhook, or resume it from where it was paused.",
            asks=forms.PatchedWebhook,
            answers=_WEBHOOK,
        ),
    ),
    Row(
        "DELETE",
        _ONE,
        Right.OWN,
        _remove,
        Described(
            name="removeWebhook",
            summary="Remove a webhook with its dead letters.",
            answers=_DONE,
        ),
    ),
    Row(
        "POST",
        f"{_ONE}/test",
        Right.OWN,
        _try_out,
        Described(
            name="tryWebhook",
            summary="Send a webhook a message that tells of nothing.",
            asks=wire.Nothing,
            answers={HTTPStatus.OK: forms.TriedForm},
        ),
    ),
    Row(
        "GET",
        f"{_ONE}/dead-letters",
        Right.OWN,
        _dead_letters,
        Described(
            name="listDeadLetters",
            summary="List what a webhook was not told, oldest first.",
            answers={HTTPStatus.OK: forms.DeadLettersForm},
        ),
    ),
    Row(
        "DELETE",
        _LETTER,
        Right.OWN,
        _discard,
        Described(name="discardDeadLetter", summary="Forget a dead letter.", answers=_DONE),
    ),
    Row(
        "POST",
        f"{_LETTER}/redeliver",
        Right.OWN,
        _redeliver,
        Described(
            name="redeliverDeadLetter",
            summary="Try once more to tell what was given up on.",
            asks=wire.Nothing,
            answers=_DONE,
        ),
    ),
)


def routes(parts: WebhookParts) -> tuple[Route, ...]:
    """All that can be asked about webhooks."""
    return routes_of(ROWS, parts)
