"""Who may call, as operators see and change it, under /fabric/v1/principals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Final

from forewarn.core.accounts import Account
from forewarn.core.journal import Actor
from forewarn.core.rights import Right
from forewarn.ports.clock import Clock
from forewarn.service.accounts import Accounts
from forewarn.web.calls import Answer, Call, reply
from forewarn.web.described import Described
from forewarn.web.routes import Route
from forewarn.web.rows import Row, routes_of
from forewarn.wire import control as forms
from forewarn.wire import principals as wire

ROOT: Final = "/fabric/v1/principals"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalsParts:
    """What it stands on."""

    clock: Clock
    accounts: Accounts
    tenant: str
    # Stops what somebody left behind from telling it things.
    pause_webhooks_of: Callable[[str, Actor], None]


def _list(parts: PrincipalsParts, _call: Call) -> Answer:
    everybody = [_form(parts, account) for account in parts.accounts.all()]
    return reply(wire.PrincipalsForm(principals=everybody))


def _show(parts: PrincipalsParts, call: Call) -> Answer:
    return reply(_form(parts, parts.accounts.find(call.names["principal"])))


def _add(parts: PrincipalsParts, call: Call) -> Answer:
    asked = forms.load(wire.NewPrincipal, call.body)
    account, secret = parts.accounts.add(asked, call.actor)
    return _told_once(parts, account, secret, HTTPStatus.CREATED)


def _rotate(parts: PrincipalsParts, call: Call) -> Answer:
    asked = forms.load(wire.Rotation, call.body)
    keep_old = timedelta(seconds=asked.keep_old_seconds)
    account, secret = parts.accounts.rotate(call.names["principal"], keep_old, call.actor)
    return _told_once(parts, account, secret, HTTPStatus.OK)


def _revoke(parts: PrincipalsParts, call: Call) -> Answer:
    forms.load(forms.Nothing, call.body)
    revoked = parts.accounts.revoke(call.names["principal"], call.actor)
    parts.pause_webhooks_of(revoked.principal.name, call.actor)
    return reply(_form(parts, revoked))


def _told_once(parts: PrincipalsParts, account: Account, secret: str, status: HTTPStatus) -> Answer:
    form = wire.SecretForm(
        principal=_form(parts, account), client_secret=secret, tenant_id=parts.tenant
    )
    return reply(form, status=status)


def _form(parts: PrincipalsParts, account: Account) -> wire.PrincipalForm:
    return wire.form(account, parts.clock.now())


_ONE: Final = f"{ROOT}/{{principal}}"
# Operators only: whoever may make others known could become anybody.
ROWS: Final = (
    Row(
        "GET",
        ROOT,
        Right.OPERATE,
        _list,
        Described(
            name="listPrincipals",
            summary="List all principals, revoked ones too.",
            answers={HTTPStatus.OK: wire.PrincipalsForm},
        ),
    ),
    Row(
        "POST",
        ROOT,
        Right.OPERATE,
        _add,
        Described(
            name="addPrincipal",
            summary="Make a principal known; its secret is in the answer, this once.",
            asks=wire.NewPrincipal,
            answers={HTTPStatus.CREATED: wire.SecretForm},
        ),
    ),
    Row(
        "GET",
        _ONE,
        Right.OPERATE,
        _show,
        Described(
            name="showPrincipal",
            summary="Show one principal.",
            answers={HTTPStatus.OK: wire.PrincipalForm},
            # Several may have had the name.
            refusals=frozenset({HTTPStatus.CONFLICT}),
        ),
    ),
    Row(
        "POST",
        f"{_ONE}/rotate",
        Right.OPERATE,
        _rotate,
        Described(
            name="rotateSecret",
            summary="Give a principal a new secret, which is in the answer, this once.",
            asks=wire.Rotation,
            answers={HTTPStatus.OK: wire.SecretForm},
        ),
    ),
    Row(
        "POST",
        f"{_ONE}/revoke",
        Right.OPERATE,
        _revoke,
        Described(
            name="revokePrincipal",
            summary="Let a principal, its secrets and its tokens be worth nothing, at once.",
            asks=forms.Nothing,
            answers={HTTPStatus.OK: wire.PrincipalForm},
        ),
    ),
)


def routes(parts: PrincipalsParts) -> tuple[Route, ...]:
    """What is asked here: by operators only."""
    return routes_of(ROWS, parts)
