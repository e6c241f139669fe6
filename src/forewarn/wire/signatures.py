"""How deliveries are signed: the Standard Webhooks scheme, with HMAC-SHA256."""

from __future__ import annotations

import base64
import hmac
from datetime import datetime
from typing import Final

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the prefix is no secret
_VERSION: Final = "v1"


def sign(secret: bytes, message: str, at: datetime, body: bytes) -> tuple[tuple[str, str], ...]:
    """The three headers that name, date and sign a message."""
    timestamp = str(int(at.timestamp()))
    content = f"{message}.{timestamp}.".encode() + body
    digest = base64.b64encode(hmac.digest(secret, content, "sha256")).decode()
    return (
        ("webhook-id", message),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", f"{_VERSION},{digest}"),
    )


def dump_secret(secret: bytes) -> str:
    """A secret as receivers are given it."""
    return SECRET_PREFIX + base64.b64encode(secret).decode()
