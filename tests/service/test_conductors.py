"""Several services over one store: whoever loses a race looks again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import cycle

from forewarn.clocks import SimulatedClock
from forewarn.core.events import EventStatus, EventType
from forewarn.core.journal import What
from forewarn.core.scopes import Enabling
from forewarn.fabrics.simulated import SimulatedFabric
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import FaultyStore
from forewarn.testing.worlds import NOON, WEB, World

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
NOTICE = timedelta(minutes=15, seconds=2)


class Crowd:
    """Services that share a clock, a fabric and a store, and race for each commit."""

    def __init__(self, count: int) -> None:
        self.clock = SimulatedClock(NOON)
        self.fabric = SimulatedFabric(self.clock)
        self.stores = [FaultyStore(MemoryStore(self.clock))]
        self.stores += [FaultyStore(self.stores[0]) for _ in range(count - 1)]
        self.worlds = [
            World(clock=self.clock, store=store, fabric=self.fabric) for store in self.stores
        ]
        self._turns: Iterator[World] = cycle(self.worlds)

    @property
    def first(self) -> World:
        return self.worlds[0]

    def settle(self) -> None:
        """Let everybody hear of everything and do what is due, until nobody has anything to do."""
        while sum(world.parts.feed.follow(100) for world in self.worlds):
            for world in self.worlds:
                world.settle()
        for world in self.worlds:
            world.settle()

    def advance(self, by: timedelta, step: timedelta) -> None:
        """Let time pass; in each step somebody else comes first."""
        until = self.clock.now() + by
        while self.clock.now() < until:
            self.clock.advance(step)
            next(self._turns).settle()
            self.settle()

    def whats(self) -> list[What]:
        return [entry.what for entry in self.first.journal()]


def test_however_many_conduct_each_step_is_taken_once() -> None:
    crowd = Crowd(3)
    crowd.first.declare(WEB)
    crowd.settle()
    event = crowd.worlds[1].announce(EventType.FREEZE, "web-0", "web-3")
    crowd.settle()

    crowd.advance(NOTICE + timedelta(minutes=1), 7 * SECOND)

    assert crowd.first.event(event.id).status is EventStatus.COMPLETED
    assert [what for what in crowd.whats() if what is not What.ROSTER] == [
        What.ANNOUNCED,
        What.READABLE,
        What.STARTED,
        What.REPORTED,
        What.COMPLETED,
    ]
    assert sorted(i.order.machine for i in crowd.fabric.impacts) == ["web-0", "web-3"]
    assert len({world.document(WEB.id) for world in crowd.worlds}) == 1


def test_a_conductor_that_is_overtaken_between_deciding_and_committing_starts_nothing_twice() -> (
    None
):
    crowd = Crowd(2)
    left, right = crowd.worlds
    left.declare(WEB)
    event = left.announce(EventType.FREEZE, "web-0")
    crowd.settle()
    crowd.clock.advance(NOTICE)
    crowd.stores[1].overtake(left.conductor.turn)

    right.settle()
    crowd.settle()

    assert crowd.whats().count(What.STARTED) == 1
    assert len(crowd.fabric.impacts) == 1
    crowd.clock.advance(9 * SECOND)
    crowd.stores[1].overtake(left.settle)
    right.settle()
    crowd.settle()
    assert crowd.whats().count(What.COMPLETED) == 1
    assert left.event(event.id).status is EventStatus.COMPLETED


def test_an_approval_given_to_one_service_is_acted_on_by_another() -> None:
    """keeps S16."""
    crowd = Crowd(2)
    left, right = crowd.worlds
    left.declare(WEB)
    event = left.announce(EventType.FREEZE, "web-0")
    crowd.settle()

    right.desk.approve_as_guest(right.caller("10.0.0.10"), [event.id])
    left.parts.feed.follow(100)
    left.settle()

    assert left.event(event.id).status is EventStatus.STARTED


def test_silence_here_is_no_silence_while_another_service_hears() -> None:
    """keeps S13: the mark in the ledger is coarse, so it can only lengthen the day."""
    crowd = Crowd(2)
    left, right = crowd.worlds
    left.declare(replace(WEB, enabling=Enabling.ON_REQUEST))
    crowd.settle()
    caller = right.caller("10.0.0.10")
    crowd.advance(30 * HOUR, HOUR)
    right.desk.attend(caller)
    for _ in range(60):
        crowd.advance(HOUR, HOUR)
        if right.desk.hear(caller):
            right.desk.attend(caller)
        crowd.settle()
        assert left.parts.books.load(WEB.id).is_enabled

    # Heard once more, too soon after the last mark to be worth a commit.
    crowd.advance(timedelta(minutes=59), timedelta(minutes=59))
    assert not right.desk.hear(caller)
    crowd.advance(timedelta(hours=23, minutes=59), timedelta(minutes=1))
    assert left.parts.books.load(WEB.id).is_enabled

    crowd.advance(timedelta(minutes=62), timedelta(minutes=1))
    assert not left.parts.books.load(WEB.id).is_enabled


def test_an_approval_too_soon_for_a_mark_lengthens_nothing() -> None:
    """keeps S13: a day after the last request, not more."""
    world = World(replace(WEB, enabling=Enabling.ON_REQUEST))
    world.desk.attend(world.caller("10.0.0.10"))
    event = world.announce(EventType.FREEZE, "web-0")
    world.advance(timedelta(minutes=10))
    world.approve("10.0.0.10", event.id)
    world.advance(timedelta(minutes=10))
    world.desk.approve_as_guest(world.caller("10.0.0.10"), [event.id])

    world.advance(24 * HOUR - SECOND)
    assert world.parts.books.load(WEB.id).is_enabled

    world.advance(SECOND)
    assert not world.parts.books.load(WEB.id).is_enabled


def test_setting_the_hands_is_no_notice_for_whoever_hears_of_an_event_late() -> None:
    """keeps S11: it cannot know what they showed when the event became readable elsewhere."""
    crowd = Crowd(2)
    left, right = crowd.worlds
    left.declare(WEB)
    crowd.settle()
    event = left.announce(EventType.FREEZE, "web-0")

    crowd.clock.jump(HOUR)
    crowd.settle()
    assert right.event(event.id).status is EventStatus.SCHEDULED

    crowd.advance(NOTICE, NOTICE)
    assert right.event(event.id).status is EventStatus.STARTED


def test_a_clock_set_back_does_not_keep_a_request_secret() -> None:
    """keeps S13: others learn within an hour that a scope was heard, whatever the hands say."""
    crowd = Crowd(1)
    crowd.first.declare(replace(WEB, enabling=Enabling.ON_REQUEST))
    caller = crowd.first.caller("10.0.0.10")
    crowd.first.desk.attend(caller)
    before = crowd.first.parts.books.load(WEB.id).heard_at

    crowd.clock.advance(HOUR)
    crowd.clock.jump(-HOUR + SECOND)

    assert crowd.first.desk.hear(caller)
    crowd.first.desk.attend(caller)
    assert crowd.first.parts.books.load(WEB.id).heard_at != before
    assert not crowd.first.desk.hear(caller)
