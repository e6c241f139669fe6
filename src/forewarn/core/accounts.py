"""What is known of a principal beyond its rights: its secrets, and whether it still counts.

An account has one secret, or two while a new one takes over from the old. A token remembers by the
number of which secret it was got, and is worth nothing once that secret is: so a secret taken
back, or a principal revoked, stops the tokens that are out at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from forewarn.core.rights import Principal
from forewarn.errors import Refused


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret's hash. Its number is never used again within its account."""

    number: int
    hash: str = field(repr=False)
    # From when on it is worth nothing; None: until it is replaced.
    ends_at: datetime | None = None

    def holds(self, now: datetime) -> bool:
        return self.ends_at is None or now < self.ends_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A principal and what it logs in with."""

    principal: Principal
    # The newest comes first.
    secrets: tuple[Secret, ...]
    created_at: datetime
    revoked_at: datetime | None = None

    def secrets_at(self, now: datetime) -> tuple[Secret, ...]:
        """The secrets that are worth something."""
        if self.revoked_at is not None:
            return ()
        return tuple(secret for secret in self.secrets if secret.holds(now))

    def honors(self, number: int, now: datetime) -> bool:
        """Whether a token still counts that was got by the secret of that number."""
        return any(secret.number == number for secret in self.secrets_at(now))


def opened(principal: Principal, secret_hash: str, now: datetime) -> Account:
    """A new account with one secret."""
    return Account(principal=principal, secrets=(Secret(1, secret_hash),), created_at=now)


def rotated(account: Account, secret_hash: str, now: datetime, keep_old: timedelta) -> Account:
    """The account with a new secret; its old one goes on for a while. Raises: Refused."""
    _insist_on_life(account)
    new = Secret(account.secrets[0].number + 1, secret_hash)
    if keep_old <= timedelta():
        return replace(account, secrets=(new,))
    # The newest one has no end yet.
    old = replace(account.secrets[0], ends_at=now + keep_old)
    return replace(account, secrets=(new, old))


def revoked(account: Account, now: datetime) -> Account:
    """The account, worth nothing from now on. Raises: Refused."""
    _insist_on_life(account)
    return replace(account, revoked_at=now)


def _insist_on_life(account: Account) -> None:
    if account.revoked_at is not None:
        raise Refused(f"{account.principal.name} was revoked: add a principal in its place")
