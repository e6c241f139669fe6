"""One token that opens everything, beside those that others know."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from forewarn.core.journal import Role
from forewarn.core.rights import Principal
from forewarn.ports.secrets import Claims
from forewarn.testing.control_planes import KnownTokens
from forewarn.trust.passes import Pass
from forewarn.trust.tokens import PassingTokens

HOLDER = Principal(id="1", name="operator", role=Role.OPERATOR)
OTHER = Principal(id="2", name="reader", role=Role.READER)


def test_a_pass_is_its_holders_and_other_tokens_are_others() -> None:
    authority = Pass("open", HOLDER, KnownTokens({"theirs": OTHER}))

    assert authority.principal("open") == HOLDER
    assert authority.principal("theirs") == OTHER
    assert authority.principal("") is None
    assert authority.principal("öpen") is None
    assert "open" not in repr(authority)


def test_passing_tokens_are_read_by_whoever_made_them_alone() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    claims = Claims(principal="1", secret=1, issued_at=now, expires_at=now + timedelta(hours=1))
    tokens = PassingTokens("tenant")

    token = tokens.issue(claims)

    assert tokens.read(token, now) == claims
    assert PassingTokens("tenant").read(token, now) is None
