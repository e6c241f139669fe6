"""Discovery and login as Azure's clients speak them: a custom cloud with an ADFS authority.

The documents are those that az, MSAL and the SDKs were seen to need. A token is asked for as
RFC 6749 has it: a form with each parameter once, or the client's id and secret as a Basic header.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, quote, unquote_plus

from forewarn.errors import Malformed

FORM_TYPE: Final = "application/x-www-form-urlencoded"
FORM_BYTES_MAX: Final = 16 * 1024
FIELDS_MAX: Final = 20
# The tenant that MSAL takes for an authority which the developer knows: it asks nobody else.
ADFS: Final = "adfs"

_YEAR: Final = re.compile(r"[0-9]{4}")
_GRANT: Final = "client_credentials"
_DEFAULT_SCOPE: Final = "/.default"


class OauthRefusal(Malformed):
    """What is wrong with a request for a token, in the words of RFC 6749."""

    def __init__(
        self, error: str, description: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST
    ) -> None:
        super().__init__(description)
        self.error = error
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """A principal that wants a token."""

    client_id: str
    client_secret: str = field(repr=False)
    # For whom the token is meant; only told back.
    resource: str


def endpoints(base: str, api_version: str) -> bytes:
    """The cloud's document, in the shape of its time."""
    authentication = {
        "loginEndpoint": f"{base}/{ADFS}",
        "audiences": [base],
        "tenant": "common",
        "identityProvider": "AAD",
    }
    cloud = {
        "name": "forewarn",
        "resourceManager": base,
        "suffixes": {},
        "authentication": authentication,
    }
    match _year(api_version):
        case year if year is None or year >= 2022:  # noqa: PLR2004 - as measured
            return _json(cloud)
        case year if year >= 2019:  # noqa: PLR2004 - as measured
            return _json([cloud])
        case _:
            old = dict.fromkeys(("galleryEndpoint", "graphEndpoint", "portalEndpoint"), base)
            login = {name: authentication[name] for name in ("loginEndpoint", "audiences")}
            return _json({**old, "authentication": login})


def openid_configuration(base: str, tenant: str) -> bytes:
    """Where a tenant's tokens are got."""
    authority = f"{base}/{quote(tenant, safe='')}"
    return _json(
        {
            "issuer": authority,
            "authorization_endpoint": f"{authority}/oauth2/v2.0/authorize",
            "token_endpoint": f"{authority}/oauth2/v2.0/token",
            "jwks_uri": f"{authority}/discovery/v2.0/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
            "grant_types_supported": [_GRANT],
            "response_types_supported": ["token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }
    )


def key_set(keys: tuple[Mapping[str, str], ...]) -> bytes:
    """The keys by which our tokens can be checked."""
    return _json({"keys": list(keys)})


def load_request(content_type: str, authorization: str, body: bytes) -> TokenRequest:
    """What is asked of the token endpoint. Raises: OauthRefusal."""
    form = _form(content_type, body)
    grant = form.get("grant_type")
    if grant is None:
        raise OauthRefusal("invalid_request", "grant_type is missing")
    client_id, secret = _client(form, authorization)
    if grant != _GRANT:
        raise OauthRefusal("unsupported_grant_type", f"grant_type is {_GRANT} here")
    scope = form.get("scope", "").split(" ")[0].removesuffix(_DEFAULT_SCOPE)
    return TokenRequest(
        client_id=client_id, client_secret=secret, resource=form.get("resource") or scope
    )


def token_answer(token: str, resource: str, *, lasts_seconds: int, expires_on: int) -> bytes:
    """A token, to whoever asked for it."""
    return _json(
        {
            "token_type": "Bearer",
            "expires_in": lasts_seconds,
            "ext_expires_in": lasts_seconds,
            "expires_on": str(expires_on),
            "resource": resource,
            "access_token": token,
        }
    )


def fault(error: str, description: str) -> bytes:
    """Why there is no token."""
    return _json({"error": error, "error_description": description})


def _form(content_type: str, body: bytes) -> dict[str, str]:
    if content_type.partition(";")[0].strip().lower() != FORM_TYPE:
        raise OauthRefusal("invalid_request", f"the body is to be {FORM_TYPE}")
    if len(body) > FORM_BYTES_MAX:
        raise OauthRefusal("invalid_request", f"the body is larger than {FORM_BYTES_MAX} bytes")
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=FIELDS_MAX,
        )
    except ValueError:
        # What exactly is wrong would repeat what was sent.
        raise OauthRefusal("invalid_request", "the body cannot be understood") from None
    form = dict(pairs)
    if len(form) != len(pairs):
        raise OauthRefusal("invalid_request", "a parameter is given more than once")
    return form


def _client(form: Mapping[str, str], authorization: str) -> tuple[str, str]:
    client_id, secret = form.get("client_id", ""), form.get("client_secret", "")
    if authorization:
        if secret:
            raise OauthRefusal("invalid_request", "the client's secret is given more than once")
        named = client_id
        client_id, secret = _basic(authorization)
        if named not in {"", client_id}:
            raise OauthRefusal("invalid_request", "two clients are named")
    if not client_id or not secret:
        raise OauthRefusal(
            "invalid_client", "client_id and client_secret are needed", HTTPStatus.UNAUTHORIZED
        )
    return client_id, secret


def _basic(authorization: str) -> tuple[str, str]:
    scheme, _, word = authorization.partition(" ")
    try:
        pair = base64.b64decode(word.strip(), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        pair = ""
    client_id, colon, secret = pair.partition(":")
    if scheme.lower() != "basic" or not colon:
        raise OauthRefusal(
            "invalid_client", "the Authorization header is no Basic one", HTTPStatus.UNAUTHORIZED
        )
    return unquote_plus(client_id), unquote_plus(secret)


def _year(api_version: str) -> int | None:
    found = _YEAR.match(api_version)
    return None if found is None else int(found[0])


def _json(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
