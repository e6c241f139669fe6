"""Any story at all, told by the pure rules alone.

Goal: whatever people, guests, hardware and time do, the promises of the core hold.
Method: one ledger, changed only by the core's own decisions and sealed after each as a commit
would; Hypothesis chooses what happens next. Every change is checked, and every state.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from itertools import combinations, count
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from forewarn.core import (
    announcing,
    documents,
    enabling,
    ledgers,
    periods,
    publishing,
    rosters,
    starting,
    waking,
)
from forewarn.core.events import (
    ANNOUNCED_TYPES,
    Audience,
    Cause,
    Event,
    EventSource,
    EventStatus,
    EventType,
    Outcome,
    Result,
)
from forewarn.core.journal import SERVICE, Actor, Role
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import EventId, HostName, MachineName
from forewarn.core.periods import Periods
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import (
    AutoApproval,
    Machine,
    Origin,
    OwnerPolicies,
    Presence,
    Scope,
    ScopeKind,
)
from forewarn.core.wishes import IfNotTold, Wish
from forewarn.errors import Refused
from forewarn.testing import strategies
from forewarn.testing.strategies import EPOCH

OPS = Actor(Role.OPERATOR, "ops")
GUEST = Actor(Role.GUEST, "web-0", "10.0.0.4")
RULES = Periods()


def machine(name: str, host: str | None, update_domain: int) -> Machine:
    known = None if host is None else HostName(host)
    return Machine(name=MachineName(name), host=known, update_domain=update_domain)


SCOPE: Final = Scope(
    name="web",
    kind=ScopeKind.SCALE_SET,
    machines=(
        machine("web-0", "host-a", 0),
        machine("web-1", "host-a", 0),
        machine("web-2", "host-b", 0),
        machine("web-3", "host-b", 1),
        machine("web-4", None, 2),
        machine("web-5", None, 2),
    ),
    update_domains=3,
    terminate_notice=timedelta(minutes=5),
    user_operations_max=5,
    auto_approve=(AutoApproval.USER_REDEPLOY,),
)
NAMES: Final = [m.name for m in SCOPE.machines]


def is_failure(event: Event) -> bool:
    return event.cause is Cause.HARDWARE_FAILURE


class Story(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = EPOCH
        self.ledger = Ledger(scope=SCOPE, enabled_at=EPOCH, heard_at=EPOCH)
        self.numbers = count(1)
        self.ended: dict[EventId, Event] = {}

    # -- what may happen -----------------------------------------------------------------

    def decide(self, rule_of_core: Callable[[], Decision]) -> None:
        """Commit what the core decides, unless it refuses."""
        before = self.ledger
        try:
            decision = rule_of_core()
        except Refused:
            return
        sealed = ledgers.seal(before, decision)
        self.ledger = sealed.ledger
        self.check_document(before, sealed.ledger)
        assert sealed.ledger.events == before.events or sealed.entries, "unexplained"
        for event in sealed.ledger.events:
            was = before.find(event.id)
            self.check_policy(was, event)
            is_new = was is None or was.status is EventStatus.SCHEDULED
            if is_new and event.status is EventStatus.STARTED:
                self.check_start(event)

    def new_id(self) -> EventId:
        return EventId(f"E{next(self.numbers)}")

    def announce_wish(self, wish: Wish) -> Decision:
        announced = announcing.announce(
            self.ledger, wish, now=self.now, new_id=self.new_id, rules=RULES, actor=OPS
        )
        roster = {m.name: m for m in SCOPE.machines}
        for event in announced.events:
            places = {(roster[n].update_domain, roster[n].host) for n in event.machines}
            assert len(places) == 1, "one update domain on one host"
        return announced.decision

    @rule(wish=strategies.wishes_for(SCOPE))
    def announce(self, wish: Wish) -> None:
        self.decide(lambda: self.announce_wish(wish))

    @rule(names=st.lists(st.sampled_from(NAMES), min_size=1), kind=st.sampled_from(["all", "some"]))
    def announce_platform_maintenance(self, names: list[MachineName], kind: str) -> None:
        wish = Wish(type=EventType.FREEZE, machines=tuple(NAMES if kind == "all" else names))
        self.decide(lambda: self.announce_wish(wish))

    @rule(name=st.sampled_from(NAMES))
    def strike(self, name: MachineName) -> None:
        wish = Wish(type=EventType.REBOOT, cause=Cause.HARDWARE_FAILURE, machines=(name,))
        self.decide(lambda: self.announce_wish(wish))

    @rule(name=st.sampled_from(NAMES))
    def run_unannounced(self, name: MachineName) -> None:
        wish = Wish(type=EventType.REBOOT, machines=(name,), if_not_told=IfNotTold.RUN_UNANNOUNCED)
        self.decide(lambda: self.announce_wish(wish))

    @rule(
        names=st.lists(st.sampled_from(NAMES), min_size=1),
        verb=st.sampled_from(sorted(set(EventType) - set(ANNOUNCED_TYPES), key=str)),
    )
    def operate(self, names: list[MachineName], verb: EventType) -> None:
        wish = Wish(type=verb, source=EventSource.USER, machines=tuple(names))
        self.decide(lambda: self.announce_wish(wish))

    @rule(policies=strategies.owner_policies())
    def set_policies(self, policies: OwnerPolicies) -> None:
        self.decide(lambda: rosters.amend_policies(self.ledger, policies, OPS, self.now))

    @rule()
    def hear(self) -> None:
        self.decide(lambda: enabling.hear(self.ledger, GUEST, self.now))

    @rule()
    def fall_silent(self) -> None:
        self.decide(lambda: enabling.fall_silent(self.ledger, periods.SILENCE, self.now))

    @rule()
    def publish(self) -> None:
        self.decide(lambda: publishing.publish(self.ledger, self.now, RULES))

    @precondition(lambda self: self.ledger.events)
    @rule(data=st.data(), actor=st.sampled_from([GUEST, OPS]))
    def approve(self, data: st.DataObject, actor: Actor) -> None:
        ids = data.draw(st.lists(st.sampled_from([e.id for e in self.ledger.events]), max_size=3))
        self.decide(lambda: starting.approve(self.ledger, tuple(ids), actor, self.now))

    @rule()
    def start_due(self) -> None:
        self.decide(lambda: waking.start_due(self.ledger, self.now, RULES))

    @rule(span=strategies.spans(timedelta(hours=1)))
    def wait(self, span: timedelta) -> None:
        self.now += span

    @rule()
    def wait_until_woken(self) -> None:
        self.now = waking.wake(self.ledger, self.now, RULES) or self.now
        self.start_due()

    @precondition(lambda self: self.started())
    @rule(data=st.data(), result=st.sampled_from([Result.DONE, Result.FAILED]))
    def report(self, data: st.DataObject, result: Result) -> None:
        event = data.draw(st.sampled_from(self.started()))
        name = data.draw(st.sampled_from(event.unfinished))
        outcome = Outcome(name, result, self.now)
        self.decide(lambda: starting.report(self.ledger, event.id, outcome, SERVICE))

    @precondition(lambda self: self.ledger.events)
    @rule(data=st.data())
    def resolve(self, data: st.DataObject) -> None:
        event = data.draw(st.sampled_from(self.ledger.events))
        self.decide(lambda: starting.resolve(self.ledger, event.id, Result.DONE, OPS, self.now))

    @precondition(lambda self: self.ledger.events)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        event = data.draw(st.sampled_from(self.ledger.events))
        self.decide(lambda: starting.cancel(self.ledger, event.id, OPS, self.now))

    @precondition(lambda self: self.ledger.events)
    @rule(data=st.data(), span=strategies.spans(timedelta(hours=30)))
    def postpone(self, data: st.DataObject, span: timedelta) -> None:
        event = data.draw(st.sampled_from(self.ledger.events))
        to = event.not_before + span
        self.decide(lambda: starting.postpone(self.ledger, event.id, to, OPS, self.now, RULES))

    @rule()
    def raise_alarms(self) -> None:
        for event, name in waking.overdue(self.ledger, self.now, RULES):
            late = partial(starting.time_out, self.ledger, event.id, name, self.now)
            self.decide(late)

    @precondition(
        lambda self: all(m.presence is not Presence.RUNNING for m in self.ledger.scope.machines[:4])
    )
    @rule()
    def rebuild(self) -> None:
        declared = Declaration(SCOPE, frozenset(NAMES))
        self.decide(lambda: rosters.withdraw(self.ledger, Origin.FILE, OPS, self.now))
        self.decide(lambda: rosters.enroll(self.ledger, declared, Origin.FILE, OPS, self.now))

    # -- what must hold ------------------------------------------------------------------

    def started(self) -> list[Event]:
        return [e for e in self.ledger.events if e.status is EventStatus.STARTED]

    def check_document(self, before: Ledger, after: Ledger) -> None:
        """The number of a document rises by one exactly when it shows something else.

        It never shows what owners do to their own machines.
        """
        assert {notice.type for notice in after.document.notices} <= set(ANNOUNCED_TYPES)
        changed = documents.notices(before.events) != documents.notices(after.events)
        assert after.incarnation - before.incarnation == changed

    def check_start(self, event: Event) -> None:
        """An event starts with permission, alone on its machines, alone of its update domains."""
        if is_failure(event):
            return
        if event.approval is None and event.audience is Audience.GUESTS:
            # A Terminate's is the least that its owner may choose, and a Reimage's has no least.
            minimum = periods.MINIMUM_NOTICE.get(event.type, timedelta(minutes=5))
            assert event.readable_at is not None
            assert self.now >= event.not_before >= event.readable_at + event.notice
            assert event.notice >= minimum
        for other in self.ledger.events:
            if other.id == event.id:
                continue
            started = other.status is EventStatus.STARTED
            assert not started or set(event.machines).isdisjoint(other.machines)
            if self.are_apart(event, other):
                assert not started
                assert (
                    other.status is not EventStatus.COMPLETED
                    or other.ended_at is None
                    or self.now >= other.ended_at + RULES.recovery
                )

    def check_policy(self, was: Event | None, event: Event) -> None:
        """Where all are down, and only there, a policy approves what nobody can."""
        is_new = was is None or was.approval is None
        if is_new and event.approval is not None and event.approval.by == "all-instances-down":
            assert self.ledger.scope.owner.all_instances_down
            assert all(m.presence is not Presence.RUNNING for m in self.ledger.scope.machines)

    def are_apart(self, event: Event, other: Event) -> bool:
        maintenance = {EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY}
        return (
            event.source is other.source is EventSource.PLATFORM
            and {event.type, other.type} <= maintenance
            and event.update_domain != other.update_domain
        )

    @invariant()
    def no_machine_is_under_two_impacts(self) -> None:
        for one, two in combinations(self.started(), 2):
            assert set(one.unfinished).isdisjoint(two.unfinished)
            if not is_failure(one) and not is_failure(two):
                assert set(one.machines).isdisjoint(two.machines)

    @invariant()
    def one_update_domain_at_a_time(self) -> None:
        for one, two in combinations(self.started(), 2):
            if not is_failure(one) and not is_failure(two):
                assert not self.are_apart(one, two)

    @invariant()
    def what_has_ended_never_returns(self) -> None:
        for event_id, event in self.ended.items():
            assert self.ledger.event(event_id) == event
        self.ended = {e.id: e for e in self.ledger.events if not e.is_open}

    @invariant()
    def what_was_shown_is_only_ever_moved_later(self) -> None:
        for event in self.ledger.events:
            times: tuple[datetime, ...] = (*event.earlier, event.not_before)
            assert list(times) == sorted(set(times))

    @invariant()
    def nobody_waits_on_a_machine_that_is_gone(self) -> None:
        """A machine that is off may wait to be started or deleted, and a deleted one for nothing."""
        there = {m.name: m.presence for m in self.ledger.scope.machines}
        for event in self.ledger.events:
            if event.status is EventStatus.SCHEDULED:
                for name in event.machines:
                    is_off = there[name] is Presence.DEALLOCATED
                    assert there[name] is not Presence.DELETED
                    assert not is_off or event.type in (EventType.START, EventType.TERMINATE)

    @invariant()
    def users_keep_to_their_limit(self) -> None:
        assert self.ledger.user_operations <= 5


TestStory = Story.TestCase
TestStory.settings = settings(stateful_step_count=40)
