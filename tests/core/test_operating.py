"""What owners do to their own machines, and what they want without being asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest

from forewarn.core import announcing, starting, waking
from forewarn.core.announcing import Announced
from forewarn.core.events import (
    Audience,
    Cause,
    Event,
    EventSource,
    EventStatus,
    EventType,
    Outcome,
    Result,
)
from forewarn.core.journal import SERVICE, Actor, Role, What
from forewarn.core.ledgers import Ledger
from forewarn.core.names import EventId, MachineName
from forewarn.core.periods import Periods
from forewarn.core.scopes import OFF, Enabling, Machine, OwnerPolicies, Presence, Scope, ScopeKind
from forewarn.core.wishes import IfNotTold, Wish
from forewarn.errors import Refused
from forewarn.testing.strategies import EPOCH as NOON

OWNER = Actor(Role.OPERATOR, "owner")
RULES = Periods()
MINUTE = timedelta(minutes=1)
A, B = MachineName("a"), MachineName("b")
SET = Scope(
    name="set",
    kind=ScopeKind.SCALE_SET,
    machines=(Machine(name=A), Machine(name=B)),
    enabling=Enabling.ALWAYS,
)
LEDGER = Ledger(scope=SET)
NUMBERS = count(1)


def owned(scope: Scope = SET, **said: timedelta | bool) -> Ledger:
    return Ledger(scope=replace(scope, owner=OwnerPolicies(**said)))  # type: ignore[arg-type]


def down(ledger: Ledger, presence: Presence, *names: MachineName) -> Ledger:
    machines = tuple(
        replace(m, presence=presence) if m.name in names else m for m in ledger.scope.machines
    )
    return replace(ledger, scope=replace(ledger.scope, machines=machines))


def wished(event_type: EventType, *names: str) -> Wish:
    return Wish(type=event_type, source=EventSource.USER, machines=names or ("a",))


def announce(ledger: Ledger, wish: Wish) -> Announced:
    new_id: Callable[[], EventId] = lambda: EventId(f"E{next(NUMBERS)}")  # noqa: E731 - short
    return announcing.announce(ledger, wish, now=NOON, new_id=new_id, rules=RULES, actor=OWNER)


def announced(ledger: Ledger, wish: Wish) -> tuple[Ledger, Event]:
    made = announce(ledger, wish)
    (event,) = made.events
    return made.decision.ledger, event


def ended(ledger: Ledger, event: Event, result: Result = Result.DONE) -> Ledger:
    for name in event.machines:
        outcome = Outcome(name, result, NOON)
        ledger = starting.report(ledger, event.id, outcome, SERVICE).ledger
    return ledger


# -- who is told -------------------------------------------------------------------------


def test_a_reimage_is_announced_where_the_owner_asked_for_it_and_shown_as_a_reboot() -> None:
    ledger, event = announced(owned(os_image_notice=10 * MINUTE), wished(EventType.REIMAGE))

    assert (event.status, event.audience) == (EventStatus.SCHEDULED, Audience.GUESTS)
    assert event.notice == 10 * MINUTE
    assert [notice.type for notice in ledger.document.notices] == [EventType.REBOOT]


@pytest.mark.parametrize(
    "ledger",
    [
        LEDGER,
        owned(os_image_notice=OFF),
        owned(replace(SET, enabling=Enabling.ON_REQUEST), os_image_notice=MINUTE),
        owned(replace(SET, kind=ScopeKind.AVAILABILITY_SET), os_image_notice=MINUTE),
    ],
)
def test_any_other_reimage_happens_at_once(ledger: Ledger) -> None:
    after, event = announced(ledger, wished(EventType.REIMAGE))

    assert (event.status, event.audience) == (EventStatus.STARTED, Audience.OPERATORS)
    assert after.document.notices == ()


def test_a_reimage_cannot_be_announced_shorter_than_its_owner_wants() -> None:
    wish = replace(wished(EventType.REIMAGE), notice=9 * MINUTE)

    with pytest.raises(Refused, match="below the minimum of 10m for Reimage"):
        announce(owned(os_image_notice=10 * MINUTE), wish)


def test_an_owner_turns_terminate_notification_on() -> None:
    _, event = announced(owned(terminate_notice=7 * MINUTE), wished(EventType.TERMINATE))

    assert event.notice == 7 * MINUTE


def test_an_owner_turns_terminate_notification_off() -> None:
    ledger = owned(replace(SET, terminate_notice=5 * MINUTE), terminate_notice=OFF)

    with pytest.raises(Refused, match="the owner of scope default/set has turned terminate"):
        announce(ledger, wished(EventType.TERMINATE))
    wish = replace(wished(EventType.TERMINATE), if_not_told=IfNotTold.RUN_UNANNOUNCED)
    assert announced(ledger, wish)[1].status is EventStatus.STARTED


def test_an_owner_lets_reboots_start_at_once() -> None:
    """keeps S19."""
    _, event = announced(owned(approve_reboot=True), wished(EventType.REBOOT))

    assert event.status is EventStatus.STARTED
    assert event.approval is not None
    assert event.approval.by == "user-reboot"


# -- one after the other -----------------------------------------------------------------


def test_an_operation_waits_while_another_event_is_started_on_its_machine() -> None:
    ledger, reboot = announced(owned(approve_reboot=True), wished(EventType.REBOOT))

    ledger, stop = announced(ledger, wished(EventType.POWER_OFF))

    assert stop.status is EventStatus.SCHEDULED
    assert stop.hold == f"Reboot {reboot.id} is started on a"
    after = waking.start_due(ended(ledger, reboot), NOON, RULES).ledger
    assert after.event(stop.id).status is EventStatus.STARTED


@pytest.mark.parametrize(
    "wish",
    [
        wished(EventType.START),
        wished(EventType.POWER_OFF),
        wished(EventType.DEALLOCATE),
        wished(EventType.REBOOT),
        wished(EventType.REIMAGE, "b", "a"),
    ],
)
def test_what_depends_on_how_a_power_off_ends_is_refused(wish: Wish) -> None:
    ledger, stop = announced(LEDGER, wished(EventType.POWER_OFF))

    with pytest.raises(Refused, match=f"a is about to be stopped, by PowerOff {stop.id}: wait"):
        announce(ledger, wish)


def test_a_start_is_refused_while_the_machine_is_preempted() -> None:
    ledger, preempt = announced(LEDGER, Wish(type=EventType.PREEMPT, machines=("a",)))
    assert announce(ledger, wished(EventType.START)).events == ()
    ledger = starting.approve(ledger, (preempt.id,), OWNER, NOON).ledger
    ledger = waking.start_due(ledger, NOON, RULES).ledger

    with pytest.raises(Refused, match="a is about to be deallocated, by Preempt"):
        announce(ledger, wished(EventType.POWER_OFF))
    # A Reboot waits, and is off when the machine is.
    ledger, reboot = announced(ledger, wished(EventType.REBOOT))
    assert ended(ledger, preempt).event(reboot.id).status is EventStatus.CANCELED


def test_a_neighbor_is_not_concerned() -> None:
    ledger, _ = announced(LEDGER, wished(EventType.POWER_OFF))

    assert announced(ledger, wished(EventType.POWER_OFF, "b"))[1].status is EventStatus.STARTED


def test_a_machine_can_be_deleted_however_its_power_off_ends() -> None:
    ledger, stop = announced(LEDGER, wished(EventType.POWER_OFF))
    wish = replace(wished(EventType.TERMINATE), if_not_told=IfNotTold.RUN_UNANNOUNCED)

    ledger, delete = announced(ledger, wish)

    assert delete.hold
    for result in (Result.DONE, Result.FAILED):
        after = waking.start_due(ended(ledger, stop, result), NOON, RULES).ledger
        assert after.event(delete.id).status is EventStatus.STARTED


def test_hardware_asks_nobody() -> None:
    ledger, stop = announced(LEDGER, wished(EventType.POWER_OFF))
    failure = Wish(type=EventType.REBOOT, cause=Cause.HARDWARE_FAILURE, machines=("a",))

    after, struck = announced(ledger, failure)

    assert struck.status is EventStatus.STARTED
    assert after.event(stop.id).outcomes[0].result is Result.OVERTAKEN


def test_what_is_scheduled_stays_for_a_stopped_machine_and_is_off_for_a_deallocated_one() -> None:
    ledger, reboot = announced(LEDGER, wished(EventType.REBOOT, "a"))
    ledger, stop = announced(ledger, wished(EventType.POWER_OFF))
    ledger = ended(ledger, stop)
    assert ledger.event(reboot.id).status is EventStatus.SCHEDULED

    ledger, leave = announced(ledger, wished(EventType.DEALLOCATE))
    ledger = ended(ledger, leave)

    assert ledger.event(reboot.id).status is EventStatus.CANCELED
    assert [m.presence for m in ledger.scope.machines] == [
        Presence.DEALLOCATED,
        Presence.RUNNING,
    ]


# -- all down ----------------------------------------------------------------------------


def test_what_nobody_can_approve_is_approved_when_the_last_machine_goes_down() -> None:
    ledger, reboot = announced(LEDGER, wished(EventType.REBOOT))
    ledger = down(ledger, Presence.DEALLOCATED, B)
    assert waking.start_due(ledger, NOON, RULES).entries == ()
    ledger = down(ledger, Presence.STOPPED, A)
    assert waking.wake(replace(ledger, events=(replace(reboot, readable_at=NOON),)), NOON, RULES)

    started = waking.start_due(ledger, NOON, RULES, unserved={reboot.id})

    assert [entry.what for entry in started.entries] == [What.APPROVED, What.STARTED]
    assert started.entries[0].actor == Actor(Role.POLICY, "all-instances-down")
    assert started.ledger.event(reboot.id).status is EventStatus.STARTED


def test_what_is_announced_to_machines_that_are_down_starts_at_once() -> None:
    ledger = down(owned(terminate_notice=5 * MINUTE), Presence.DEALLOCATED, A, B)

    _, event = announced(ledger, wished(EventType.TERMINATE))

    assert event.status is EventStatus.STARTED
    assert event.approval is not None
    assert event.approval.by == "all-instances-down"


def test_an_owner_may_want_to_wait_even_then() -> None:
    policies = owned(terminate_notice=5 * MINUTE, all_instances_down=False)
    ledger = down(policies, Presence.STOPPED, A, B)

    after, event = announced(ledger, wished(EventType.TERMINATE))

    assert event.status is EventStatus.SCHEDULED
    assert waking.start_due(after, NOON, RULES).entries == ()
