"""The threads that tell webhooks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from forewarn.core.events import EventType
from forewarn.core.webhooks import Wanted
from forewarn.errors import Unavailable
from forewarn.ports.store import Cursor
from forewarn.service.webhooks import Subscription
from forewarn.stores.memory import MemoryStore
from forewarn.testing.receivers import SimulatedPost
from forewarn.testing.worlds import OPERATOR, WEB, World
from forewarn.wire.targets import load_target
from forewarn.wiring.carrying import Carriers, Hooks, assemble_hooks
from forewarn.wiring.watching import WatchedStore

SUBSCRIPTION = Subscription(
    name="pager", target=load_target("https://hooks.example.org/"), wanted=Wanted()
)


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def running(world: World, hooks: Hooks) -> Iterator[threading.Event]:
    crashed = threading.Event()
    carriers = Carriers(hooks, world.parts, logging.getLogger("test.carrying"), crashed.set)
    carriers.start()
    try:
        yield crashed
    finally:
        carriers.stop()


def test_what_is_committed_is_told_and_each_trouble_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """keeps N10"""
    caplog.set_level(logging.INFO)
    post = SimulatedPost(lambda _target, _received: 500)
    world = World(WEB)
    hooks = assemble_hooks(world.parts, post, "sub")
    hooks.webhooks.add(SUBSCRIPTION, OPERATOR)

    with running(world, hooks) as crashed:
        world.announce(EventType.FREEZE, "web-0")
        wait_for(lambda: "webhook_failing" in {getattr(r, "action", "") for r in caplog.records})
        post.answers = lambda _target, _received: 200
        world.clock.advance(timedelta(seconds=2))
        wait_for(lambda: len(post.taken) == 2)
        wait_for(lambda: "webhook_back" in {getattr(r, "action", "") for r in caplog.records})

    assert not crashed.is_set()
    actions = [getattr(record, "action", "") for record in caplog.records]
    assert actions.count("webhook_failing") == actions.count("webhook_back") == 1


class Absent(MemoryStore):
    """A store that is away when told so."""

    is_away = False

    def head(self) -> Cursor:
        if self.is_away:
            raise Unavailable("the store is away")
        return super().head()


def test_a_store_that_is_away_is_waited_for() -> None:
    world = World(WEB)
    store = Absent(world.clock)
    world = World(WEB, clock=world.clock, store=WatchedStore(store))
    post = SimulatedPost()
    hooks = assemble_hooks(world.parts, post, "sub")
    hooks.webhooks.add(SUBSCRIPTION, OPERATOR)
    store.is_away = True

    with running(world, hooks) as crashed:
        world.announce(EventType.FREEZE, "web-0")
        time.sleep(0.1)
        store.is_away = False
        wait_for(lambda: len(post.taken) == 2)

    assert not crashed.is_set()


def test_a_bug_stops_the_service() -> None:
    world = World(WEB)
    hooks = assemble_hooks(world.parts, SimulatedPost(lambda _target, _received: 1 // 0), "sub")
    hooks.webhooks.add(SUBSCRIPTION, OPERATOR)

    with running(world, hooks) as crashed:
        world.announce(EventType.FREEZE, "web-0")
        assert crashed.wait(20)
