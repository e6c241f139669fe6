"""How principals are spelled in a store, and what an operator asks of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final

import msgspec

from forewarn.core.accounts import Account
from forewarn.core.journal import Role
from forewarn.errors import Malformed
from forewarn.wire import pages
from forewarn.wire.control import Asked
from forewarn.wire.control_forms import Form, Instant, one_of

PREFIX: Final = "principal/"
# The one record that tells this installation from every other: its tenant's id.
TENANT_KEY: Final = "tenant"
# Raised when an older forewarn could no longer understand what is written.
FORMAT: Final = 1

KEEP_OLD_MAX: Final = timedelta(days=30)
GROUPS_MAX: Final = 100

# Whoever calls is one of these; guests are known by their addresses.
_ROLES: Final = (Role.READER, Role.OWNER, Role.OPERATOR)
_Role = Annotated[str, one_of(_ROLES)]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# As Azure has it.
_GROUP: Final = re.compile(r"[\w().-]{1,90}")


@dataclass(frozen=True, slots=True)
class _Page:
    format: int
    account: Account


_encoder = msgspec.json.Encoder()
_page = msgspec.json.Decoder(_Page)


def key(principal_id: str) -> str:
    """Where a principal's account is kept, whichever way its id is capitalized."""
    return PREFIX + principal_id.lower()


def dump(account: Account) -> bytes:
    """An account's bytes."""
    return _encoder.encode(_Page(FORMAT, account))


def load(value: bytes) -> Account:
    """An account from its bytes. Raises: Refused if a newer forewarn wrote it, Damaged."""
    return pages.read(_page, value, "a principal", FORMAT).account


# -- what is asked ---------------------------------------------------------------------------


class NewPrincipal(Asked, frozen=True, kw_only=True):
    """Somebody who shall be known, with a role and the resource groups it is limited to."""

    name: str
    role: _Role
    groups: Annotated[tuple[str, ...], msgspec.Meta(max_length=GROUPS_MAX)] = ()
    # The client id; a new GUID if none is chosen.
    id: str | None = None


class Rotation(Asked, frozen=True, kw_only=True):
    """A new secret, beside which the old one goes on for a while."""

    keep_old_seconds: Annotated[float, msgspec.Meta(ge=0, le=int(KEEP_OLD_MAX.total_seconds()))] = (
        0.0
    )


def checked_name(text: str, what: str) -> str:
    """A principal's name or id. Raises: Malformed."""
    if _NAME.fullmatch(text) is None:
        raise Malformed(
            f"{what} is up to 64 letters, digits, dots, dashes and underscores, "
            f"beginning with a letter or a digit, not {text[:80]!r}"
        )
    return text


def checked_role(text: str) -> Role:
    """The role of a principal. Raises: Malformed."""
    roles = {role.value: role for role in _ROLES}
    if text not in roles:
        raise Malformed(f"a role is one of {', '.join(roles)}, not {text[:80]!r}")
    return roles[text]


def checked_groups(role: Role, groups: Sequence[str]) -> tuple[str, ...]:
    """The groups of a principal, each once, in lower case. Raises: Malformed."""
    for group in groups:
        if _GROUP.fullmatch(group) is None:
            raise Malformed(f"{group[:80]!r} is no name of a resource group")
    if role is Role.OPERATOR and groups:
        raise Malformed("an operator has every resource group: name none, or choose another role")
    if role is Role.OWNER and not groups:
        raise Malformed("an owner owns resource groups: name one or more")
    return tuple(dict.fromkeys(group.lower() for group in groups))


# -- what is told ----------------------------------------------------------------------------


class CallerForm(Form, frozen=True, kw_only=True):
    """Who is calling, and what it may concern itself with; no groups: all of them, as its role has it."""

    id: str
    name: str
    role: str
    groups: Sequence[str]


class PrincipalForm(Form, frozen=True, kw_only=True):
    """A principal. Its secrets are never shown again."""

    id: str
    name: str
    role: _Role
    groups: Sequence[str]
    created_at: Instant
    revoked_at: Instant | None
    # When the old secret is worth nothing, while two of them are.
    old_secret_until: Instant | None


class PrincipalsForm(Form, frozen=True, kw_only=True):
    """Some principals."""

    principals: Sequence[PrincipalForm]


class SecretForm(Form, frozen=True, kw_only=True):
    """A principal with its new secret, which is told this once."""

    principal: PrincipalForm
    client_secret: str
    tenant_id: str


def form(account: Account, now: datetime) -> PrincipalForm:
    """A principal, as operators see it."""
    ending = [secret.ends_at for secret in account.secrets_at(now) if secret.ends_at]
    return PrincipalForm(
        id=account.principal.id,
        name=account.principal.name,
        role=account.principal.role.value,
        groups=account.principal.groups,
        created_at=account.created_at,
        revoked_at=account.revoked_at,
        old_secret_until=ending[0] if ending else None,
    )
