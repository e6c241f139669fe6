"""What is written down about every change: what, when, by whom, from where."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from forewarn.core.events import Event
from forewarn.core.names import Incarnation, ScopeId


class Role(Enum):
    """In which capacity somebody acts."""

    GUEST = "guest"
    READER = "reader"
    OWNER = "owner"
    OPERATOR = "operator"
    POLICY = "policy"
    SERVICE = "service"
    # Whoever shows nothing by which we would know it.
    STRANGER = "stranger"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did it, and from which address, as far as there was one."""

    role: Role
    name: str
    address: str = ""


class What(Enum):
    """What happened."""

    ANNOUNCED = "announced"
    READABLE = "readable"
    MOVED = "moved"
    APPROVED = "approved"
    POSTPONED = "postponed"
    HELD = "held"
    STARTED = "started"
    REPORTED = "reported"
    OVERTAKEN = "overtaken"
    TIMED_OUT = "timed out"
    RESOLVED = "resolved"
    COMPLETED = "completed"
    CANCELED = "canceled"
    NARROWED = "narrowed"
    ENABLED = "enabled"
    DISABLED = "disabled"
    ROSTER = "roster"
    BACKED_UP = "backed up"
    RESTORED = "restored"
    PRUNED = "pruned"
    PRINCIPAL_ADDED = "principal added"
    PRINCIPAL_REVOKED = "principal revoked"
    ROTATED = "secret rotated"
    LOGIN_REFUSED = "login refused"
    CALL_REFUSED = "call refused"
    WEBHOOK = "webhook"
    DRAINED = "drained"
    UNDRAINED = "undrained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the journal. The event is shown as it was after the change.

    The scope is "" where the whole service is meant.
    """

    at: datetime
    scope: ScopeId
    what: What
    actor: Actor
    event: Event | None = None
    note: str = ""
    incarnation: Incarnation = Incarnation(0)


# Whatever no person asked for is done by the service itself.
SERVICE = Actor(Role.SERVICE, "forewarn")
