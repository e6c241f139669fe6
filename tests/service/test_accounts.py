"""Principals: added, rotated, revoked, each with its line in the journal."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.accounts import Account
from forewarn.core.journal import What
from forewarn.errors import Conflict, Malformed, OutcomeUnknown, Refused, Unknown
from forewarn.ports.store import Cursor
from forewarn.service import commits
from forewarn.service.accounts import CONFLICTS_MAX, Accounts
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import Fault, FaultyStore
from forewarn.testing.worlds import OPERATOR, World
from forewarn.trust.secrets import Argon2Secrets
from forewarn.wire import principals as wire
from forewarn.wire.principals import NewPrincipal

HOUR = timedelta(hours=1)
READER = NewPrincipal(name="dashboard", role="reader")


class Registry:
    """Accounts over a store that can be told to fail."""

    def __init__(self) -> None:
        blank = World()
        self.store = FaultyStore(MemoryStore(blank.clock))
        self.world = World(clock=blank.clock, store=self.store)
        self.accounts = self.more()

    def more(self) -> Accounts:
        """Those of another service over the same store."""
        world = World(clock=self.world.clock, store=self.store)
        made = Accounts(world.clock, world.parts.ids, self.store, Argon2Secrets())
        world.parts.feed.hear(wire.PREFIX, made.hear)
        return made

    def add(self, name: str = "dashboard", role: str = "reader", **members: object) -> Account:
        asked = NewPrincipal(name=name, role=role, **members)  # type: ignore[arg-type]
        return self.accounts.add(asked, OPERATOR)[0]


def test_whoever_is_added_is_known_stored_and_on_record() -> None:
    registry = Registry()

    account, secret = registry.accounts.add(
        NewPrincipal(name="shop", role="owner", groups=("Shop", "b")), OPERATOR
    )

    assert registry.accounts.known(account.principal.id.upper()) == account
    assert registry.more().all() == (account,)
    assert account.principal.groups == ("shop", "b")
    (entry,) = registry.world.journal()
    assert (entry.what, entry.actor) == (What.PRINCIPAL_ADDED, OPERATOR)
    assert entry.note == f"shop ({account.principal.id}), owner of shop, b"
    stored = b"".join(
        record.value or b"" for record in commits.scanned(registry.store, wire.PREFIX)
    )
    assert secret.encode() not in stored


def test_an_id_may_be_chosen_once_and_never_again() -> None:
    registry = Registry()
    registry.add(id="Dash-1")
    registry.accounts.add(NewPrincipal(name="other", role="operator"), OPERATOR)
    registry.accounts.revoke("dash-1", OPERATOR)

    with pytest.raises(Refused, match="never given twice"):
        registry.add(name="new", id="dash-1")
    with pytest.raises(Malformed, match="an id is"):
        registry.add(name="new", id="a/b")


def test_a_name_is_given_to_one_at_a_time() -> None:
    registry = Registry()
    first = registry.add()

    with pytest.raises(Refused, match="already"):
        registry.add()
    registry.accounts.revoke("dashboard", OPERATOR)
    assert registry.accounts.find("dashboard").principal.id == first.principal.id
    second = registry.add()

    assert registry.accounts.find("dashboard").principal == second.principal
    assert registry.accounts.find(first.principal.id).principal == first.principal


def test_two_that_were_given_one_name_at_once_are_told_apart_by_id() -> None:
    registry = Registry()
    first = registry.add()
    other = registry.more()
    account = other.open(replace(first.principal, id="second"), "s3cret", OPERATOR)

    with pytest.raises(Refused, match="say which of"):
        registry.accounts.find("dashboard")
    assert registry.accounts.find("second") == account


def test_nobody_is_unknown() -> None:
    with pytest.raises(Unknown, match="forewarn principal list"):
        Registry().accounts.find("nobody")


def test_a_rotation_gives_a_new_secret_and_says_so() -> None:
    registry = Registry()
    registry.add()

    account, secret = registry.accounts.rotate("dashboard", timedelta(), OPERATOR)
    both, again = registry.accounts.rotate("dashboard", HOUR, OPERATOR)

    assert secret != again
    assert [held.number for held in account.secrets] == [2]
    assert [held.number for held in both.secrets] == [3, 2]
    entries = registry.world.journal()[1:]
    assert [entry.what for entry in entries] == [What.ROTATED] * 2
    assert "its old one goes on for 3600 s" in entries[1].note
    assert "its old" not in entries[0].note


def test_the_last_operator_stays() -> None:
    registry = Registry()
    registry.add("ann", "operator")
    registry.add("dashboard", "reader")

    with pytest.raises(Refused, match="ann is the last operator"):
        registry.accounts.revoke("ann", OPERATOR)
    registry.add("bob", "operator")
    registry.accounts.revoke("ann", OPERATOR)
    with pytest.raises(Refused, match="bob is the last operator"):
        registry.accounts.revoke("bob", OPERATOR)
    assert registry.accounts.revoke("dashboard", OPERATOR).revoked_at is not None
    assert registry.world.journal()[-1].what is What.PRINCIPAL_REVOKED


def test_whoever_is_overtaken_decides_again() -> None:
    registry = Registry()
    registry.add()

    registry.store.spoil(Fault.CONFLICT)
    account, _ = registry.accounts.rotate("dashboard", timedelta(), OPERATOR)
    assert registry.accounts.known(account.principal.id) == account
    registry.store.spoil(*[Fault.CONFLICT] * CONFLICTS_MAX)
    with pytest.raises(Conflict):
        registry.accounts.rotate("dashboard", timedelta(), OPERATOR)


def test_a_commit_whose_answer_was_lost_is_repeated_and_took_effect_once() -> None:
    registry = Registry()

    registry.store.spoil(Fault.LOST_AFTER)
    registry.add()
    assert len(registry.world.journal()) == 1
    registry.store.spoil(*[Fault.LOST_BEFORE] * (commits.REPEATS_MAX + 1))
    with pytest.raises(OutcomeUnknown):
        registry.add("other")


def test_an_old_account_never_takes_the_place_of_a_new_one() -> None:
    registry = Registry()
    registry.add()
    key = wire.key(registry.accounts.all()[0].principal.id)
    old = registry.store.get([key])[key]
    new, _ = registry.accounts.rotate("dashboard", timedelta(), OPERATOR)

    registry.accounts.hear(old)

    assert registry.accounts.known(new.principal.id) == new


def test_a_tenant_is_made_once_even_if_two_make_it() -> None:
    registry = Registry()
    registry.store.spoil(Fault.CONFLICT)

    tenant = registry.accounts.tenant()

    assert tenant == registry.accounts.tenant() == registry.more().tenant()
    assert len(tenant) == 36


def test_the_feed_tells_of_accounts_that_others_change() -> None:
    registry = Registry()
    account = registry.add()
    world = World(clock=registry.world.clock, store=registry.store)
    other = Accounts(world.clock, world.parts.ids, registry.store, Argon2Secrets())
    world.parts.feed.hear(wire.PREFIX, other.hear)
    world.parts.load()
    assert other.known(account.principal.id) == account

    changed, _ = registry.accounts.rotate("dashboard", timedelta(), OPERATOR)
    assert other.known(account.principal.id) == account
    world.parts.feed.follow(100)
    assert other.known(account.principal.id) == changed


def test_the_feed_reads_all_accounts_again_where_its_place_was_pruned() -> None:
    registry = Registry()
    account = registry.add()
    world = World(clock=registry.world.clock, store=registry.store)
    other = Accounts(world.clock, world.parts.ids, registry.store, Argon2Secrets())
    world.parts.feed.hear(wire.PREFIX, other.hear)
    changed, _ = registry.accounts.rotate("dashboard", timedelta(), OPERATOR)
    registry.accounts.rotate("dashboard", HOUR, OPERATOR)
    registry.store.prune(registry.store.changes(Cursor(""), 100)[-1].cursor)

    world.parts.feed.follow(100)

    known = other.known(account.principal.id)
    assert known is not None
    assert known.secrets[0].number == changed.secrets[0].number + 1


def test_scans_go_on_from_page_to_page() -> None:
    registry = Registry()
    for number in range(3):
        registry.add(f"p{number}")

    found = list(commits.scanned(registry.store, wire.PREFIX, page=2))

    assert len(found) == 3
