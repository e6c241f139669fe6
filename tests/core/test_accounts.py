"""Secrets come and go, and tokens with them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from forewarn.core import accounts
from forewarn.core.accounts import Account
from forewarn.core.journal import Role
from forewarn.core.rights import Principal
from forewarn.errors import Refused

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def opened() -> Account:
    principal = Principal(id="id", name="dashboard", role=Role.READER)
    return accounts.opened(principal, "first", NOON)


def hashes(account: Account, now: datetime) -> list[str]:
    return [secret.hash for secret in account.secrets_at(now)]


def test_a_new_account_has_one_secret_for_as_long_as_it_is_not_replaced() -> None:
    account = opened()

    assert hashes(account, NOON + 10_000 * HOUR) == ["first"]
    assert account.honors(1, NOON)
    assert not account.honors(2, NOON)
    assert "first" not in repr(account)


def test_a_rotated_secret_and_its_tokens_are_worth_nothing() -> None:
    account = accounts.rotated(opened(), "second", NOON, timedelta())

    assert hashes(account, NOON) == ["second"]
    assert (account.honors(1, NOON), account.honors(2, NOON)) == (False, True)


def test_an_old_secret_goes_on_for_a_while_and_its_tokens_with_it() -> None:
    account = accounts.rotated(opened(), "second", NOON, HOUR)

    assert hashes(account, NOON) == ["second", "first"]
    assert account.honors(1, NOON + HOUR - timedelta(seconds=1))
    assert hashes(account, NOON + HOUR) == ["second"]
    assert not account.honors(1, NOON + HOUR)
    assert not account.honors(1, NOON + 2 * HOUR)
    assert account.honors(2, NOON + 2 * HOUR)


def test_there_are_never_more_than_two_secrets_and_none_lasts_longer_than_it_was_to() -> None:
    account = accounts.rotated(opened(), "second", NOON, HOUR)
    account = accounts.rotated(account, "third", NOON, 2 * HOUR)

    assert hashes(account, NOON) == ["third", "second"]
    assert hashes(account, NOON + 2 * HOUR) == ["third"]
    # No number is used twice.
    assert [secret.number for secret in account.secrets] == [3, 2]


def test_a_revoked_account_is_worth_nothing_and_stays_so() -> None:
    account = accounts.revoked(opened(), NOON)

    assert hashes(account, NOON) == []
    assert not account.honors(1, NOON)
    with pytest.raises(Refused, match="was revoked"):
        accounts.revoked(account, NOON)
    with pytest.raises(Refused, match="was revoked"):
        accounts.rotated(account, "second", NOON, HOUR)
