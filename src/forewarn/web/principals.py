"""Who may call, as operators see and change it, under /fabric/v1/principals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Final

from forewarn.core.accounts import Account
from forewarn.core.rights import Right
from forewarn.ports.clock import Clock
from forewarn.service.accounts import Accounts
from forewarn.web.calls import Answer, Call, reply
from forewarn.web.described import Described
from forewarn.web.routes import Route
from forewarn.wire import control as forms
from forewarn.wire import principals as wire

ROOT: Final = "/fabric/v1/principals"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalsParts:
    """What it stands on."""

    clock: Clock
    accounts: Accounts
    tenant: str


def routes(parts: PrincipalsParts) -> tuple[Route, ...]:
    """What is asked here: by operators only."""
    return tuple(
        Route(
            method=method,
            path=path,
            right=Right.OPERATE,
            handle=partial(handler, parts),
            told=told,
        )
        for method, path, handler, told in ROUTES
    )


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
    return reply(_form(parts, parts.accounts.revoke(call.names["principal"], call.actor)))


def _told_once(parts: PrincipalsParts, account: Account, secret: str, status: HTTPStatus) -> Answer:
    form = wire.SecretForm(
        principal=_form(parts, account), client_secret=secret, tenant_id=parts.tenant
    )
    return reply(form, status=status)


def _form(parts: PrincipalsParts, account: Account) -> wire.PrincipalForm:
    return wire.form(account, parts.clock.now())


ROUTES: Final[tuple[tuple[str, str, Callable[[PrincipalsParts, Call], Answer], Described], ...]] = (
    (
        "GET",
        ROOT,
        _list,
        Described(
            name="listPrincipals",
            summary="List who may call, and who was revoked.",
            answers={HTTPStatus.OK: wire.PrincipalsForm},
        ),
    ),
    (
        "POST",
        ROOT,
        _add,
        Described(
            name="addPrincipal",
            summary="Let somebody call; its secret is told this once.",
            asks=wire.NewPrincipal,
            answers={HTTPStatus.CREATED: wire.SecretForm},
        ),
    ),
    (
        "GET",
        f"{ROOT}/{{principal}}",
        _show,
        Described(
            name="showPrincipal",
            summary="Show one principal, by its name or its client id.",
            answers={HTTPStatus.OK: wire.PrincipalForm},
            # Several may have one name.
            refusals=frozenset({HTTPStatus.CONFLICT}),
        ),
    ),
    (
        "POST",
        f"{ROOT}/{{principal}}/rotate",
        _rotate,
        Described(
            name="rotatePrincipal",
            summary="Give a principal a new secret, which is told this once.",
            asks=wire.Rotation,
            answers={HTTPStatus.OK: wire.SecretForm},
        ),
    ),
    (
        "POST",
        f"{ROOT}/{{principal}}/revoke",
        _revoke,
        Described(
            name="revokePrincipal",
            summary="Shut a principal out, at once and for good.",
            asks=forms.Nothing,
            answers={HTTPStatus.OK: wire.PrincipalForm},
        ),
    ),
)
