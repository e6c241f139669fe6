"""A secret in, a token out; and what a token is worth."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.core.journal import Role, What
from forewarn.service import suspicion
from forewarn.service.logins import TOKEN_LASTS, Denied, Granted, TooSoon
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import Fault, FaultyStore
from forewarn.testing.worlds import OPERATOR, World
from forewarn.wire.principals import NewPrincipal
from forewarn.wiring.directories import DataDirectory
from forewarn.wiring.trust import Doorkeeper, TrustSettings, keep_door

HERE, THERE = "10.0.0.1", "10.0.0.2"
HOUR = timedelta(hours=1)


class House:
    """A service with a door, and a reader who may come in."""

    def __init__(self, path: Path) -> None:
        blank = World()
        self.store = FaultyStore(MemoryStore(blank.clock))
        self.world = World(clock=blank.clock, store=self.store)
        self.path = path
        self.door = self.opened(self.world)
        account, self.secret = self.door.accounts.add(
            NewPrincipal(name="dashboard", role="reader"), OPERATOR
        )
        self.principal = account.principal

    def opened(self, world: World) -> Doorkeeper:
        return keep_door(world.parts, DataDirectory(self.path), TrustSettings(), "none")

    def token(self, secret: str | None = None) -> str:
        granted = self.door.logins.login(self.principal.id, secret or self.secret, HERE)
        assert isinstance(granted, Granted)
        return granted.token

    def lines(self, what: What) -> list[str]:
        return [entry.note for entry in self.world.journal() if entry.what is what]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_the_right_secret_gets_a_token_that_stands_for_its_principal(house: House) -> None:
    granted = house.door.logins.login(house.principal.id.upper(), house.secret, HERE)

    assert isinstance(granted, Granted)
    assert house.door.logins.principal(granted.token) == house.principal
    assert granted.token not in repr(granted)


def test_a_token_is_over_after_a_while(house: House) -> None:
    token = house.token()

    house.world.clock.advance(TOKEN_LASTS - timedelta(seconds=1))
    assert house.door.logins.principal(token) == house.principal
    house.world.clock.advance(timedelta(seconds=1))
    assert house.door.logins.principal(token) is None


def test_a_revoked_principal_stops_at_once(house: House) -> None:
    token = house.token()

    house.door.accounts.revoke("dashboard", OPERATOR)

    assert house.door.logins.principal(token) is None
    assert house.door.logins.login(house.principal.id, house.secret, HERE) == Denied()
    assert house.lines(What.LOGIN_REFUSED) == ["the principal was revoked"]


def test_a_principal_that_another_service_revokes_stops_here_too(house: House) -> None:
    other_world = World(clock=house.world.clock, store=house.store)
    other = house.opened(other_world)
    token = house.token()
    assert other.logins.principal(token) == house.principal

    house.door.accounts.revoke("dashboard", OPERATOR)
    other_world.parts.feed.follow(100)

    assert other.logins.principal(token) is None


def test_a_rotated_secret_stops_and_so_do_its_tokens(house: House) -> None:
    token = house.token()

    _, new = house.door.accounts.rotate("dashboard", timedelta(), OPERATOR)

    assert house.door.logins.principal(token) is None
    assert house.door.logins.login(house.principal.id, house.secret, HERE) == Denied()
    assert house.door.logins.principal(house.token(new)) == house.principal


def test_a_secret_that_is_kept_for_a_while_goes_on_for_that_while(house: House) -> None:
    _, new = house.door.accounts.rotate("dashboard", timedelta(minutes=30), OPERATOR)
    old_token, new_token = house.token(), house.token(new)

    house.world.clock.advance(timedelta(minutes=29))
    assert house.door.logins.principal(old_token) == house.principal
    house.world.clock.advance(timedelta(minutes=1))
    assert house.door.logins.principal(old_token) is None
    assert house.door.logins.principal(new_token) == house.principal
    assert house.door.logins.login(house.principal.id, house.secret, HERE) == Denied()


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "x" * 5000, "\xff"])
def test_what_is_no_token_stands_for_nobody(token: str, house: House) -> None:
    assert house.door.logins.principal(token) is None


def test_a_token_for_somebody_who_is_not_known_stands_for_nobody(house: House) -> None:
    granted = house.door.logins.login(house.principal.id, house.secret, HERE)
    assert isinstance(granted, Granted)

    token = house.door.tokens.issue(replace(granted.claims, principal="nobody"))

    assert house.door.logins.principal(token) is None


def test_wrong_secrets_are_denied_slowed_down_and_on_record(house: House) -> None:
    for _ in range(suspicion.TRIES_OF_ONE):
        assert house.door.logins.login(house.principal.id, "wrong", HERE) == Denied()

    # Not even the right one is looked at now.
    assert house.door.logins.login(house.principal.id, house.secret, HERE) == TooSoon(
        suspicion.WAIT_MIN
    )
    # Elsewhere it is.
    assert isinstance(house.door.logins.login(house.principal.id, house.secret, THERE), Granted)
    house.world.clock.advance(suspicion.WAIT_MIN)
    assert isinstance(house.door.logins.login(house.principal.id, house.secret, HERE), Granted)
    assert house.lines(What.LOGIN_REFUSED) == [
        *["wrong secret"] * suspicion.TRIES_OF_ONE,
        "too soon after wrong secrets",
    ]


def test_an_id_that_nobody_has_is_not_written_down(house: House) -> None:
    """It may be a secret in the wrong place."""
    assert house.door.logins.login(house.secret, "dashboard", HERE) == Denied()

    assert house.lines(What.LOGIN_REFUSED) == ["nobody has that id"]
    entry = house.world.journal()[-1]
    assert (entry.actor.role, entry.actor.address) == (Role.STRANGER, HERE)


def test_a_refused_call_is_on_record(house: House) -> None:
    house.door.logins.note_refusal(house.principal, HERE, "POST /x: a reader")
    house.door.logins.note_refusal(None, HERE, "GET /x: no valid token")

    first, second = house.world.journal()[-2:]
    assert (first.what, first.actor.name, first.note) == (
        What.CALL_REFUSED,
        "dashboard",
        "POST /x: a reader",
    )
    assert (second.actor.role, second.actor.name) == (Role.STRANGER, "stranger")


def test_a_store_that_is_away_keeps_nobody_from_being_denied_or_let_in(house: House) -> None:
    house.store.spoil(Fault.AWAY)
    assert house.door.logins.login(house.principal.id, "wrong", HERE) == Denied()

    house.store.spoil(Fault.AWAY)
    assert isinstance(house.door.logins.login(house.principal.id, house.secret, HERE), Granted)
