"""Who may ask for what.

A principal is somebody whom the control plane knows: a person, a program. What it may do follows
from its role, and from the resource groups that it is limited to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from forewarn.core.journal import Actor, Role


class Right(Enum):
    """What a caller needs in order to ask for something."""

    ANYBODY = "anybody"
    READ = "read"
    OWN = "own"
    OPERATE = "operate"


# The rights that a role brings, within the groups of whoever has it.
RIGHTS_OF: Final[Mapping[Role, frozenset[Right]]] = {
    Role.READER: frozenset({Right.ANYBODY, Right.READ}),
    Role.OWNER: frozenset({Right.ANYBODY, Right.READ, Right.OWN}),
    Role.OPERATOR: frozenset(Right),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Somebody who may ask. An owner has the groups it names, a reader all if it names none."""

    id: str
    name: str
    role: Role
    # In lower case: the names of resource groups ignore case.
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert self.role in RIGHTS_OF, "a machine, a policy and the service itself have no token"


def may(principal: Principal, right: Right) -> bool:
    """Whether somebody has a right at all, in whichever group."""
    return right in RIGHTS_OF[principal.role]


def sees(principal: Principal, group: str | None) -> bool:
    """Whether a group concerns somebody; None is what belongs to no group but to the service."""
    if principal.role is Role.OPERATOR:
        return True
    if principal.role is Role.READER and not principal.groups:
        return True
    return group is not None and group.lower() in principal.groups


def actor(principal: Principal, address: str) -> Actor:
    """Somebody, as the journal names it."""
    return Actor(principal.role, principal.name, address)
