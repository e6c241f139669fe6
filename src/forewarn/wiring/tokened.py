"""The one token of a data directory, which makes its bearer an operator."""

from __future__ import annotations

import secrets

from forewarn.core.journal import Role
from forewarn.core.rights import Principal

OPERATOR = Principal(id="operator", name="operator", role=Role.OPERATOR)


class Tokened:
    """An authority that knows one token."""

    def __init__(self, token: str) -> None:
        assert token, "an empty token would let everybody in"
        self._token = token.encode()

    def principal(self, bearer: str) -> Principal | None:
        """Whom this token was given to."""
        # Compared in constant time, so that a guess does not tell how much of it is right.
        return OPERATOR if secrets.compare_digest(bearer.encode(), self._token) else None

    def note_refusal(self, principal: Principal | None, address: str, what: str) -> None:
        """Nothing is kept of who was turned away."""
