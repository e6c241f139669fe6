"""Accounts: the principals that are known, in the store and in memory.

Whoever calls is looked up in memory, which follows the store: by what this process commits at once,
and by the feed for what others commit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from typing import Final

from forewarn.core import accounts
from forewarn.core.accounts import Account
from forewarn.core.journal import Actor, Entry, Role, What
from forewarn.core.names import ScopeId
from forewarn.core.rights import Principal
from forewarn.errors import Conflict, Refused, Unknown
from forewarn.ports.clock import Clock
from forewarn.ports.ids import Ids
from forewarn.ports.secrets import Secrets
from forewarn.ports.store import Record, Store, Write
from forewarn.service.commits import commit, scanned
from forewarn.wire import principals as wire
from forewarn.wire import records

CONFLICTS_MAX: Final = 20


class Accounts:
    """Knows, adds, changes and revokes principals. Their secrets are told once, to who adds them."""

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        store: Store,
        secrets: Secrets,
        turn: AbstractContextManager[object] | None = None,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._store = store
        self._secrets = secrets
        # Where several threads commit, a lock: an old account never takes the place of a new one.
        self._turn = nullcontext() if turn is None else turn
        self._known: dict[str, tuple[int, Account]] = {}

    # -- what is known -----------------------------------------------------------------------

    def hear(self, record: Record) -> None:
        """Take note of an account as it is stored. Raises: Refused, Damaged."""
        assert record.value is not None, "an account is never deleted"
        self._note(wire.load(record.value), record.version)

    def read_all(self) -> None:
        """Take note of every account in the store. Raises: Unavailable."""
        for record in scanned(self._store, wire.PREFIX):
            self.hear(record)

    def known(self, principal_id: str) -> Account | None:
        """The account of that id, from memory."""
        found = self._known.get(principal_id.lower())
        return None if found is None else found[1]

    def all(self) -> tuple[Account, ...]:
        """Every account, revoked ones too, by name. Raises: Unavailable."""
        self.read_all()
        everybody = (account for _, account in list(self._known.values()))
        return tuple(
            sorted(everybody, key=lambda account: (account.principal.name, account.principal.id))
        )

    def find(self, word: str) -> Account:
        """The account that is meant, by its id or its name. Raises: Unknown, Refused, Unavailable."""
        everybody = self.all()
        for account in everybody:
            if account.principal.id == word.lower():
                return account
        named = [account for account in everybody if account.principal.name == word]
        # A name may be given again once whoever had it was revoked.
        found = [account for account in named if account.revoked_at is None] or named[-1:]
        if not found:
            raise Unknown(f"no principal {word[:80]}; `forewarn principal list` lists them")
        if len(found) > 1:
            ids = ", ".join(account.principal.id for account in found)
            raise Refused(f"several principals are called {word}: say which of {ids}")
        return found[0]

    def tenant(self) -> str:
        """The id that tells this installation from every other; made once. Raises: Unavailable."""
        while True:
            record = self._store.get([wire.TENANT_KEY])[wire.TENANT_KEY]
            if record.value is not None:
                return record.value.decode()
            made = Write(wire.TENANT_KEY, 0, self._ids.event_id().lower().encode())
            with suppress(Conflict):
                commit(self._store, self._ids.commit_id(), (made,), ())

    # -- what is changed ---------------------------------------------------------------------

    def add(self, asked: wire.NewPrincipal, actor: Actor) -> tuple[Account, str]:
        """Make a principal known; its secret. Raises: Malformed, Refused, Unavailable."""
        role = wire.checked_role(asked.role)
        principal = Principal(
            id=wire.checked_name(asked.id or self._ids.event_id(), "an id").lower(),
            name=wire.checked_name(asked.name, "a name"),
            role=role,
            groups=wire.checked_groups(role, asked.groups),
        )
        for account in self.all():
            if account.principal.name == principal.name and account.revoked_at is None:
                raise Refused(f"there is a principal {principal.name} already: choose another name")
        secret = self._secrets.make()
        return self.open(principal, secret, actor), secret

    def open(self, principal: Principal, secret: str, actor: Actor) -> Account:
        """Make a principal known that has its secret already. Raises: Refused, Unavailable."""
        account = accounts.opened(principal, self._secrets.hash(secret), self._clock.now())
        try:
            self._commit(account, 0, What.PRINCIPAL_ADDED, _described(principal), actor)
        except Conflict:
            raise Refused(
                f"the id {principal.id} was given before, and is never given twice: choose another"
            ) from None
        return account

    def rotate(self, word: str, keep_old: timedelta, actor: Actor) -> tuple[Account, str]:
        """Give a principal a new secret. Raises: Unknown, Refused, Unavailable."""
        secret = self._secrets.make()
        hashed = self._secrets.hash(secret)
        account = self._amend(
            word,
            lambda account: accounts.rotated(account, hashed, self._clock.now(), keep_old),
            What.ROTATED,
            f", its old one goes on for {int(keep_old.total_seconds())} s" if keep_old else "",
            actor,
        )
        return account, secret

    def revoke(self, word: str, actor: Actor) -> Account:
        """Let a principal be worth nothing, at once. Raises: Unknown, Refused, Unavailable."""

        def decide(account: Account) -> Account:
            is_last = not any(
                other.principal.role is Role.OPERATOR
                and other.revoked_at is None
                and other.principal.id != account.principal.id
                for other in self.all()
            )
            if is_last and account.principal.role is Role.OPERATOR:
                raise Refused(f"{account.principal.name} is the last operator: add another first")
            return accounts.revoked(account, self._clock.now())

        return self._amend(word, decide, What.PRINCIPAL_REVOKED, "", actor)

    def _amend(
        self,
        word: str,
        decide: Callable[[Account], Account],
        what: What,
        note: str,
        actor: Actor,
    ) -> Account:
        for _ in range(CONFLICTS_MAX):
            account = self.find(word)
            version, _ = self._known[account.principal.id]
            amended = decide(account)
            with suppress(Conflict):
                self._commit(amended, version, what, _described(account.principal) + note, actor)
                return amended
        raise Conflict([wire.key(word)])

    def _commit(self, account: Account, expected: int, what: What, note: str, actor: Actor) -> None:
        entry = Entry(at=self._clock.now(), scope=ScopeId(""), what=what, actor=actor, note=note)
        key = wire.key(account.principal.id)
        write = Write(key, expected, wire.dump(account))
        versions = commit(
            self._store, self._ids.commit_id(), (write,), (records.dump_entry(entry),)
        )
        self._note(account, versions[key])

    def _note(self, account: Account, version: int) -> None:
        with self._turn:
            known, _ = self._known.get(account.principal.id, (0, None))
            if known < version:
                self._known[account.principal.id] = (version, account)


def _described(principal: Principal) -> str:
    groups = f" of {', '.join(principal.groups)}" if principal.groups else ""
    return f"{principal.name} ({principal.id}), {principal.role.value}{groups}"
