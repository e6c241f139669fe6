"""What the control API answers, as far as the command line looks inside it.

Shapes only: an answer is passed on as it came, with members that are not listed here too.
Instants are ISO 8601 in UTC; what has not happened yet is null.
"""

from __future__ import annotations

from typing import TypedDict


class Approval(TypedDict):
    """Who gave leave to start early, and from where."""

    by: str
    role: str
    address: str
    at: str


class Outcome(TypedDict):
    """What became of one VM."""

    resource: str
    result: str
    at: str | None
    detail: str


class Event(TypedDict):
    """An event with its record."""

    event_id: str
    type: str
    status: str
    resources: list[str]
    not_before: str | None
    scope: str
    resource_group: str
    source: str
    cause: str
    description: str
    duration_seconds: float | None
    update_domain: int | None
    announced: bool
    announced_at: str
    announced_by: str
    readable_at: str | None
    approved: Approval | None
    hold: str | None
    started_at: str | None
    ended_at: str | None
    notice_promised_seconds: float | None
    notice_given_seconds: float | None
    not_before_earlier: list[str]
    outcomes: list[Outcome]


class Events(TypedDict):
    events: list[Event]


class Announcement(TypedDict):
    """The events that a wish became: those that guests see, and those they never will."""

    events: list[Event]
    unannounced: list[Event]


class Machine(TypedDict):
    name: str
    addresses: list[str]
    host: str | None
    update_domain: int
    presence: str
    origin: str
    vm_id: str


class Scope(TypedDict):
    scope: str
    resource_group: str
    kind: str
    enabled: bool
    update_domains: int
    machines: list[Machine]


class Fleet(TypedDict):
    scopes: list[Scope]


class Actor(TypedDict):
    """In which capacity somebody acted, under which name, from where."""

    role: str
    name: str
    address: str


class Entry(TypedDict):
    """One line of the journal; the event as it was after the change."""

    cursor: str
    at: str
    scope: str
    resource_group: str
    what: str
    by: Actor
    event: Event | None
    note: str
    incarnation: int


class Page(TypedDict):
    """Some lines of the journal, and the cursor from which to read on."""

    entries: list[Entry]
    cursor: str
    is_last: bool


class Principal(TypedDict):
    """Somebody who may call the service."""

    id: str
    name: str
    role: str
    groups: list[str]
    created_at: str
    revoked_at: str | None
    old_secret_until: str | None


class Principals(TypedDict):
    principals: list[Principal]


class NewSecret(TypedDict):
    """A principal with its new secret, told this once."""

    principal: Principal
    client_secret: str
    tenant_id: str
