"""What the control API answers, as far as the command line looks inside it.

Shapes only: an answer is passed on as it came, with members that are not listed here too.
Instants are ISO 8601 in UTC; what has not happened yet is null.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


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


class Caller(TypedDict):
    """Who calls, as the service knows it."""

    id: str
    name: str
    role: str
    groups: list[str]


class Principals(TypedDict):
    principals: list[Principal]


class NewSecret(TypedDict):
    """A principal with its new secret, told this once."""

    principal: Principal
    client_secret: str
    tenant_id: str


class Subscription(TypedDict):
    """The one subscription that a service has, as Azure spells it."""

    subscriptionId: str
    tenantId: str


class OperationFault(TypedDict):
    code: str
    message: str


class OperationEvents(TypedDict):
    events: list[str]


class Operation(TypedDict):
    """A long-running operation, as Azure spells it, with the events that it takes."""

    name: str
    status: str
    properties: OperationEvents
    error: NotRequired[OperationFault]


class Webhook(TypedDict):
    """Somebody who is told of changes, and how that goes."""

    id: str
    name: str
    url: str
    form: str
    groups: list[str]
    scopes: list[str]
    types: list[str]
    changes: list[str]
    paused: bool
    created_by: str
    created_at: str
    waiting: int
    trouble: str | None
    dead_letters: int


class Webhooks(TypedDict):
    webhooks: list[Webhook]


class AddedWebhook(TypedDict):
    """A new webhook, and the secret that its deliveries are signed with."""

    webhook: Webhook
    secret: str


class DeadLetter(TypedDict):
    """Something that a webhook was not told."""

    number: int
    at: str
    why: str
    tries: int
    id: str | None
    type: str | None
    scope: str | None
    event_id: str | None
    changed_at: str | None


class Clock(TypedDict):
    """What an emulator's clock shows, and how fast it goes."""

    now: str
    speed: float


class Fault(TypedDict):
    """What goes wrong on purpose in an emulator."""

    id: str
    kind: str
    machine: str | None
    times: int | None
    until: str | None
    delay_seconds: float


class Faults(TypedDict):
    faults: list[Fault]


class Request(TypedDict):
    """What a guest asked an emulator."""

    at: str
    machine: str | None
    address: str
    method: str
    path: str
    route: str
    api_version: str | None
    status: int


class Requests(TypedDict):
    """The last requests of guests, and how many there were before those."""

    requests: list[Request]
    forgotten: int


class Addresses(TypedDict):
    """Where guests of an emulator ask."""

    metadata: str
    machines: dict[str, str]
