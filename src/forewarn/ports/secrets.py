"""Secrets that are kept as hashes, and tokens that are signed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a token says: for whom it is, by which of its secrets, and from when until when."""

    principal: str
    secret: int
    issued_at: datetime
    expires_at: datetime


class Secrets(Protocol):
    """Makes secrets, and knows them again by a hash that does not give them away."""

    def make(self) -> str:
        """A new secret that nobody can guess."""
        ...

    def hash(self, secret: str) -> str:
        """What to keep of a secret; slow on purpose. Raises: Unavailable if too many ask."""
        ...

    def is_secret(self, secret: str, hashed: str) -> bool:
        """Whether a hash was made of this secret; as slow. Raises: Unavailable if too many ask."""
        ...


class Tokens(Protocol):
    """Signs what a token says, and reads what we signed."""

    def issue(self, claims: Claims) -> str:
        """A token that says this."""
        ...

    def read(self, token: str, now: datetime) -> Claims | None:
        """What a token says; None if we did not sign it so, for us, or if it is over."""
        ...

    def public_keys(self) -> tuple[Mapping[str, str], ...]:
        """The keys by which others can check our tokens, each as a JSON Web Key."""
        ...
