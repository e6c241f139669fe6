"""Logins: a secret in, a token out; and whom a token stands for."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Final

from forewarn.core import rights
from forewarn.core.accounts import Account, Secret
from forewarn.core.journal import Actor, Role, What
from forewarn.core.rights import Principal
from forewarn.errors import Unavailable
from forewarn.ports.clock import Clock
from forewarn.ports.secrets import Claims, Secrets, Tokens
from forewarn.service.accounts import Accounts
from forewarn.service.refusals import Refusals
from forewarn.service.suspicion import Suspicion

TOKEN_LASTS: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Granted:
    """A token, and what it says."""

    token: str = field(repr=False)
    claims: Claims


@dataclass(frozen=True, slots=True)
class Denied:
    """Nobody is known by that id and secret."""


@dataclass(frozen=True, slots=True)
class TooSoon:
    """Too many were wrong: try again after a while."""

    wait: timedelta


class Logins:
    """An authority (`ports.trust`) whose tokens are got by secrets."""

    def __init__(  # noqa: PLR0913 - what it stands on, by name
        self,
        *,
        clock: Clock,
        accounts: Accounts,
        secrets: Secrets,
        tokens: Tokens,
        refusals: Refusals,
        suspicion: Suspicion,
        token_lasts: timedelta = TOKEN_LASTS,
    ) -> None:
        self._clock = clock
        self._accounts = accounts
        self._secrets = secrets
        self._refusals = refusals
        self._suspicion = suspicion
        self._token_lasts = token_lasts
        self.tokens = tokens

    def login(self, client_id: str, secret: str, address: str) -> Granted | Denied | TooSoon:
        """Give a token to whoever knows a principal's secret. Raises: Unavailable."""
        account = self._accounts.known(client_id)
        suspect = "" if account is None else account.principal.id
        wait = self._suspicion.wait(suspect, address)
        if wait:
            self._note(account, address, "too soon after wrong secrets")
            return TooSoon(wait)
        right = self._right_secret(account, secret)
        if account is None or right is None:
            self._suspicion.note_failure(suspect, address)
            self._note(account, address, _fault(account))
            return Denied()
        self._suspicion.note_success(suspect, address)
        now = self._clock.now()
        claims = Claims(
            principal=account.principal.id,
            secret=right.number,
            issued_at=now,
            expires_at=now + self._token_lasts,
        )
        return Granted(self.tokens.issue(claims), claims)

    def principal(self, bearer: str) -> Principal | None:
        """Whom this token was given to; None if it is not ours, is over, or was taken back."""
        now = self._clock.now()
        claims = self.tokens.read(bearer, now)
        if claims is None:
            return None
        account = self._accounts.known(claims.principal)
        if account is None or not account.honors(claims.secret, now):
            return None
        return account.principal

    def note_refusal(self, principal: Principal | None, address: str, what: str) -> None:
        """Write down that somebody was refused. Raises: Unavailable."""
        self._refusals.note(What.CALL_REFUSED, _actor(principal, address), what)

    def _right_secret(self, account: Account | None, given: str) -> Secret | None:
        held = () if account is None else account.secrets_at(self._clock.now())
        for secret in held:
            if self._secrets.is_secret(given, secret.hash):
                return secret
        if not held:
            # It takes as long to be told that nobody has that id as that its secret is wrong.
            self._secrets.is_secret(given, self._hash_of_nobody)
        return None

    @cached_property
    def _hash_of_nobody(self) -> str:
        return self._secrets.hash(self._secrets.make())

    def _note(self, account: Account | None, address: str, note: str) -> None:
        principal = None if account is None else account.principal
        # Nobody is kept from being refused by a store that is away.
        with suppress(Unavailable):
            self._refusals.note(What.LOGIN_REFUSED, _actor(principal, address), note)


def _fault(account: Account | None) -> str:
    # An id that nobody has is not written down: it may be a secret in the wrong place.
    if account is None:
        return "nobody has that id"
    return "wrong secret" if account.revoked_at is None else "the principal was revoked"


def _actor(principal: Principal | None, address: str) -> Actor:
    if principal is None:
        return Actor(Role.STRANGER, "stranger", address)
    return rights.actor(principal, address)
