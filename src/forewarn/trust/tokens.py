"""Tokens as signed JSON Web Tokens, in the form that Azure's clients know."""

from __future__ import annotations

import hashlib
import json
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from forewarn.ports.secrets import Claims

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import (
        EllipticCurvePrivateKey,
        EllipticCurvePublicKey,
    )

ALGORITHM: Final = "ES256"
# Ours have less than 1,000 characters.
LENGTH_MAX: Final = 4096

_REQUIRED: Final = ("iss", "aud", "tid", "oid", "appid", "epoch", "iat", "nbf", "exp", "jti")


class JwtTokens:
    """Signs tokens with one key, and reads those that it signed."""

    def __init__(self, key_pem: bytes, tenant: str) -> None:
        self._pem = key_pem
        self._tenant = tenant
        # The same under every address of the service: it may be called localhost today.
        self._issuer = f"urn:forewarn:{tenant}"
        self._audience = f"{self._issuer}:control"

    def issue(self, claims: Claims) -> str:
        """A token that says this."""
        import jwt  # noqa: PLC0415 - see the room's law

        said: dict[str, object] = {
            "iss": self._issuer,
            "aud": self._audience,
            "tid": self._tenant,
            "oid": claims.principal,
            "sub": claims.principal,
            "appid": claims.principal,
            "epoch": claims.secret,
            "iat": _seconds(claims.issued_at),
            "nbf": _seconds(claims.issued_at),
            "exp": _seconds(claims.expires_at),
            "jti": secrets.token_urlsafe(16),
            "ver": "1.0",
        }
        headers = {"kid": self._public["kid"]}
        return jwt.encode(said, self._key, algorithm=ALGORITHM, headers=headers)

    def read(self, token: str, now: datetime) -> Claims | None:
        """What a token says; None if we did not sign it so, for us, or if it is over."""
        if not 0 < len(token) <= LENGTH_MAX:
            return None
        import jwt  # noqa: PLC0415 - see the room's law

        try:
            said = jwt.decode(
                token,
                self._public_key,
                # One algorithm: what a token says of its own does not count.
                algorithms=[ALGORITHM],
                issuer=self._issuer,
                audience=self._audience,
                # Time is our clock's to tell. A token from before the clock was set back was
                # signed by us all the same.
                options={
                    "require": list(_REQUIRED),
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except jwt.InvalidTokenError:
            return None
        claims = _claims(said)
        if claims is None or said["tid"] != self._tenant or now >= claims.expires_at:
            return None
        return claims

    def public_keys(self) -> tuple[Mapping[str, str], ...]:
        """The key by which others can check our tokens, as a JSON Web Key."""
        return (self._public,)

    def warm_up(self) -> None:
        """Load what the first token would otherwise wait for."""
        import jwt  # noqa: F401, PLC0415 - see the room's law

        _ = self._public

    @cached_property
    def _key(self) -> EllipticCurvePrivateKey:
        from forewarn.trust.keys import load  # noqa: PLC0415 - see the room's law

        return load(self._pem)

    @cached_property
    def _public_key(self) -> EllipticCurvePublicKey:
        return self._key.public_key()

    @cached_property
    def _public(self) -> Mapping[str, str]:
        point = self._public_key.public_numbers()
        # The members of RFC 7638, in its order: their hash names the key.
        fields = {
            "crv": "P-256",
            "kty": "EC",
            "x": _base64url(point.x.to_bytes(32, "big")),
            "y": _base64url(point.y.to_bytes(32, "big")),
        }
        thumbprint = hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode()).digest()
        return {**fields, "kid": _base64url(thumbprint), "use": "sig", "alg": ALGORITHM}


class PassingTokens(JwtTokens):
    """Tokens of a key that nobody keeps; it is made for the first of them."""

    def __init__(self, tenant: str) -> None:
        super().__init__(b"", tenant)

    @cached_property
    def _key(self) -> EllipticCurvePrivateKey:
        from forewarn.trust import keys  # noqa: PLC0415 - see the room's law

        return keys.load(keys.make())


def _claims(said: Mapping[str, Any]) -> Claims | None:
    """What a token of ours says; None if that makes no sense, which ours do."""
    try:
        return Claims(
            principal=str(said["oid"]),
            secret=int(said["epoch"]),
            issued_at=datetime.fromtimestamp(int(said["iat"]), UTC),
            expires_at=datetime.fromtimestamp(int(said["exp"]), UTC),
        )
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _seconds(instant: datetime) -> int:
    return int(instant.timestamp())


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
