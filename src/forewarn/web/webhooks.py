"""Webhooks under /fabric/v1/webhooks.

Owners have webhooks that are limited to their own resource groups, and see no others; operators have all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
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


Handler = Callable[[WebhookParts, Call], Answer]


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


def routes(parts: WebhookParts) -> tuple[Route, ...]:
    """All that can be asked about webhooks."""
    return tuple(
        Route(method=method, path=path, right=Right.OWN, handle=partial(handler, parts), told=told)
        for method, path, handler, told in ROUTES
    )


def _told(
    name: str,
    summary: str,
    answer: type,
    asks: type | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> Described:
    return Described(name=name, summary=summary, asks=asks, answers={status: answer})


_ONE: Final = "/fabric/v1/webhooks/{webhook}"
_LETTER: Final = f"{_ONE}/dead-letters/{{letter}}"
ROUTES: Final[tuple[tuple[str, str, Handler, Described], ...]] = (
    (
        "GET",
        "/fabric/v1/webhooks",
        _list,
        _told("listWebhooks", "List webhooks, and how each is doing.", forms.WebhooksForm),
    ),
    (
        "POST",
        "/fabric/v1/webhooks",
        _add,
        _told(
            "addWebhook",
            "Add a webhook; its secret is shown this once.",
            forms.AddedForm,
            forms.NewWebhook,
            HTTPStatus.CREATED,
        ),
    ),
    ("GET", _ONE, _show, _told("showWebhook", "Show one webhook.", forms.WebhookForm)),
    (
        "PATCH",
        _ONE,
        _patch,
        _told(
            "patchWebhook", "Pause or resume a webhook.", forms.WebhookForm, forms.PatchedWebhook
        ),
    ),
    (
        "DELETE",
        _ONE,
        _remove,
        _told("removeWebhook", "Remove a webhook.", control_forms.NothingForm),
    ),
    (
        "POST",
        f"{_ONE}/test",
        _try_out,
        _told("tryWebhook", "Send a message that tells of nothing.", forms.TriedForm, wire.Nothing),
    ),
    (
        "GET",
        f"{_ONE}/dead-letters",
        _dead_letters,
        _told("listDeadLetters", "List what it was not told.", forms.DeadLettersForm),
    ),
    (
        "DELETE",
        _LETTER,
        _discard,
        _told("discardDeadLetter", "Forget a dead letter.", control_forms.NothingForm),
    ),
    (
        "POST",
        f"{_LETTER}/redeliver",
        _redeliver,
        _told("redeliver", "Try a dead letter once more.", control_forms.NothingForm, wire.Nothing),
    ),
)
