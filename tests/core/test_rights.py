"""Who may ask for what."""

from __future__ import annotations

import pytest

from forewarn.core.journal import Actor, Role
from forewarn.core.rights import Principal, Right, actor, may, sees

ROLES = {
    Role.READER: {Right.ANYBODY, Right.READ},
    Role.OWNER: {Right.ANYBODY, Right.READ, Right.OWN},
    Role.OPERATOR: {Right.ANYBODY, Right.READ, Right.OWN, Right.OPERATE},
}


def principal(role: Role, *groups: str) -> Principal:
    return Principal(id="1", name="ann", role=role, groups=groups)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("right", Right)
def test_a_role_brings_its_rights_and_no_other(role: Role, right: Right) -> None:
    assert may(principal(role), right) is (right in ROLES[role])


@pytest.mark.parametrize(
    ("who", "group", "seen"),
    [
        (principal(Role.OPERATOR), "rg1", True),
        (principal(Role.OPERATOR), None, True),
        (principal(Role.READER), "rg1", True),
        (principal(Role.READER), None, True),
        (principal(Role.READER, "rg1"), "RG1", True),
        (principal(Role.READER, "rg1"), "rg2", False),
        (principal(Role.READER, "rg1"), None, False),
        (principal(Role.OWNER, "rg1"), "RG1", True),
        (principal(Role.OWNER, "rg1"), "rg2", False),
        (principal(Role.OWNER, "rg1"), None, False),
        (principal(Role.OWNER), "rg1", False),
    ],
)
def test_a_group_concerns_those_who_have_it(
    who: Principal, group: str | None, *, seen: bool
) -> None:
    assert sees(who, group) is seen


def test_the_journal_names_who_asked_and_from_where() -> None:
    assert actor(principal(Role.OWNER, "rg1"), "10.0.0.4") == Actor(Role.OWNER, "ann", "10.0.0.4")
