"""Tokens: what we sign, and all that we do not read."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from forewarn.ports.secrets import Claims
from forewarn.trust import keys
from forewarn.trust.tokens import JwtTokens

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
CLAIMS = Claims(principal="me", secret=3, issued_at=NOON, expires_at=NOON + timedelta(hours=1))
PEM = keys.make()
TENANT = "cfa32b53-ccd1-4b36-964a-149baf2b8ce5"
TOKENS = JwtTokens(PEM, TENANT)


def signed(members: Mapping[str, object], pem: bytes = PEM) -> str:
    """A token that says what ours does, but for some members; None leaves one out."""
    said = jwt.decode(TOKENS.issue(CLAIMS), options={"verify_signature": False})
    said.update(members)
    kept = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(kept, keys.load(pem), algorithm="ES256")


def test_what_was_signed_is_read() -> None:
    assert TOKENS.read(TOKENS.issue(CLAIMS), NOON) == CLAIMS
    # A process that comes later has the same key.
    assert JwtTokens(PEM, TENANT).read(TOKENS.issue(CLAIMS), NOON) == CLAIMS
    assert TOKENS.read(signed({}), NOON) == CLAIMS


def test_a_token_has_the_members_that_clients_of_azure_look_at() -> None:
    header, body, signature = TOKENS.issue(CLAIMS).split(".")

    said = json.loads(base64.urlsafe_b64decode(body + "=="))
    assert (said["tid"], said["oid"], said["appid"]) == (TENANT, "me", "me")
    assert (said["exp"] - said["iat"], said["exp"]) == (3600, int(CLAIMS.expires_at.timestamp()))
    assert (
        said["jti"] != jwt.decode(TOKENS.issue(CLAIMS), options={"verify_signature": False})["jti"]
    )
    (public,) = TOKENS.public_keys()
    assert json.loads(base64.urlsafe_b64decode(header + "=="))["kid"] == public["kid"]
    assert len(base64.urlsafe_b64decode(signature + "==")) == 64


def test_others_can_check_our_tokens_by_the_public_key() -> None:
    (public,) = TOKENS.public_keys()
    key = jwt.PyJWK(dict(public)).key

    said = jwt.decode(
        TOKENS.issue(CLAIMS),
        key,
        algorithms=["ES256"],
        audience=f"urn:forewarn:{TENANT}:control",
        options={"verify_exp": False, "verify_iat": False, "verify_nbf": False},
    )

    assert said["oid"] == "me"
    assert "d" not in public


def test_a_token_ends_on_time() -> None:
    token = TOKENS.issue(CLAIMS)

    assert TOKENS.read(token, CLAIMS.expires_at - timedelta(seconds=1)) == CLAIMS
    assert TOKENS.read(token, CLAIMS.expires_at) is None
    # The clock was set back since: it is ours all the same.
    assert TOKENS.read(token, NOON - timedelta(days=1)) == CLAIMS


@pytest.mark.parametrize(
    "members",
    [
        {"iss": "urn:forewarn:other"},
        {"aud": "urn:forewarn:other:control"},
        {"tid": "other"},
        {"epoch": "x"},
        {"exp": "x"},
        {"exp": 10**15},
        *({name: None} for name in ("iss", "aud", "tid", "oid", "epoch", "iat", "exp", "jti")),
    ],
    ids=str,
)
def test_a_token_that_says_something_else_is_not_read(members: Mapping[str, object]) -> None:
    assert TOKENS.read(signed(members), NOON) is None


def test_a_token_of_another_key_another_tenant_or_no_signature_is_not_read() -> None:
    good = TOKENS.issue(CLAIMS)
    header, body, signature = good.split(".")
    said = jwt.decode(good, options={"verify_signature": False})
    bent = (
        base64.urlsafe_b64encode(json.dumps({**said, "oid": "admin"}).encode())
        .rstrip(b"=")
        .decode()
    )

    assert JwtTokens(keys.make(), TENANT).read(good, NOON) is None
    assert JwtTokens(PEM, "other").read(good, NOON) is None
    assert TOKENS.read(signed({}, keys.make()), NOON) is None
    assert TOKENS.read(jwt.encode(said, "", algorithm="none"), NOON) is None
    assert TOKENS.read(jwt.encode(said, "x" * 64, algorithm="HS256"), NOON) is None
    for token in (
        f"{header}.{bent}.{signature}",
        f"{header}.{body}.",
        good[:-4],
        good + "x" * 5000,
    ):
        assert TOKENS.read(token, NOON) is None


def test_what_a_token_is_loaded_for_can_be_loaded_before() -> None:
    tokens = JwtTokens(PEM, TENANT)
    tokens.warm_up()

    assert tokens.read(tokens.issue(replace(CLAIMS, secret=4)), NOON) == replace(CLAIMS, secret=4)


def test_a_key_of_another_kind_is_none() -> None:
    other = ed25519.Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )

    with pytest.raises(ValueError, match="P-256"):
        keys.load(other)
