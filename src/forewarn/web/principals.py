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
from forewarn.web.calls import Answer, Call, parameters, reply
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
    asked: tuple[tuple[str, str, Callable[[PrincipalsParts, Call], Answer], Described], ...] = (
        ("GET", ROOT, _list, _told("listPrincipals", "List who may call.", wire.PrincipalsForm)),
        ("POST", ROOT, _add, _ADDED),
        ("GET", _ONE, _show, _told("showPrincipal", "Show one principal.", wire.PrincipalForm)),
        (
            "POST",
            f"{_ONE}/rotate",
            _rotate,
            _told("rotateSecret", "Give it a new secret.", wire.SecretForm, wire.Rotation),
        ),
        (
            "POST",
            f"{_ONE}/revoke",
            _revoke,
            _told("revokePrincipal", "Let it in no longer.", wire.PrincipalForm, forms.Nothing),
        ),
    )
    return tuple(
        Route(
            method=method,
            path=path,
            right=Right.OPERATE,
            handle=partial(handler, parts),
            told=told,
        )
        for method, path, handler, told in asked
    )


def _told(name: str, summary: str, answer: type, asks: type | None = None) -> Described:
    return Described(name=name, summary=summary, asks=asks, answers={HTTPStatus.OK: answer})


_ONE: Final = f"{ROOT}/{{principal}}"
_ADDED: Final = Described(
    name="addPrincipal",
    summary="Let somebody in; its secret is shown this once.",
    asks=wire.NewPrincipal,
    answers={HTTPStatus.CREATED: wire.SecretForm},
)


def _list(parts: PrincipalsParts, call: Call) -> Answer:
    parameters(call)
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
