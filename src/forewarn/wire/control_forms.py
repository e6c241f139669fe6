"""The operators' JSON, as it is shown: what an event, a scope and a journal entry look like.

Instants are RFC 3339 in UTC, lengths of time are seconds. A member is always there; what does not
apply is null. Statuses, types and sources are spelled as guests read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Annotated

import msgspec

from forewarn.core import scopes
from forewarn.core.events import (
    ANNOUNCED_TYPES,
    Approval,
    Audience,
    Cause,
    Event,
    EventSource,
    EventStatus,
    EventType,
    Outcome,
    Result,
)
from forewarn.core.journal import Actor, Entry, Role, What
from forewarn.core.ledgers import Ledger
from forewarn.core.names import ScopeId
from forewarn.core.scopes import (
    AutoApproval,
    Enabling,
    Machine,
    Origin,
    Presence,
    Scope,
    ScopeKind,
)
from forewarn.wire.instance import vm_id


def one_of(kind: Iterable[Enum]) -> msgspec.Meta:
    """Text that is one of these words, as far as a schema is concerned."""
    return msgspec.Meta(extra_json_schema={"enum": [value.value for value in kind]})


# With its time zone: nobody has to guess.
Instant = Annotated[datetime, msgspec.Meta(tz=True)]
EventTypeWord = Annotated[str, one_of(EventType)]
# What guests can be told of.
AnnouncedWord = Annotated[str, one_of(ANNOUNCED_TYPES)]
SourceWord = Annotated[str, one_of(EventSource)]
CauseWord = Annotated[str, one_of(Cause)]
_Status = Annotated[str, one_of(EventStatus)]
_Result = Annotated[str, one_of(Result)]
RoleWord = Annotated[str, one_of(Role)]
WhatWord = Annotated[str, one_of(What)]
_Kind = Annotated[str, one_of(ScopeKind)]
_Enabling = Annotated[str, one_of(Enabling)]
_AutoApproval = Annotated[str, one_of(AutoApproval)]
_Presence = Annotated[str, one_of(Presence)]
_Origin = Annotated[str, one_of(Origin)]


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """Whatever is answered to an operator."""


class ScopeNames(msgspec.Struct, frozen=True):
    """What a scope and its resource group are called; both are "" where no scope is meant."""

    resource_group: str
    name: str


class ApprovalForm(Form, frozen=True, kw_only=True):
    """Who let an event start early, and from where."""

    by: str
    role: RoleWord
    address: str
    at: Instant


class OutcomeForm(Form, frozen=True, kw_only=True):
    """What became of an event on one machine."""

    resource: str
    result: _Result
    at: Instant
    detail: str


class EventForm(Form, frozen=True, kw_only=True):
    """An event and its whole record."""

    event_id: str
    type: EventTypeWord
    status: _Status
    resources: tuple[str, ...]
    not_before: Instant
    scope: str
    resource_group: str
    source: SourceWord
    cause: CauseWord
    description: str
    duration_seconds: float | None
    update_domain: int
    # Whether guests are told.
    announced: bool
    announced_at: Instant
    announced_by: str
    readable_at: Instant | None
    approved: ApprovalForm | None
    hold: str | None
    started_at: Instant | None
    ended_at: Instant | None
    notice_promised_seconds: float
    notice_given_seconds: float | None
    not_before_earlier: tuple[Instant, ...]
    outcomes: tuple[OutcomeForm, ...]


class MachineForm(Form, frozen=True, kw_only=True):
    """A machine of a scope."""

    name: str
    addresses: tuple[str, ...]
    host: str | None
    update_domain: int
    presence: _Presence
    origin: _Origin
    vm_id: str


class ScopeForm(Form, frozen=True, kw_only=True):
    """A scope, its policies and its machines."""

    scope: str
    resource_group: str
    kind: _Kind
    enabled: bool
    enabling: _Enabling
    update_domains: int
    terminate_notice_seconds: float | None
    spot: bool
    user_operations_max: int | None
    auto_approve: tuple[_AutoApproval, ...]
    incarnation: int
    machines: tuple[MachineForm, ...]


class ActorForm(Form, frozen=True, kw_only=True):
    """Who did something, and from where."""

    role: RoleWord
    name: str
    address: str


class EntryForm(Form, frozen=True, kw_only=True):
    """A line of the journal. Its event is shown as it was after the change."""

    cursor: str
    at: Instant
    scope: str
    resource_group: str
    what: WhatWord
    by: ActorForm
    event: EventForm | None
    note: str
    incarnation: int


class FleetForm(Form, frozen=True, kw_only=True):
    """The whole fleet."""

    scopes: Sequence[ScopeForm]


class HostedForm(Form, frozen=True, kw_only=True):
    """The machines of one scope that run on a host."""

    scope: str
    resource_group: str
    machines: tuple[str, ...]


class HostForm(Form, frozen=True, kw_only=True):
    """A host, who is on it, and what is announced to them."""

    host: str
    scopes: Sequence[HostedForm]
    # Open events that concern a machine on this host.
    events: Sequence[EventForm]
    # Whether an impact is under way there.
    is_busy: bool
    # Whether nobody is placed there.
    is_drained: bool
    # What the fabric sees of it, where hosts are more than names.
    memory_free_mib: int | None
    # Why the fabric cannot ask it at the moment.
    trouble: str | None


class HostsForm(Form, frozen=True, kw_only=True):
    """Every host that a machine runs on, that the fabric has, or that is drained."""

    hosts: Sequence[HostForm]


class ChangesForm(Form, frozen=True, kw_only=True):
    """What applying a fleet file changed, a line for each scope."""

    changes: Sequence[str]


class EventsForm(Form, frozen=True, kw_only=True):
    """Some events."""

    events: Sequence[EventForm]


class AnnouncedForm(Form, frozen=True, kw_only=True):
    """What came of a wish: events that guests are told of, and those they are not told of."""

    events: Sequence[EventForm]
    unannounced: Sequence[EventForm]


class JournalForm(Form, frozen=True, kw_only=True):
    """Some lines of the journal, and the cursor from which to read on."""

    entries: Sequence[EntryForm]
    cursor: str
    is_last: bool


class PrunedForm(Form, frozen=True, kw_only=True):
    """How many commits the journal forgot."""

    pruned: int


class BackupForm(Form, frozen=True, kw_only=True):
    """Where a backup was put, on the service's machine."""

    path: str


class NothingForm(Form, frozen=True, kw_only=True):
    """It was done, and there is nothing to tell."""


class StatusForm(Form, frozen=True, kw_only=True, omit_defaults=True):
    """Whether the service is well; if not, why."""

    status: str
    reason: str = ""


class Fault(Form, frozen=True, kw_only=True):
    """The code tells a program what to do next, the message a person.

    The shape is Azure's. Where we have no other word, the code is the family of the error.
    """

    code: str
    message: str


class ErrorForm(Form, frozen=True, kw_only=True):
    """Why something was not done."""

    error: Fault


def names_of(scope: ScopeId) -> ScopeNames:
    """The names in a scope's id, which is in lower case."""
    group, _, name = scope.partition("/")
    return ScopeNames(group, name)


def names_in(ledger: Ledger) -> ScopeNames:
    """The names of a ledger's scope, as they were declared."""
    return ScopeNames(ledger.scope.resource_group, ledger.scope.name)


def event_form(event: Event, scope: ScopeNames) -> EventForm:
    """An event of a scope."""
    return EventForm(
        event_id=event.id,
        type=event.type.value,
        status=event.status.value,
        resources=event.machines,
        not_before=event.not_before,
        scope=scope.name,
        resource_group=scope.resource_group,
        source=event.source.value,
        cause=event.cause.value,
        description=event.description,
        duration_seconds=_seconds_or_none(event.duration),
        update_domain=event.update_domain,
        announced=event.audience is Audience.GUESTS,
        announced_at=event.announced_at,
        announced_by=event.announced_by,
        readable_at=event.readable_at,
        approved=None if event.approval is None else _approval_form(event.approval),
        hold=event.hold or None,
        started_at=event.started_at,
        ended_at=event.ended_at,
        notice_promised_seconds=_seconds(event.notice),
        notice_given_seconds=_seconds_or_none(event.notice_given),
        not_before_earlier=event.earlier,
        outcomes=tuple(_outcome_form(outcome) for outcome in event.outcomes),
    )


def scope_form(ledger: Ledger) -> ScopeForm:
    """A ledger's scope and roster."""
    scope = ledger.scope
    return ScopeForm(
        scope=scope.name,
        resource_group=scope.resource_group,
        kind=scope.kind.value,
        enabled=ledger.is_enabled,
        enabling=scope.enabling.value,
        update_domains=scope.update_domains,
        terminate_notice_seconds=_seconds_or_none(scopes.terminate_notice(scope)),
        spot=scope.spot,
        user_operations_max=scope.user_operations_max,
        auto_approve=tuple(policy.value for policy in scopes.auto_approvals(scope)),
        incarnation=ledger.incarnation,
        machines=tuple(_machine_form(scope, m) for m in scope.machines if not _is_history(m)),
    )


def entry_form(entry: Entry, cursor: str, scope: ScopeNames) -> EntryForm:
    """A journal entry, and the cursor of the commit that wrote it."""
    return EntryForm(
        cursor=cursor,
        at=entry.at,
        scope=scope.name,
        resource_group=scope.resource_group,
        what=entry.what.value,
        by=_actor_form(entry.actor),
        event=None if entry.event is None else event_form(entry.event, scope),
        note=entry.note,
        incarnation=entry.incarnation,
    )


def _approval_form(approval: Approval) -> ApprovalForm:
    return ApprovalForm(
        by=approval.by, role=approval.role, address=approval.address, at=approval.at
    )


def _outcome_form(outcome: Outcome) -> OutcomeForm:
    return OutcomeForm(
        resource=outcome.machine,
        result=outcome.result.value,
        at=outcome.at,
        detail=outcome.detail,
    )


def _machine_form(scope: Scope, machine: Machine) -> MachineForm:
    return MachineForm(
        name=machine.name,
        addresses=machine.addresses,
        host=machine.host,
        update_domain=machine.update_domain,
        presence=machine.presence.value,
        origin=machine.origin.value,
        vm_id=vm_id(scope, machine),
    )


def _is_history(machine: Machine) -> bool:
    """Whether a machine is deleted for good: no file would bring it back, nor need be kept from it."""
    return machine.presence is Presence.DELETED and machine.origin is Origin.API


def _actor_form(actor: Actor) -> ActorForm:
    return ActorForm(role=actor.role.value, name=actor.name, address=actor.address)


def _seconds(span: timedelta) -> float:
    """Seconds as a person would write them: 900, not 900.0."""
    seconds = span.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def _seconds_or_none(span: timedelta | None) -> float | None:
    return None if span is None else _seconds(span)
