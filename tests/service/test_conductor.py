"""What happens because time passes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.core.events import Cause, EventSource, EventStatus, EventType, Result
from forewarn.core.journal import What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import MachineName
from forewarn.core.periods import Periods
from forewarn.core.scopes import Enabling, Presence
from forewarn.core.wishes import Wish
from forewarn.errors import Refused, Unavailable, UnknownEvent
from forewarn.fabrics.simulated import Behaviour
from forewarn.service.conductor import Conductor
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import Fault, FaultyStore
from forewarn.testing.worlds import NOON, OPERATOR, WEB, World

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
# The minimum of a Freeze, and the margin for publishing it.
NOTICE = 15 * MINUTE + 2 * SECOND
ASKING = replace(WEB, enabling=Enabling.ON_REQUEST)
ASKING_TOO = replace(ASKING, name="too", machines=())
WEB_0 = MachineName("web-0")


def at(world: World) -> list[tuple[What, datetime]]:
    """What was written about events, and when."""
    return [(entry.what, entry.at) for entry in world.journal() if entry.event is not None]


def lines(world: World, what: What) -> list[str]:
    return [entry.note for entry in world.journal() if entry.what is what]


def restarted(world: World) -> World:
    return World(clock=world.clock, store=world.store, fabric=world.fabric)


# -- notice ------------------------------------------------------------------------------


def test_an_event_starts_when_its_notice_has_run_out_and_ends_with_its_impact() -> None:
    """keeps S11, S17, N6."""
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    assert event.not_before == NOON + NOTICE

    world.advance(NOTICE - SECOND)
    assert world.event(event.id).status is EventStatus.SCHEDULED
    assert not world.fabric.impacts

    world.advance(SECOND)
    assert world.event(event.id).status is EventStatus.STARTED
    assert [impact.began_at for impact in world.fabric.impacts] == [NOON + NOTICE]

    world.advance(9 * SECOND)
    assert world.event(event.id).status is EventStatus.COMPLETED
    assert world.document(WEB.id).notices == ()
    assert at(world) == [
        (What.ANNOUNCED, NOON),
        (What.READABLE, NOON),
        (What.STARTED, NOON + NOTICE),
        (What.COMPLETED, NOON + NOTICE + 9 * SECOND),
    ]


def test_what_nobody_could_read_does_not_start() -> None:
    """keeps S11: announced, and then nothing was published for an hour."""
    world = World(WEB)
    (placed,) = world.desk.announce(Wish(type=EventType.FREEZE, machines=("web-0",)), (), OPERATOR)
    world.clock.advance(HOUR)

    world.settle()

    event = world.event(placed.event.id)
    assert event.status is EventStatus.SCHEDULED
    assert event.readable_at == NOON + HOUR
    assert event.not_before == NOON + HOUR + 15 * MINUTE
    assert event.earlier == (placed.event.not_before,)


def test_publishing_that_took_long_moves_the_event_later_and_is_news() -> None:
    """keeps S9, S11."""
    world = World(WEB)
    (placed,) = world.desk.announce(Wish(type=EventType.FREEZE, machines=("web-0",)), (), OPERATOR)
    before = world.document(WEB.id)
    world.clock.advance(2 * SECOND)
    world.settle()
    # Within the margin, nothing needs to move.
    assert world.document(WEB.id) == before
    (other,) = world.desk.announce(Wish(type=EventType.FREEZE, machines=("web-3",)), (), OPERATOR)
    before = world.document(WEB.id)
    world.clock.advance(3 * SECOND)

    world.settle()

    after = world.document(WEB.id)
    assert after.incarnation == before.incarnation + 1
    assert [notice.not_before for notice in after.notices] == [
        placed.event.not_before,
        NOON + 5 * SECOND + 15 * MINUTE,
    ]
    assert "publishing took long" in lines(world, What.MOVED)[0]
    assert world.event(other.event.id).not_before == NOON + 5 * SECOND + 15 * MINUTE


def test_what_is_not_on_the_board_is_not_readable() -> None:
    """keeps S11: another process committed it, and this one has not heard of it."""
    clock = SimulatedClock(NOON)
    store = MemoryStore(clock)
    here = World(WEB, clock=clock, store=store)
    there = World(clock=clock, store=store)
    (placed,) = there.desk.announce(Wish(type=EventType.FREEZE, machines=("web-0",)), (), OPERATOR)
    here.conductor.note(placed.ledger)

    here.settle()
    assert there.event(placed.event.id).readable_at is None

    here.parts.feed.follow(100)
    here.settle()
    assert here.event(placed.event.id).readable_at == NOON


def test_setting_the_clock_forward_starts_nothing_early() -> None:
    """keeps S11, S17: the minimum is time that really passed."""
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    world.clock.jump(HOUR)

    world.advance(15 * MINUTE - SECOND)
    assert world.event(event.id).status is EventStatus.SCHEDULED

    world.advance(SECOND)
    assert world.event(event.id).status is EventStatus.STARTED


def test_an_approval_needs_no_time_to_pass() -> None:
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    world.clock.jump(HOUR)
    world.settle()

    world.approve("10.0.0.10", event.id)

    assert world.event(event.id).status is EventStatus.STARTED


def test_setting_the_clock_back_only_lengthens_the_notice() -> None:
    """keeps S17."""
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    world.advance(10 * MINUTE)
    world.clock.jump(-HOUR)

    world.advance(HOUR + 5 * MINUTE)
    assert world.event(event.id).status is EventStatus.SCHEDULED

    world.advance(2 * SECOND)
    assert world.event(event.id).status is EventStatus.STARTED


def test_setting_the_clock_back_does_not_keep_a_started_event_waiting() -> None:
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    world.approve("10.0.0.10", event.id)
    world.clock.jump(-HOUR)

    world.advance(10 * SECOND)

    assert world.event(event.id).status is EventStatus.COMPLETED


def test_a_restart_neither_hastens_nor_forgets() -> None:
    """keeps S11, S17."""
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    world.advance(10 * MINUTE)

    world = restarted(world)

    world.advance(NOTICE - 10 * MINUTE - SECOND)
    assert world.event(event.id).status is EventStatus.SCHEDULED
    world.advance(SECOND)
    assert world.event(event.id).status is EventStatus.STARTED


# -- holds -------------------------------------------------------------------------------


def test_a_held_event_stays_scheduled_and_the_journal_says_why_once() -> None:
    """keeps S20: one update domain after another, with time to recover in between."""
    world = World(WEB)
    first = world.announce(EventType.FREEZE, "web-0")
    second = world.announce(EventType.FREEZE, "web-1")
    world.fabric.behave(WEB_0, Behaviour.HANGS)
    world.approve("10.0.0.10", first.id, second.id)

    world.advance(10 * SECOND)

    held = world.event(second.id)
    assert held.status is EventStatus.SCHEDULED
    assert held.hold == f"Freeze {first.id} is started in update domain 0"
    assert lines(world, What.HELD) == [held.hold]
    world.fabric.finish(first.id, WEB_0)
    world.advance(10 * SECOND)
    recovering = world.event(second.id)
    assert recovering.status is EventStatus.SCHEDULED
    assert recovering.hold.startswith("the scope recovers")
    assert lines(world, What.HELD) == [held.hold, recovering.hold]
    world.advance(30 * MINUTE)
    assert world.event(second.id).status is EventStatus.COMPLETED
    assert lines(world, What.HELD) == [held.hold, recovering.hold]


def test_a_machine_has_one_started_event_at_a_time() -> None:
    world = World(WEB)
    first = world.announce(EventType.REBOOT, "web-0")
    second = world.announce(EventType.REBOOT, "web-0", source=EventSource.USER)

    world.approve("10.0.0.10", first.id, second.id)

    assert world.event(first.id).status is EventStatus.STARTED
    assert "is started on web-0" in world.event(second.id).hold
    world.advance(MINUTE)
    assert world.event(second.id).status is EventStatus.STARTED


# -- orders ------------------------------------------------------------------------------


def test_started_is_committed_before_any_order_is_given() -> None:
    """The store is away just then: nothing is touched."""
    clock = SimulatedClock(NOON)
    store = FaultyStore(MemoryStore(clock))
    world = World(WEB, clock=clock, store=store)
    event = world.announce(EventType.FREEZE, "web-0")
    clock.advance(NOTICE)
    store.spoil(Fault.AWAY)

    turn = world.conductor.turn()

    assert [(s.scope, type(s.error)) for s in turn.setbacks] == [(WEB.id, Unavailable)]
    assert turn.next_wake == clock.now() + SECOND
    assert not world.fabric.impacts
    world.advance(SECOND)
    assert world.event(event.id).status is EventStatus.STARTED


def test_a_store_that_is_away_for_long_is_tried_again_and_again() -> None:
    clock = SimulatedClock(NOON)
    store = FaultyStore(MemoryStore(clock))
    world = World(WEB, clock=clock, store=store)
    event = world.announce(EventType.FREEZE, "web-0")
    store.is_away = True
    world.advance(HOUR)

    store.is_away = False
    world.advance(SECOND)

    assert world.event(event.id).started_at == NOON + HOUR + SECOND


@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER])
def test_a_start_whose_outcome_is_unknown_is_one_start(fault: Fault) -> None:
    clock = SimulatedClock(NOON)
    store = FaultyStore(MemoryStore(clock))
    world = World(WEB, clock=clock, store=store)
    world.announce(EventType.FREEZE, "web-0")
    clock.advance(NOTICE)
    store.spoil(fault)

    world.advance(MINUTE)

    assert len(world.fabric.impacts) == 1
    assert [what for what, _ in at(world)].count(What.STARTED) == 1
    assert [what for what, _ in at(world)].count(What.COMPLETED) == 1


def test_a_failed_order_is_an_outcome() -> None:
    world = World(WEB)
    world.fabric.behave(WEB_0, Behaviour.FAILS)
    event = world.announce(EventType.FREEZE, "web-0", "web-3")
    world.approve("10.0.0.10", event.id)

    world.advance(MINUTE)

    ended = world.event(event.id)
    assert ended.status is EventStatus.COMPLETED
    assert [(o.machine, o.result) for o in ended.outcomes] == [
        ("web-0", Result.FAILED),
        ("web-3", Result.DONE),
    ]
    assert "web-0: failed, web-0 was told to fail" in lines(world, What.REPORTED)


def test_a_refused_order_has_failed() -> None:
    world = World(WEB)
    world.fabric.behave(WEB_0, Behaviour.REFUSES)
    event = world.announce(EventType.FREEZE, "web-0")

    world.approve("10.0.0.10", event.id)

    (outcome,) = world.event(event.id).outcomes
    assert (outcome.result, outcome.detail) == (Result.FAILED, "web-0 refuses to freeze")
    assert world.event(event.id).status is EventStatus.COMPLETED


def test_a_forgotten_order_is_given_again() -> None:
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    world.approve("10.0.0.10", event.id)
    world.fabric.behave(WEB_0, Behaviour.FORGETS)

    world.advance(MINUTE)

    assert len(world.fabric.impacts) == 2
    assert world.event(event.id).status is EventStatus.COMPLETED


def test_one_machine_out_of_reach_does_not_keep_the_others_waiting() -> None:
    world = World(WEB)
    world.fabric.behave(WEB_0, Behaviour.UNREACHABLE)
    event = world.announce(EventType.FREEZE, "web-0", "web-3")
    world.desk.approve(event.id, OPERATOR)

    turn = world.settle()

    assert [impact.order.machine for impact in world.fabric.impacts] == ["web-3"]
    assert [(s.scope, str(s.error)) for s in turn.setbacks] == [(WEB.id, "web-0 cannot be reached")]
    world.fabric.behave(WEB_0, Behaviour.OBEYS)
    world.advance(MINUTE)
    assert world.event(event.id).status is EventStatus.COMPLETED


@pytest.mark.parametrize("end", ["late", "done", "failed"])
def test_a_hanging_order_raises_an_alarm_and_waits_for_a_word(end: str) -> None:
    world = World(WEB)
    world.fabric.behave(WEB_0, Behaviour.HANGS)
    event = world.announce(EventType.FREEZE, "web-0")
    world.approve("10.0.0.10", event.id)

    world.advance(5 * MINUTE)
    alarmed = world.event(event.id)
    assert alarmed.status is EventStatus.STARTED
    assert [outcome.result for outcome in alarmed.outcomes] == [Result.TIMED_OUT]
    world.advance(5 * MINUTE)
    assert len(lines(world, What.TIMED_OUT)) == 1

    if end == "late":
        world.fabric.finish(event.id, WEB_0)
        world.advance(SECOND)
    else:
        world.desk.resolve(event.id, Result(end), OPERATOR)
        world.settle()
    ended = world.event(event.id)
    assert ended.status is EventStatus.COMPLETED
    results = {"late": Result.DONE, "done": Result.DONE, "failed": Result.FAILED}
    assert [outcome.result for outcome in ended.outcomes] == [results[end]]


def test_a_report_that_comes_after_an_operators_word_changes_nothing() -> None:
    clock = SimulatedClock(NOON)
    store = FaultyStore(MemoryStore(clock))
    world = World(WEB, clock=clock, store=store)
    event = world.announce(EventType.FREEZE, "web-0")
    world.approve("10.0.0.10", event.id)
    rival = World(clock=clock, store=store, fabric=world.fabric)
    clock.advance(9 * SECOND)
    store.overtake(lambda: rival.desk.resolve(event.id, Result.FAILED, OPERATOR))

    world.settle()

    ended = world.event(event.id)
    assert [outcome.result for outcome in ended.outcomes] == [Result.FAILED]
    assert lines(world, What.COMPLETED) == ["web-0: failed, resolved by operator"]


def test_hardware_failure_overtakes_and_its_own_order_is_carried_out() -> None:
    world = World(WEB)
    running = world.announce(EventType.REBOOT, "web-0")
    world.approve("10.0.0.10", running.id)

    failure = Wish(type=EventType.REDEPLOY, machines=("web-0",), cause=Cause.HARDWARE_FAILURE)
    (struck,) = world.desk.announce(failure, (), OPERATOR)
    world.settle()

    assert world.event(running.id).status is EventStatus.COMPLETED
    assert world.event(running.id).outcomes[0].result is Result.OVERTAKEN
    assert [i.order.event for i in world.fabric.impacts] == [running.id, struck.event.id]
    world.advance(3 * MINUTE)
    assert world.event(struck.event.id).status is EventStatus.COMPLETED


@pytest.mark.parametrize(
    ("kind", "presence"),
    [(EventType.PREEMPT, Presence.DEALLOCATED), (EventType.TERMINATE, Presence.DELETED)],
)
def test_a_machine_that_is_gone_leaves_what_was_planned_for_it(
    kind: EventType, presence: Presence
) -> None:
    """keeps S21."""
    world = World(WEB)
    both = world.announce(EventType.REBOOT, "web-0", "web-3")
    alone = world.announce(EventType.REDEPLOY, "web-0")
    final = world.announce(kind, "web-0")
    world.approve("10.0.0.10", final.id)

    world.advance(10 * SECOND)

    assert world.event(final.id).status is EventStatus.COMPLETED
    assert world.event(both.id).machines == ("web-3",)
    assert world.event(alone.id).status is EventStatus.CANCELED
    machine = world.parts.books.load(WEB.id).scope.machine("web-0")
    assert machine is not None
    assert machine.presence is presence
    with pytest.raises(Refused, match=f"web-0 is {presence.value}"):
        world.announce(EventType.FREEZE, "web-0")


# -- silence -----------------------------------------------------------------------------


def enabled(world: World) -> bool:
    return world.parts.books.load(WEB.id).is_enabled


def test_a_day_of_silence_disables() -> None:
    """keeps S13."""
    world = World(ASKING)
    world.desk.attend(world.caller("10.0.0.10"))

    world.advance(24 * HOUR - SECOND)
    assert enabled(world)

    world.advance(SECOND)
    assert not enabled(world)
    assert lines(world, What.DISABLED) == ["24 hours without a request"]


def test_every_request_begins_a_new_day() -> None:
    """keeps S13: whether or not it was worth a commit."""
    world = World(ASKING)
    caller = world.caller("10.0.0.10")
    world.desk.attend(caller)
    world.advance(30 * MINUTE)
    assert not world.desk.hear(caller)

    world.advance(24 * HOUR - SECOND)
    assert enabled(world)

    world.advance(SECOND)
    assert not enabled(world)


def test_after_a_restart_every_scope_has_its_day_again() -> None:
    """keeps S13."""
    world = World(ASKING)
    world.desk.attend(world.caller("10.0.0.10"))
    world.advance(23 * HOUR)

    world = restarted(world)

    world.advance(24 * HOUR - SECOND)
    assert enabled(world)
    world.advance(SECOND)
    assert not enabled(world)


@pytest.mark.parametrize("jump", [timedelta(days=400), timedelta(days=-400)])
def test_a_clock_that_jumps_disables_nobody(jump: timedelta) -> None:
    """keeps S13."""
    world = World(ASKING)
    world.desk.attend(world.caller("10.0.0.10"))
    world.advance(HOUR)

    world.clock.jump(jump)

    world.advance(23 * HOUR - SECOND)
    assert enabled(world)
    world.advance(SECOND)
    assert not enabled(world)


def test_a_scope_enabled_always_is_never_silent() -> None:
    world = World(WEB)

    world.advance(timedelta(days=3))

    assert enabled(world)
    assert world.settle().next_wake is None


# -- forgetting and waking ---------------------------------------------------------------


def test_an_ended_event_is_understood_for_a_day_and_then_forgotten() -> None:
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    world.desk.cancel(event.id, OPERATOR)

    world.advance(24 * HOUR - SECOND)
    world.approve("10.0.0.10", event.id)

    world.advance(SECOND)
    with pytest.raises(UnknownEvent):
        world.approve("10.0.0.10", event.id)
    assert world.settle().next_wake is None


def test_what_ended_before_a_restart_is_forgotten_after_it() -> None:
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    world.desk.cancel(event.id, OPERATOR)
    world.settle()

    world = restarted(world)

    assert world.settle().next_wake == NOON + 24 * HOUR
    world.advance(24 * HOUR)
    assert world.desk.events() == ()


def test_a_turn_with_nothing_due_touches_nothing() -> None:
    clock = SimulatedClock(NOON)
    store = FaultyStore(MemoryStore(clock))
    world = World(WEB, ASKING_TOO, clock=clock, store=store)
    event = world.announce(EventType.FREEZE, "web-0")
    store.is_away = True

    turn = world.conductor.turn()

    assert turn.setbacks == ()
    assert turn.next_wake == event.not_before


def test_a_scope_noted_in_between_is_due_at_once() -> None:
    world = World(WEB)
    world.settle()
    world.conductor.note(world.parts.books.load(WEB.id))
    clock_before = world.clock.now()

    # The next wake is asked for by whoever sleeps between two turns.
    world.parts.board.watch(lambda _: world.conductor.note(world.parts.books.load(WEB.id)))
    (placed,) = world.desk.announce(Wish(type=EventType.FREEZE, machines=("web-0",)), (), OPERATOR)
    turn = world.conductor.turn()

    assert turn.next_wake == clock_before
    assert world.event(placed.event.id).readable_at == clock_before


def test_a_postponed_event_wakes_at_its_new_time_only() -> None:
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")

    world.desk.postpone(event.id, HOUR, OPERATOR)

    assert world.settle().next_wake == event.not_before + HOUR


def test_longer_memory_and_limits_are_the_operators_to_set() -> None:
    world = World(WEB, rules=Periods(remember=48 * HOUR, freeze_limit=MINUTE))
    world.fabric.behave(WEB_0, Behaviour.HANGS)
    event = world.announce(EventType.FREEZE, "web-0")
    world.approve("10.0.0.10", event.id)

    world.advance(MINUTE)

    assert len(lines(world, What.TIMED_OUT)) == 1
    world.desk.resolve(event.id, Result.DONE, OPERATOR)
    world.advance(47 * HOUR)
    assert world.event(event.id).status is EventStatus.COMPLETED


# -- many at a time ----------------------------------------------------------------------


def test_a_report_that_could_not_be_noted_is_noted_a_little_later() -> None:
    """keeps S8."""
    clock = SimulatedClock(NOON)
    store = FaultyStore(MemoryStore(clock))
    world = World(WEB, clock=clock, store=store)
    event = world.announce(EventType.FREEZE, "web-0")
    world.approve("10.0.0.10", event.id)
    clock.advance(9 * SECOND)
    store.spoil(Fault.AWAY)

    turn = world.settle()
    assert [setback.scope for setback in turn.setbacks] == [WEB.id]
    assert world.event(event.id).status is EventStatus.STARTED

    world.advance(SECOND)
    assert world.event(event.id).status is EventStatus.COMPLETED


def test_what_is_due_in_many_scopes_is_committed_at_once() -> None:
    """keeps S17."""
    clock = SimulatedClock(NOON)
    store = FaultyStore(MemoryStore(clock))
    machine = replace(WEB.machines[0], addresses=())
    scopes = [replace(WEB, name=f"set-{number}", machines=(machine,)) for number in range(5)]
    world = World(*scopes, clock=clock, store=store)
    names = tuple(f"{scope.id}/web-0" for scope in scopes)
    placed = world.desk.announce(Wish(type=EventType.FREEZE, machines=names), (), OPERATOR)
    world.settle()
    for one in placed:
        world.desk.approve(one.event.id, OPERATOR)
    store.asked.clear()

    world.settle()

    assert len(store.asked) == 1
    assert {world.event(one.event.id).status for one in placed} == {EventStatus.STARTED}


def test_the_conductor_does_not_look_again_at_what_it_has_just_done() -> None:
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    world.desk.approve(event.id, OPERATOR)

    turn = world.conductor.turn()
    assert world.event(event.id).status is EventStatus.STARTED
    assert turn.next_wake == NOON

    # That it is told of its own commit is no reason to ask the fabric again so soon.
    assert world.conductor.turn().next_wake == NOON + SECOND


def test_a_bug_is_no_setback() -> None:
    class Stumbling(Conductor):
        def _decide(self, ledger: Ledger) -> Decision:
            raise ZeroDivisionError(ledger.scope.name)

    world = World(WEB)
    parts = world.parts
    conductor = Stumbling(
        *(parts.clock, parts.books, parts.board, parts.fabric, parts.desk.attendance, parts.rules)
    )
    conductor.note(parts.books.load(WEB.id))

    with pytest.raises(ZeroDivisionError):
        conductor.turn()
