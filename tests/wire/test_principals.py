"""Principals as they are stored, asked for and shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from forewarn.core import accounts
from forewarn.core.journal import Role
from forewarn.core.rights import Principal
from forewarn.errors import Damaged, Malformed, Refused
from forewarn.wire import principals as wire

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
OWNER = Principal(id="id", name="shop", role=Role.OWNER, groups=("shop",))
ACCOUNT = accounts.opened(OWNER, "a-hash", NOON)


def test_an_account_comes_back_as_it_was() -> None:
    later = accounts.revoked(accounts.rotated(ACCOUNT, "b", NOON, timedelta(hours=1)), NOON)

    for account in (ACCOUNT, later):
        assert wire.load(wire.dump(account)) == account


def test_an_account_of_another_format_is_for_another_forewarn() -> None:
    with pytest.raises(Refused, match="format 2"):
        wire.load(b'{"format": 2}')


@pytest.mark.parametrize("value", [b"", b"{}", b'{"format": 1}', b"\xff", b"[]"])
def test_what_is_no_account_is_damaged(value: bytes) -> None:
    with pytest.raises(Damaged, match="restore a backup"):
        wire.load(value)


def test_an_account_of_a_machine_is_damaged() -> None:
    with pytest.raises(Damaged):
        wire.load(wire.dump(ACCOUNT).replace(b'"owner"', b'"guest"'))


def test_ids_ignore_case() -> None:
    assert wire.key("ABC") == wire.key("abc") == "principal/abc"


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "é", "x" * 65, "a\n"])
def test_a_name_is_a_plain_word(name: str) -> None:
    with pytest.raises(Malformed, match="a name is up to 64"):
        wire.checked_name(name, "a name")


def test_a_plain_word_is_a_name() -> None:
    assert wire.checked_name("shop-team.2", "a name") == "shop-team.2"


def test_a_role_is_one_that_can_be_given() -> None:
    assert wire.checked_role("owner") is Role.OWNER
    for word in ("guest", "service", "stranger", "Owner", ""):
        with pytest.raises(Malformed, match="reader, owner, operator"):
            wire.checked_role(word)


def test_groups_are_kept_once_in_lower_case() -> None:
    assert wire.checked_groups(Role.OWNER, ["Shop", "shop", "b"]) == ("shop", "b")
    assert wire.checked_groups(Role.READER, []) == ()
    assert wire.checked_groups(Role.OPERATOR, []) == ()


@pytest.mark.parametrize(
    ("role", "groups"),
    [(Role.OWNER, ()), (Role.OPERATOR, ("shop",)), (Role.OWNER, ("a/b",)), (Role.READER, ("",))],
)
def test_groups_go_with_the_role(role: Role, groups: tuple[str, ...]) -> None:
    with pytest.raises(Malformed):
        wire.checked_groups(role, groups)


def test_what_is_shown_has_no_secret() -> None:
    account = accounts.rotated(ACCOUNT, "b-hash", NOON, timedelta(hours=1))

    form = wire.form(account, NOON)

    assert (form.id, form.name, form.role, form.groups) == ("id", "shop", "owner", ("shop",))
    assert form.old_secret_until == NOON + timedelta(hours=1)
    assert wire.form(account, NOON + timedelta(hours=1)).old_secret_until is None
    assert "hash" not in repr(form)
