"""Webhooks that are told twice, or in another order, on purpose; and what becomes of what is held back."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from forewarn.core.events import EventType
from forewarn.core.journal import What
from forewarn.core.webhooks import ChangeId, Wanted, Webhook
from forewarn.service.deliveries import Delivery, Writer
from forewarn.service.webhooks import Subscription
from forewarn.testing.receivers import SimulatedPost
from forewarn.testing.worlds import OPERATOR, WEB, World
from forewarn.web.faults import Faults
from forewarn.wire.targets import load_target
from forewarn.wiring.carrying import assemble_hooks
from forewarn.wiring.mishaps import TRIES_MAX, TRY_AGAIN, Mishaps

LOG = logging.getLogger("test.mishaps")


@dataclass
class Told:
    """A webhook of a world, what is to be told to it, and what went wrong."""

    world: World = field(default_factory=lambda: World(WEB))
    post: SimulatedPost = field(default_factory=SimulatedPost)
    sent: list[Delivery] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.faults = Faults(self.world.clock, speed=0)
        self.mishaps = Mishaps(self.faults, self.post, self.sent.append, LOG)
        target = load_target("https://hooks.example.org/")
        hooks = assemble_hooks(self.world.parts, self.post, "sub")
        subscription = Subscription(name="pager", target=target, wanted=Wanted())
        self.webhook: Webhook = hooks.webhooks.add(subscription, OPERATOR)
        self.writer = Writer(lambda _scope: WEB, "sub")
        self.world.announce(EventType.FREEZE, "web-0")

    def delivery(self, name: str) -> Delivery:
        (entry,) = (one for one in self.world.journal() if one.what is What.ANNOUNCED)
        now = self.world.clock.now()
        return self.writer.delivery(self.webhook, ChangeId(name), entry, now)

    @property
    def taken(self) -> list[str]:
        return [one.id for one in self.post.taken]

    def pass_time(self, by: timedelta) -> None:
        """Let time pass, and have what was sent again carried out."""
        self.world.clock.advance(by)
        self.mishaps.look_at_the_clock()
        while self.sent:
            assert self.mishaps.carry(self.sent.pop(0)) == ""


@pytest.fixture
def told() -> Told:
    return Told()


def test_without_a_fault_all_goes_well(told: Told) -> None:
    for name in "abc":
        assert told.mishaps.carry(told.delivery(name)) == ""

    assert told.taken == ["a", "b", "c"]


def test_a_duplicate_is_told_twice(told: Told) -> None:
    told.faults.add("webhook-duplicate", times=1)

    for name in "ab":
        assert told.mishaps.carry(told.delivery(name)) == ""

    assert told.taken == ["a", "a", "b"]


def test_what_was_not_taken_is_not_told_twice(told: Told) -> None:
    told.faults.add("webhook-duplicate")
    told.post.answers = lambda _target, _received: 500

    assert told.mishaps.carry(told.delivery("a")) == "answered 500"
    assert len(told.post.received) == 1


def test_what_is_held_back_follows_the_next_one(told: Told) -> None:
    told.faults.add("webhook-reordered")

    for name in "abc":
        assert told.mishaps.carry(told.delivery(name)) == ""
    assert told.taken == ["b", "a"]
    assert told.mishaps.carry(told.delivery("d")) == ""

    assert told.taken == ["b", "a", "d", "c"]


def test_the_next_one_has_to_be_taken_first(told: Told) -> None:
    told.faults.add("webhook-reordered", times=1)
    told.mishaps.carry(told.delivery("a"))
    told.post.answers = lambda _target, _received: 500

    assert told.mishaps.carry(told.delivery("b")) == "answered 500"
    told.post.answers = lambda _target, _received: 200
    assert told.mishaps.carry(told.delivery("b")) == ""

    assert told.taken == ["b", "a"]


def test_what_is_held_back_comes_alone_if_nothing_follows(told: Told) -> None:
    told.faults.add("webhook-reordered", delay=timedelta(seconds=30), times=1)
    told.mishaps.carry(told.delivery("a"))

    told.pass_time(timedelta(seconds=29))
    assert told.taken == []
    told.pass_time(timedelta(seconds=1))
    assert told.taken == ["a"]
    told.pass_time(timedelta(minutes=1))
    assert told.taken == ["a"]


def test_what_was_held_back_is_tried_again(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    told.faults.add("webhook-reordered", times=1)
    told.mishaps.carry(told.delivery("a"))
    told.post.answers = lambda _target, _received: 500
    told.pass_time(timedelta(seconds=10))
    told.post.answers = lambda _target, _received: 200

    told.pass_time(TRY_AGAIN)

    assert told.taken == ["a"]
    assert not caplog.records


def test_what_is_never_taken_is_given_up_and_said_to_be(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    told.faults.add("webhook-reordered", times=1)
    told.mishaps.carry(told.delivery("a"))
    told.post.answers = lambda _target, _received: 500

    told.pass_time(timedelta(seconds=10))
    for _ in range(TRIES_MAX + 5):
        told.pass_time(TRY_AGAIN)

    assert len(told.post.received) == TRIES_MAX
    (record,) = caplog.records
    assert record.getMessage() == "what was held back was never taken: answered 500"


def test_a_fault_for_one_vm_leaves_the_news_of_others_alone(told: Told) -> None:
    told.faults.add("webhook-reordered", machine="web-1")

    told.mishaps.carry(told.delivery("a"))

    assert told.taken == ["a"]


def test_a_message_that_tells_of_nothing_goes_well(told: Told) -> None:
    told.faults.add("webhook-reordered")

    assert told.mishaps.carry(replace(told.delivery("a"), entry=None)) == ""

    assert told.taken == ["a"]
