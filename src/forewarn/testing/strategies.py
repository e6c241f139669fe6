"""Hypothesis strategies for the core's values: any scope, any event, any ledger, any wish.

What they draw could really be: an event's times follow each other, its machines are of one update
domain on one host, and only what happened is written down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final

from hypothesis import strategies as st

from forewarn.core import periods, wishes
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
from forewarn.core.journal import Role
from forewarn.core.ledgers import Ledger
from forewarn.core.names import EventId, HostName, Incarnation, MachineName
from forewarn.core.periods import Periods
from forewarn.core.presences import POWER_TYPES
from forewarn.core.scopes import (
    OFF,
    AutoApproval,
    Enabling,
    Machine,
    OwnerPolicies,
    Presence,
    Scope,
    ScopeKind,
)
from forewarn.core.starting import MAINTENANCE_TYPES
from forewarn.core.wishes import IfNotTold, Wish

EPOCH: Final = datetime(2030, 1, 1, 12, tzinfo=UTC)

# As people give them, and as a scale set does. Few, so that names clash now and then.
_NAMES: Final = st.sampled_from(
    ["web-0", "web-1", "web-2", "batch_0", "batch_1", "DB", "db-1", "x"]
)
_HOSTS: Final = st.sampled_from([None, HostName("host-a"), HostName("host-b")])
_QUARTER: Final = timedelta(milliseconds=250)
_OVER: Final = (Result.DONE, Result.FAILED, Result.OVERTAKEN, Result.LOST)


@cache
def spans(longest: timedelta, shortest: timedelta = timedelta()) -> st.SearchStrategy[timedelta]:
    """Lengths of time, in quarters of a second: fine enough to be no whole second, and quick."""
    quarters = st.integers(shortest // _QUARTER, longest // _QUARTER)
    return quarters.map(lambda count: count * _QUARTER)


@cache
def instants(within: timedelta = timedelta(days=2)) -> st.SearchStrategy[datetime]:
    """Instants around the epoch."""
    return spans(within, -within).map(lambda span: EPOCH + span)


@cache
def event_ids() -> st.SearchStrategy[EventId]:
    """Upper-case GUIDs."""
    return st.uuids().map(lambda guid: EventId(str(guid).upper()))


def rules() -> st.SearchStrategy[Periods]:
    """Settings of a service."""
    hours = spans(timedelta(hours=2))
    return st.builds(
        Periods,
        margin=spans(timedelta(seconds=10)),
        recovery=hours,
        postpone_max=spans(timedelta(days=2)),
        remember=spans(timedelta(days=3), timedelta(days=1)),
    )


@cache
def event_types() -> st.SearchStrategy[EventType]:
    """Types of events; those that guests know are drawn more often."""
    return st.sampled_from([*ANNOUNCED_TYPES, *ANNOUNCED_TYPES, *EventType])


@cache
def owner_policies() -> st.SearchStrategy[OwnerPolicies]:
    """What the owner of a scale set may have set."""
    minutes = st.integers(5, 15).map(lambda count: timedelta(minutes=count))
    said = st.none() | st.booleans()
    return st.builds(
        OwnerPolicies,
        approve_reboot=said,
        approve_redeploy=said,
        terminate_notice=st.none() | st.just(OFF) | minutes,
        os_image_notice=st.none() | st.just(OFF) | minutes,
        all_instances_down=st.booleans(),
        event_grid=said,
    )


@cache
def machines(update_domains: int = 5) -> st.SearchStrategy[Machine]:
    """Machines of a scope with so many update domains."""
    return st.builds(
        Machine,
        name=_NAMES.map(MachineName),
        addresses=st.just(()),
        host=_HOSTS,
        update_domain=st.integers(0, update_domains - 1),
        # Most machines are there.
        presence=st.sampled_from([Presence.RUNNING, Presence.RUNNING, *Presence]),
    )


@st.composite
def scopes(draw: st.DrawFn, machines_min: int = 1, machines_max: int = 6) -> Scope:
    """Scopes of any kind, with their policies."""
    update_domains = draw(st.integers(1, 4))
    spot = draw(st.booleans())
    minutes = st.integers(5, 15).map(lambda count: timedelta(minutes=count))
    return Scope(
        name=draw(_NAMES),
        resource_group=draw(st.sampled_from(["default", "RG1"])),
        kind=draw(st.sampled_from(ScopeKind)),
        machines=tuple(
            draw(
                st.lists(
                    machines(update_domains),
                    min_size=machines_min,
                    max_size=machines_max,
                    unique_by=lambda machine: machine.name,
                )
            )
        ),
        update_domains=update_domains,
        enabling=draw(st.sampled_from(Enabling)),
        terminate_notice=None if spot else draw(st.none() | minutes),
        spot=spot,
        user_operations_max=draw(st.none() | st.integers(0, 10)),
        auto_approve=draw(st.sampled_from([(), tuple(AutoApproval), (AutoApproval.USER_REBOOT,)])),
        recovery=draw(st.none() | spans(timedelta(hours=3))),
        # Most owners never set anything.
        owner=draw(st.just(OwnerPolicies()) | owner_policies()),
        kept=draw(st.sampled_from(["", '{"sku":{"tier":"Standard"}}'])),
    )


@st.composite
def _announced(draw: st.DrawFn, group: Sequence[Machine]) -> Event:
    """A new event for machines that can be acted on together."""
    event_type = draw(event_types())
    platform = event_type is EventType.PREEMPT or draw(st.booleans())
    causes = list(Cause)[:2] if platform and event_type in MAINTENANCE_TYPES else list(Cause)[:1]
    audience = draw(st.sampled_from([Audience.GUESTS, Audience.GUESTS, Audience.OPERATORS]))
    if event_type in POWER_TYPES:
        audience = Audience.OPERATORS
    notice = timedelta()
    if audience is Audience.GUESTS:
        # A Terminate's, and a Reimage's, is the scope's own.
        shortest = periods.MINIMUM_NOTICE.get(event_type, periods.TERMINATE_NOTICE_MIN)
        notice = draw(spans(timedelta(days=1), shortest))
    announced_at = draw(instants())
    return Event(
        id=draw(event_ids()),
        type=event_type,
        source=EventSource.PLATFORM if platform else EventSource.USER,
        cause=draw(st.sampled_from(causes)),
        audience=audience,
        machines=tuple(machine.name for machine in group),
        update_domain=group[0].update_domain,
        description=draw(st.sampled_from(["", "Host server is undergoing maintenance.", '"ß"'])),
        duration=draw(st.none() | spans(timedelta(minutes=10), timedelta(seconds=1))),
        announced_by=draw(_NAMES),
        announced_at=announced_at,
        notice=notice,
        not_before=periods.whole_second(announced_at + notice + timedelta(seconds=2)),
    )


def _published(draw: st.DrawFn, event: Event) -> Event:
    if event.audience is Audience.OPERATORS:
        return event
    readable_at = draw(st.none() | st.just(event.announced_at + draw(spans(timedelta(seconds=2)))))
    approval = None
    if draw(st.booleans()):
        at = event.announced_at + draw(spans(timedelta(minutes=1)))
        approval = Approval(draw(_NAMES), Role.GUEST.value, "10.0.0.4", at)
    if readable_at is None and approval is None and event.status is not EventStatus.SCHEDULED:
        readable_at = event.announced_at
    return replace(event, readable_at=readable_at, approval=approval)


def _started(draw: st.DrawFn, event: Event) -> Event:
    """The event with a start that its notice or an approval allowed, and what came of it."""
    if event.audience is Audience.OPERATORS:
        allowed = event.announced_at
    else:
        allowed = event.not_before if event.approval is None else event.approval.at
    started_at = allowed + draw(spans(timedelta(hours=1)))
    at = started_at + draw(spans(timedelta(hours=1)))
    over = draw(st.integers(0, len(event.machines) - 1))
    if event.status is EventStatus.COMPLETED:
        over = len(event.machines)
    outcomes = tuple(
        Outcome(machine, draw(st.sampled_from(_OVER)), at) for machine in event.machines[:over]
    )
    ended_at = at if event.status is EventStatus.COMPLETED else None
    return replace(event, started_at=started_at, outcomes=outcomes, ended_at=ended_at)


@st.composite
def events(draw: st.DrawFn, group: Sequence[Machine] = ()) -> Event:
    """Events in any stage of their life; of these machines, if any are given."""
    if not group:
        names = draw(st.lists(_NAMES, min_size=1, max_size=3, unique=True))
        group = [Machine(name=MachineName(name)) for name in names]
    event = replace(draw(_announced(group)), status=draw(st.sampled_from(EventStatus)))
    event = _published(draw, event)
    if event.status in (EventStatus.STARTED, EventStatus.COMPLETED):
        return _started(draw, event)
    if event.status is EventStatus.CANCELED:
        return replace(event, ended_at=event.announced_at + draw(spans(timedelta(minutes=10))))
    return event


@st.composite
def ledgers(draw: st.DrawFn, events_max: int = 4) -> Ledger:
    """Ledgers of any scope with any events; how these came about need not be a likely story."""
    scope = draw(scopes())
    listed: list[Event] = []
    for _ in range(draw(st.integers(0, events_max))):
        chosen = draw(st.sets(st.sampled_from(scope.machines), min_size=1, max_size=3))
        whole = wishes.groups([machine for machine in scope.machines if machine in chosen])
        listed.append(draw(events(whole[0])))
    enabled_at = draw(st.none() | instants())
    return Ledger(
        scope=scope,
        events=tuple({event.id: event for event in listed}.values()),
        incarnation=Incarnation(draw(st.integers(1, 1000))),
        enabled_at=enabled_at,
        heard_at=enabled_at,
    )


@st.composite
def wishes_for(draw: st.DrawFn, scope: Scope) -> Wish:
    """Wishes for machines of a scope: reasonable ones, that may be refused for its policies."""
    names = [machine.name for machine in scope.machines]
    event_type = draw(event_types())
    platform = event_type is EventType.PREEMPT or draw(st.booleans())
    causes = tuple(Cause) if platform and event_type in MAINTENANCE_TYPES else (Cause.MAINTENANCE,)
    cause = draw(st.sampled_from(causes))
    notice = None
    if cause is not Cause.HARDWARE_FAILURE:
        notice = draw(st.none() | spans(timedelta(hours=3), timedelta(minutes=15)))
    return Wish(
        type=event_type,
        source=EventSource.PLATFORM if platform else EventSource.USER,
        cause=cause,
        machines=tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))),
        duration=draw(st.none() | spans(timedelta(minutes=10), timedelta(seconds=1))),
        notice=notice,
        if_not_told=draw(st.sampled_from(IfNotTold)),
    )
