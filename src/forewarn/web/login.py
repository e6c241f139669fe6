"""Discovery and login: what anybody may ask, to become somebody."""

from __future__ import annotations

import math
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

from forewarn.core.rights import Right
from forewarn.errors import ForewarnError, Unavailable
from forewarn.service.logins import Granted, Logins, TooSoon
from forewarn.web.calls import Answer, Call
from forewarn.web.routes import Handler, Route
from forewarn.wire import oauth
from forewarn.wire.oauth import OauthRefusal

OPENID: Final = ".well-known/openid-configuration"


def routes(logins: Logins) -> tuple[Route, ...]:
    """What is asked here; nothing of it takes a right."""
    token: Handler = partial(_token, logins)
    keys: Handler = partial(_keys, logins)
    asked: tuple[tuple[str, str, Handler], ...] = (
        ("GET", "/metadata/endpoints", _endpoints),
        ("GET", f"/{{tenant}}/{OPENID}", _openid),
        ("GET", f"/{{tenant}}/v2.0/{OPENID}", _openid),
        # What az asks where the tenant is not given as a GUID.
        ("GET", f"/adfs/{{nickname}}/v2.0/{OPENID}", _openid),
        ("GET", "/{tenant}/discovery/v2.0/keys", keys),
        ("POST", "/{tenant}/oauth2/token", token),
        ("POST", "/{tenant}/oauth2/v2.0/token", token),
    )
    return tuple(
        Route(method=method, path=path, right=Right.ANYBODY, handle=handle, refused=_refused)
        for method, path, handle in asked
    )


def _endpoints(call: Call) -> Answer:
    version = parse_qs(call.query).get("api-version", [""])[0]
    return Answer(status=HTTPStatus.OK, body=oauth.endpoints(call.base, version))


def _openid(call: Call) -> Answer:
    tenant = call.names.get("tenant", oauth.ADFS)
    return Answer(status=HTTPStatus.OK, body=oauth.openid_configuration(call.base, tenant))


def _keys(logins: Logins, _call: Call) -> Answer:
    return Answer(status=HTTPStatus.OK, body=oauth.key_set(logins.tokens.public_keys()))


def _token(logins: Logins, call: Call) -> Answer:
    authorization = call.headers.get("authorization", "")
    try:
        asked = oauth.load_request(call.headers.get("content-type", ""), authorization, call.body)
    except OauthRefusal as refusal:
        return _fault(refusal.status, refusal.error, str(refusal))
    match logins.login(asked.client_id, asked.client_secret, call.address):
        case Granted(token, claims):
            body = oauth.token_answer(
                token,
                asked.resource or call.base,
                lasts_seconds=int((claims.expires_at - claims.issued_at).total_seconds()),
                expires_on=int(claims.expires_at.timestamp()),
            )
            return Answer(status=HTTPStatus.OK, body=body, headers=(("Pragma", "no-cache"),))
        case TooSoon(wait):
            seconds = max(1, math.ceil(wait.total_seconds()))
            return _fault(
                HTTPStatus.TOO_MANY_REQUESTS,
                "slow_down",
                f"too many wrong secrets came from this address: try again in {seconds} s",
                ("Retry-After", str(seconds)),
            )
        case _:
            return _fault(
                HTTPStatus.UNAUTHORIZED,
                "invalid_client",
                "no principal has this client_id and client_secret; "
                "`forewarn principal list` lists them, `rotate` makes a new secret",
            )


def _refused(refusal: ForewarnError) -> Answer:
    assert isinstance(refusal, Unavailable), "a login is granted, denied or not possible now"
    return _fault(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "temporarily_unavailable",
        str(refusal),
        ("Retry-After", "1"),
    )


def _fault(status: HTTPStatus, error: str, description: str, *headers: tuple[str, str]) -> Answer:
    if status is HTTPStatus.UNAUTHORIZED:
        headers = (*headers, ("WWW-Authenticate", 'Basic realm="forewarn"'))
    return Answer(status=status, body=oauth.fault(error, description), headers=headers)
