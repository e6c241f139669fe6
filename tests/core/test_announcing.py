"""From a wish to events: what is refused, how much notice is given, what starts now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core import announcing, periods, presences, starting
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
from forewarn.core.names import EventId, HostName, MachineName
from forewarn.core.periods import Periods
from forewarn.core.presences import Verdict
from forewarn.core.scopes import AutoApproval, Enabling, Machine, Scope, ScopeKind
from forewarn.core.wishes import IfNotTold, Wish
from forewarn.errors import Refused
from forewarn.testing import strategies
from forewarn.testing.strategies import EPOCH as NOON

OPS = Actor(Role.OPERATOR, "ops", "127.0.0.1")
RULES = Periods()
MARGIN = timedelta(seconds=2)


def machine(name: str, host: str, update_domain: int) -> Machine:
    return Machine(name=MachineName(name), host=HostName(host), update_domain=update_domain)


WEB = Scope(
    name="web",
    kind=ScopeKind.AVAILABILITY_SET,
    machines=(machine("a", "host-a", 0), machine("b", "host-a", 0), machine("c", "host-b", 1)),
    enabling=Enabling.ALWAYS,
)
LEDGER = Ledger(scope=WEB)


def new_ids() -> Callable[[], EventId]:
    numbers = count(1)
    return lambda: EventId(f"E{next(numbers)}")


def announce(ledger: Ledger, wish: Wish, ids: Callable[[], EventId] | None = None) -> Announced:
    return announcing.announce(
        ledger, wish, now=NOON, new_id=ids or new_ids(), rules=RULES, actor=OPS
    )


def wished(event_type: EventType, *names: str, source: EventSource = EventSource.PLATFORM) -> Wish:
    return Wish(type=event_type, source=source, machines=names)


def whats(announced: Announced) -> list[What]:
    return [entry.what for entry in announced.decision.entries]


@pytest.mark.parametrize(
    ("event_type", "minimum"),
    [
        (EventType.FREEZE, timedelta(minutes=15)),
        (EventType.REBOOT, timedelta(minutes=15)),
        (EventType.REDEPLOY, timedelta(minutes=10)),
        (EventType.PREEMPT, timedelta(seconds=30)),
        (EventType.TERMINATE, timedelta(minutes=7)),
    ],
)
def test_the_usual_notice_is_the_minimum_and_less_is_refused(
    event_type: EventType, minimum: timedelta
) -> None:
    """keeps S11."""
    ledger = Ledger(scope=replace(WEB, terminate_notice=timedelta(minutes=7)))
    wish = wished(event_type, "a")

    (event,) = announce(ledger, wish).events
    (exact,) = announce(ledger, replace(wish, notice=minimum)).events
    (longer,) = announce(ledger, replace(wish, notice=minimum * 2)).events

    assert event.status is EventStatus.SCHEDULED
    assert event.not_before == exact.not_before == NOON + minimum + MARGIN
    assert longer.not_before == NOON + minimum * 2 + MARGIN
    with pytest.raises(Refused, match="below the minimum"):
        announce(ledger, replace(wish, notice=minimum - timedelta(microseconds=1)))


def test_an_announced_event_says_who_wanted_what_for_whom() -> None:
    wish = replace(wished(EventType.FREEZE, "b", "A"), duration=timedelta(seconds=9))

    announced = announce(LEDGER, wish)

    assert announced.events == announced.decision.ledger.events
    assert announced.events == (
        Event(
            id=EventId("E1"),
            type=EventType.FREEZE,
            source=EventSource.PLATFORM,
            machines=(MachineName("a"), MachineName("b")),
            update_domain=0,
            description="Host server is undergoing maintenance.",
            duration=timedelta(seconds=9),
            announced_by="ops",
            announced_at=NOON,
            notice=timedelta(minutes=15),
            not_before=NOON + timedelta(minutes=15, seconds=2),
        ),
    )
    assert [(e.what, e.actor) for e in announced.decision.entries] == [(What.ANNOUNCED, OPS)]


def test_a_wish_over_several_update_domains_gives_one_event_after_another() -> None:
    """keeps S15, S20."""
    first, second = announce(LEDGER, wished(EventType.REBOOT, "c", "b", "a")).events

    assert (first.machines, first.update_domain) == (("a", "b"), 0)
    assert (second.machines, second.update_domain) == (("c",), 1)
    assert second.not_before == first.not_before + timedelta(minutes=1) + RULES.recovery


def test_user_operations_need_not_keep_update_domains_apart() -> None:
    wish = wished(EventType.REBOOT, "a", "c", source=EventSource.USER)

    first, second = announce(LEDGER, wish).events

    assert first.not_before == second.not_before


def test_a_predicted_failure_is_announced_days_ahead_unless_the_operator_knows_better() -> None:
    """keeps S12."""
    wish = replace(wished(EventType.REDEPLOY, "a"), cause=Cause.PREDICTED_FAILURE)

    (event,) = announce(LEDGER, wish).events
    (sooner,) = announce(LEDGER, replace(wish, notice=timedelta(days=2))).events

    assert event.not_before == NOON + timedelta(days=7) + MARGIN
    assert sooner.not_before == NOON + timedelta(days=2) + MARGIN


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (wished(EventType.PREEMPT, "a", source=EventSource.USER), "the platform's"),
        (
            replace(
                wished(EventType.REBOOT, "a", source=EventSource.USER),
                cause=Cause.PREDICTED_FAILURE,
            ),
            "not a Reboot by the user",
        ),
        (
            replace(wished(EventType.TERMINATE, "a"), cause=Cause.HARDWARE_FAILURE),
            "not a Terminate by the platform",
        ),
        (
            replace(
                wished(EventType.REBOOT, "a"),
                cause=Cause.HARDWARE_FAILURE,
                notice=timedelta(hours=1),
            ),
            "gives no notice",
        ),
        (replace(wished(EventType.REBOOT, "a"), notice=timedelta(days=367)), "367d is too long"),
        (
            replace(wished(EventType.REBOOT, "a"), duration=timedelta(seconds=-1)),
            "a duration of -1s cannot be: give 0s to 24h",
        ),
        (
            replace(wished(EventType.REBOOT, "a"), duration=timedelta(days=2)),
            "a duration of 2d cannot be",
        ),
        (
            replace(wished(EventType.REBOOT, "a"), notice=timedelta(minutes=5)),
            "a notice of 5m is below the minimum of 15m for Reboot",
        ),
        (
            wished(EventType.TERMINATE, "a"),
            "only VMs of a scale set are told .*; give --unannounced",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(wish: Wish, why: str) -> None:
    with pytest.raises(Refused, match=why):
        announce(LEDGER, wish)


def test_a_scale_set_may_have_no_terminate_notification() -> None:
    silent = replace(WEB, kind=ScopeKind.SCALE_SET)
    wish = wished(EventType.TERMINATE, "a")

    with pytest.raises(Refused, match=r"is off for .* set terminate_notice .* or give --unann"):
        announce(Ledger(scope=silent), wish)
    with pytest.raises(Refused, match=r"a spot scale set, which has no .*; give --unannounced"):
        announce(Ledger(scope=replace(silent, spot=True)), wish)


def test_where_guests_would_not_be_told_the_wish_is_refused_unless_that_is_wanted() -> None:
    """keeps S13."""
    ledger = Ledger(scope=replace(WEB, enabling=Enabling.ON_REQUEST))
    wish = wished(EventType.REBOOT, "a")
    with pytest.raises(Refused, match=r"not enabled.*enabled = \"always\".*--unannounced"):
        announce(ledger, wish)

    announced = announce(ledger, replace(wish, if_not_told=IfNotTold.RUN_UNANNOUNCED))

    (event,) = announced.events
    assert event.audience is Audience.OPERATORS
    assert event.status is EventStatus.STARTED
    assert whats(announced) == [What.ANNOUNCED, What.STARTED]
    assert announced.decision.entries[-1].note == "unannounced"
    assert announced.decision.ledger.document == ledger.document


def test_where_guests_are_told_nothing_runs_unannounced() -> None:
    wish = replace(wished(EventType.REBOOT, "a"), if_not_told=IfNotTold.RUN_UNANNOUNCED)

    (event,) = announce(LEDGER, wish).events

    assert event.audience is Audience.GUESTS
    assert event.status is EventStatus.SCHEDULED


def test_a_termination_without_notification_runs_at_once() -> None:
    """keeps S21."""
    wish = replace(wished(EventType.TERMINATE, "a"), if_not_told=IfNotTold.RUN_UNANNOUNCED)

    (event,) = announce(LEDGER, wish).events

    assert (event.audience, event.status) == (Audience.OPERATORS, EventStatus.STARTED)


def test_unannounced_operations_obey_the_rules() -> None:
    """At once means without notice, not without rules: the second update domain waits."""
    ledger = Ledger(scope=replace(WEB, enabling=Enabling.ON_REQUEST))
    wish = replace(wished(EventType.REBOOT, "a", "c"), if_not_told=IfNotTold.RUN_UNANNOUNCED)

    announced = announce(ledger, wish)

    first, second = announced.events
    assert (first.status, second.status) == (EventStatus.STARTED, EventStatus.SCHEDULED)
    assert second.hold == "Reboot E1 is started in update domain 0"
    assert whats(announced)[-2:] == [What.ANNOUNCED, What.HELD]


@pytest.mark.parametrize(
    ("event_type", "policy"),
    [
        (EventType.REBOOT, AutoApproval.USER_REBOOT),
        (EventType.REDEPLOY, AutoApproval.USER_REDEPLOY),
    ],
)
def test_a_policy_approves_user_operations_at_once_and_nothing_else(
    event_type: EventType, policy: AutoApproval
) -> None:
    """keeps N10."""
    ledger = Ledger(scope=replace(WEB, auto_approve=(policy,)))

    (event,) = announce(ledger, wished(event_type, "a", source=EventSource.USER)).events
    (platforms,) = announce(ledger, wished(event_type, "a")).events
    (frozen,) = announce(ledger, wished(EventType.FREEZE, "a", source=EventSource.USER)).events

    assert event.status is EventStatus.STARTED
    assert event.approval is not None
    assert (event.approval.by, event.approval.role) == (policy.value, "policy")
    assert platforms.status is frozen.status is EventStatus.SCHEDULED
    assert platforms.approval is frozen.approval is None


def test_user_operations_are_limited() -> None:
    """keeps S19."""
    ids = new_ids()
    ledger = Ledger(scope=replace(WEB, user_operations_max=2))
    one = wished(EventType.REBOOT, "a", source=EventSource.USER)
    ledger = announce(ledger, one, ids).decision.ledger
    with pytest.raises(Refused, match="allows 2 user operations at one time and has 1"):
        announce(ledger, wished(EventType.REBOOT, "a", "c", source=EventSource.USER), ids)

    ledger = announce(ledger, one, ids).decision.ledger

    with pytest.raises(Refused, match="has 2"):
        announce(ledger, one, ids)
    ledger = announce(ledger, wished(EventType.FREEZE, "a"), ids).decision.ledger
    ledger = starting.cancel(ledger, "E1", OPS, NOON).ledger
    assert announce(ledger, one, ids).events[0].status is EventStatus.SCHEDULED


def test_a_hardware_failure_starts_at_once_and_overtakes_what_runs_there() -> None:
    """One decision: the running event's orders on those machines end, and the failure starts."""
    ids = new_ids()
    ledger = announce(LEDGER, wished(EventType.REBOOT, "a", "b"), ids).decision.ledger
    ledger = announce(ledger, wished(EventType.FREEZE, "a"), ids).decision.ledger
    ledger = starting.approve(ledger, ("E1",), OPS, NOON).ledger
    ledger = starting.start_if_free(ledger, EventId("E1"), NOON, RULES).ledger
    failure = replace(wished(EventType.REDEPLOY, "a"), cause=Cause.HARDWARE_FAILURE)

    struck = announce(ledger, failure, ids)

    (event,) = struck.events
    assert (event.status, event.started_at, event.notice) == (
        EventStatus.STARTED,
        NOON,
        timedelta(),
    )
    assert event.audience is Audience.GUESTS
    assert [(e.what, e.actor) for e in struck.decision.entries] == [
        (What.OVERTAKEN, SERVICE),
        (What.STARTED, OPS),
    ]
    running = struck.decision.ledger.event("E1")
    assert running.status is EventStatus.STARTED
    assert running.unfinished == ("b",)
    assert running.outcomes == (Outcome(MachineName("a"), Result.OVERTAKEN, NOON, "by event E3"),)
    # What is only scheduled is not touched.
    assert struck.decision.ledger.event("E2") == ledger.event("E2")


def test_an_event_overtaken_on_all_its_machines_has_ended() -> None:
    ids = new_ids()
    failure = replace(wished(EventType.REBOOT, "a"), cause=Cause.HARDWARE_FAILURE)
    ledger = announce(LEDGER, failure, ids).decision.ledger

    again = announce(ledger, failure, ids)

    assert whats(again) == [What.COMPLETED, What.STARTED]
    assert again.decision.ledger.event("E1").status is EventStatus.COMPLETED
    assert again.decision.ledger.event("E2").status is EventStatus.STARTED


def test_hardware_does_not_wait_until_somebody_listens() -> None:
    ledger = Ledger(scope=replace(WEB, enabling=Enabling.ON_REQUEST))
    failure = replace(wished(EventType.REBOOT, "a"), cause=Cause.HARDWARE_FAILURE)

    (event,) = announce(ledger, failure).events

    assert (event.audience, event.status) == (Audience.OPERATORS, EventStatus.STARTED)


def is_so_already(wish: Wish, machine: Machine) -> bool:
    verdict = presences.VERDICTS.get((wish.type, machine.presence))
    return verdict is Verdict.ALREADY


@given(strategies.ledgers(), st.data())
def test_whatever_is_announced_keeps_the_promises(ledger: Ledger, data: st.DataObject) -> None:
    """keeps S11, S15."""
    wish = data.draw(strategies.wishes_for(ledger.scope))
    try:
        announced = announce(ledger, wish)
    except Refused:
        return

    roster = {m.name: m for m in ledger.scope.machines}
    concerned = {name for event in announced.events for name in event.machines}
    so_already = {name for name, known in roster.items() if is_so_already(wish, known)}
    assert concerned == set(wish.machines) - so_already
    for event in announced.events:
        assert {roster[name].update_domain for name in event.machines} == {event.update_domain}
        assert len({roster[name].host for name in event.machines}) == 1
        if event.audience is Audience.GUESTS and event.cause is not Cause.HARDWARE_FAILURE:
            said = ledger.scope.owner.terminate_notice or ledger.scope.terminate_notice
            if event.type is EventType.REIMAGE:
                said = ledger.scope.owner.os_image_notice
            assert event.notice >= periods.MINIMUM_NOTICE.get(event.type, said or timedelta.max)
            assert event.not_before >= NOON + event.notice + RULES.margin
            assert event.not_before.microsecond == 0
            assert event.status is EventStatus.SCHEDULED or event.approval is not None
