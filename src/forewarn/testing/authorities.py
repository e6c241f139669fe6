"""Trust for tests of what lies behind it: an authority that knows one token, and ready TLS."""

from __future__ import annotations

import secrets
import ssl
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from forewarn.clocks import SystemClock
from forewarn.core.journal import Role
from forewarn.core.rights import Principal
from forewarn.trust.vault import Vault

OPERATOR = Principal(id="operator", name="operator", role=Role.OPERATOR)


class Tokened:
    """An authority that knows one token, and takes its bearer for an operator."""

    def __init__(self, token: str) -> None:
        assert token, "an empty token would let everybody in"
        self._token = token.encode()

    def principal(self, bearer: str) -> Principal | None:
        """Whom this token was given to."""
        # Compared in constant time, so that a guess does not tell how much of it is right.
        return OPERATOR if secrets.compare_digest(bearer.encode(), self._token) else None

    def note_refusal(self, principal: Principal | None, address: str, what: str) -> None:
        """Nothing is kept of who was turned away."""


@dataclass(frozen=True, slots=True)
class Contexts:
    """A server's side of TLS, that of a client who trusts it, and the certificate it trusts."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    authority: bytes


@cache
def local_tls() -> Contexts:
    """TLS for loopback, with a certificate that was made for this process."""
    with TemporaryDirectory() as directory:
        vault = Vault(Path(directory))
        vault.keep_server(("localhost", "127.0.0.1", "::1"), SystemClock().now())
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(vault.server)
        client = ssl.create_default_context(cafile=vault.authority)
        return Contexts(server, client, vault.authority.read_bytes())
