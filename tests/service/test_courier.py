"""The courier over memory and simulation: nothing missed, in order, whatever receivers do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.clocks import SimulatedClock
from forewarn.core.events import EventType
from forewarn.core.journal import What
from forewarn.core.scopes import Scope
from forewarn.core.targets import Target
from forewarn.core.webhooks import DEAD_LETTERS_MAX, Wanted, Webhook, WebhookId
from forewarn.errors import OutcomeUnknown, Unavailable
from forewarn.ids import SeededIds
from forewarn.ports.store import CommitId, Cursor, Lease, Store, Write
from forewarn.service import satchels
from forewarn.service.courier import Courier, Rounds
from forewarn.service.deliveries import Counts, Delivery, Writer, carry
from forewarn.service.webhooks import Subscription, Webhooks
from forewarn.stores.memory import MemoryStore
from forewarn.testing.receivers import Received, SimulatedPost
from forewarn.testing.worlds import NOON, OPERATOR, WEB, World
from forewarn.wire import records, webhook_records
from forewarn.wire.targets import load_target

SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
TARGET = load_target("https://hooks.example.org/hook")
OTHERS = tuple(
    replace(WEB, name=f"web{n}", machines=(replace(WEB.machines[0], addresses=()),))
    for n in range(5)
)


@dataclass
class Carriage:
    """A service with webhooks whose receivers are simulated; each `Courier` is a new process."""

    world: World
    post: SimulatedPost = field(default_factory=SimulatedPost)
    # What is sent is carried out by and by, not at once.
    is_slow: bool = False
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        parts = self.world.parts
        self.writer = Writer(self._scope, SUBSCRIPTION)
        self.sent: list[Delivery] = []
        self.webhooks = Webhooks(
            clock=parts.clock,
            store=parts.store,
            ids=parts.ids,
            writer=self.writer,
            post=self.post,
            new_secret=lambda: b"s" * 32,
            counts=self.counts,
        )
        self.die()

    def die(self) -> None:
        """Lose all that is only in memory."""
        parts = self.world.parts
        self.sent = []
        self.courier = Courier(
            parts.clock, parts.store, parts.ids, self.writer, self._send, self.counts
        )

    def settle(self, turns: int = 10_000) -> Rounds:
        """Let the courier do all that is due now."""
        for _ in range(turns):
            rounds = self.courier.turn()
            if rounds.wait is None or rounds.wait > timedelta():
                return rounds
        raise AssertionError("the courier did not come to rest")

    def advance(self, by: timedelta) -> None:
        """Let time pass, with the courier waking whenever it wants to."""
        until = self.world.clock.elapsed() + by
        while (wait := self.settle().wait) is not None:
            if self.world.clock.elapsed() + wait > until:
                break
            self.world.clock.advance(wait)
        self.world.clock.advance(until - self.world.clock.elapsed())
        self.settle()

    def carry(self) -> None:
        sent, self.sent = self.sent, []
        for delivery in sent:
            self.courier.came_back(delivery, carry(self.post, delivery))

    def _send(self, delivery: Delivery) -> None:
        if self.is_slow:
            self.sent.append(delivery)
        else:
            self.courier.came_back(delivery, carry(self.post, delivery))

    def _scope(self, scope: str) -> Scope | None:
        posting = self.world.parts.board.posting(scope)  # type: ignore[arg-type]
        return None if posting is None else posting.scope


def subscription(wanted: Wanted | None = None, name: str = "pager") -> Subscription:
    return Subscription(name=name, target=TARGET, wanted=wanted or Wanted())


def carriage(*scopes: Scope, post: SimulatedPost | None = None) -> tuple[Carriage, Webhook]:
    made = Carriage(World(*(scopes or (WEB,))), post or SimulatedPost())
    hook = made.webhooks.add(subscription(), OPERATOR)
    made.settle()
    return made, hook


def changes(store: Store) -> list[tuple[str, str]]:
    """The ids of all changes that the journal has, each with its scope."""
    found: list[tuple[str, str]] = []
    for change in store.changes(Cursor(""), 1_000_000):
        for number, value in enumerate(change.journal):
            entry = records.load_entry(value)
            if entry.event is not None:
                found.append((f"{change.commit_id}.{number}", entry.scope))
    return found


def by_scope(told: Sequence[tuple[str, str]]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for change, scope in told:
        if change not in found[scope]:
            found[scope].append(change)
    return found


def told(received: Sequence[Received]) -> list[tuple[str, str]]:
    return [(one.id, one.json["data"]["Scope"]) for one in received]


def only(*paths: str) -> Callable[[Target, Received], int]:
    """Answers that refuse everything about these scopes."""
    return lambda _, received: 500 if received.json["data"]["Scope"] in paths else 200


def test_a_webhook_is_told_of_every_change_in_order() -> None:
    """keeps N10"""
    made, _ = carriage()

    event = made.world.announce(EventType.REBOOT, "web-0")
    made.world.approve("10.0.0.10", event.id)
    made.world.advance(timedelta(minutes=5))
    made.settle()

    assert told(made.post.taken) == changes(made.world.store)
    types = [one.json["type"] for one in made.post.taken]
    assert types[0] == "forewarn.event.scheduled"
    assert types[-1] == "forewarn.event.completed"
    assert made.counts.delivered == len(types)
    assert made.counts.waiting == made.counts.dead == 0


def test_what_was_before_a_webhook_is_not_told() -> None:
    world = World(WEB)
    world.announce(EventType.REBOOT, "web-0")
    made = Carriage(world)
    made.webhooks.add(subscription(), OPERATOR)

    made.settle()

    assert made.post.received == []


def test_nothing_happens_without_news() -> None:
    made, _ = carriage()
    made.world.announce(EventType.REBOOT, "web-0")
    made.settle()
    head = made.world.store.head()

    made.advance(timedelta(hours=1))

    assert made.world.store.head() == head


def test_a_position_that_moved_over_nothing_to_tell_is_stored_once_in_a_while() -> None:
    made, _ = carriage(WEB)
    for number in range(50):
        made.world.declare(replace(WEB, location=f"l{number}"))
        made.settle()
    made.world.clock.advance(timedelta(minutes=2))
    made.settle()
    head = made.world.store.head()
    made.world.store.prune(head)

    made.die()
    made.settle()

    assert made.counts.dead == 0


def test_a_receiver_that_was_down_misses_nothing() -> None:
    """keeps N10"""
    post = SimulatedPost(lambda _target, _received: 0)
    made, hook = carriage(WEB, *OTHERS, post=post)
    event = made.world.announce(EventType.REBOOT, "rg1/web/web-0")
    made.world.announce(EventType.FREEZE, "rg1/web1/web-0")
    made.advance(timedelta(hours=3))
    made.world.approve("10.0.0.10", event.id)
    assert "it is away" in made.courier.standings[hook.id].trouble
    assert not post.taken

    post.answers = lambda _target, _received: 200
    made.advance(timedelta(minutes=11))

    assert by_scope(told(post.taken)) == by_scope(changes(made.world.store))
    assert made.courier.standings[hook.id].trouble == ""
    assert made.counts.failed > 0


def test_a_receiver_that_is_down_is_tried_less_and_less_often() -> None:
    post = SimulatedPost(lambda _target, _received: 503)
    made, _ = carriage(post=post)
    made.world.announce(EventType.REBOOT, "web-0")

    made.advance(timedelta(hours=2))

    assert 15 < len(post.received) < 40


def test_scopes_do_not_wait_for_each_other() -> None:
    """keeps N10"""
    post = SimulatedPost(only("rg1/web0"))
    made, _ = carriage(*OTHERS, post=post)
    for number in range(5):
        made.world.announce(EventType.FREEZE, f"rg1/web{number}/web-0")
    made.settle()

    expected = [one for one in changes(made.world.store) if one[1] != "rg1/web0"]
    assert sorted(told(post.taken)) == sorted(expected)
    refused = {one.id for one in post.received if one.status == 500}
    assert refused == {by_scope(changes(made.world.store))["rg1/web0"][0]}

    post.answers = only()
    made.advance(timedelta(minutes=1))
    assert by_scope(told(post.taken)) == by_scope(changes(made.world.store))


def test_a_restart_goes_on_where_each_scope_was() -> None:
    post = SimulatedPost(only("rg1/web0"))
    made, _ = carriage(*OTHERS, post=post)
    for number in range(5):
        made.world.announce(EventType.FREEZE, f"rg1/web{number}/web-0")
    made.settle()
    taken = len(post.taken)
    made.die()
    made.settle()
    assert len(post.taken) == taken

    post.answers = only()
    made.die()
    made.settle()

    assert sorted(told(post.taken)) == sorted(changes(made.world.store))


def test_a_change_is_given_up_on_after_a_day_and_can_be_delivered_later() -> None:
    """keeps N10"""
    post = SimulatedPost(only("rg1/web0"))
    made, hook = carriage(*OTHERS, post=post)
    made.world.announce(EventType.FREEZE, "rg1/web0/web-0")
    made.world.announce(EventType.FREEZE, "rg1/web1/web-0")
    first, second = by_scope(changes(made.world.store))["rg1/web0"]

    made.advance(timedelta(hours=23))
    assert made.counts.dead == 0
    made.advance(timedelta(hours=2))

    letters = made.webhooks.dead_letters(hook.id)
    assert [letter.change for letter in letters] == [first, second]
    assert letters[0].why == "answered 500"
    assert letters[0].tries > 100
    assert made.counts.dead == made.counts.given_up == 2
    journal = [e for e in made.world.journal() if e.what is What.WEBHOOK]
    assert first in journal[-2].note
    with pytest.raises(Unavailable, match="answered 500"):
        made.webhooks.redeliver(hook.id, 1, OPERATOR)
    post.answers = only()
    made.webhooks.redeliver(hook.id, 1, OPERATOR)
    assert post.taken[-1].id == first
    assert made.counts.dead == 1
    made.webhooks.discard(hook.id, 2, OPERATOR)
    assert made.webhooks.dead_letters(hook.id) == ()


def test_one_change_that_is_never_taken_does_not_cost_those_behind_it() -> None:
    post = SimulatedPost()
    made, hook = carriage(post=post)
    post.answers = lambda _, received: 500 if received.json["type"].endswith("scheduled") else 200
    made.world.announce(EventType.FREEZE, "web-0")

    made.advance(timedelta(hours=25))

    (letter,) = made.webhooks.dead_letters(hook.id)
    assert letter.entry is not None
    assert letter.entry.what is What.ANNOUNCED
    assert [one.json["type"] for one in post.taken] == ["forewarn.event.readable"]


def test_a_journal_that_was_pruned_too_early_leaves_a_letter_that_says_so() -> None:
    """keeps N10"""
    made, hook = carriage()
    made.webhooks.pause(hook.id, OPERATOR)
    made.settle()
    made.world.announce(EventType.FREEZE, "web-0")
    made.world.clock.advance(timedelta(hours=1))
    made.world.parts.journals.prune(made.world.clock.now(), OPERATOR)
    made.world.announce(EventType.FREEZE, "web-1")
    made.webhooks.resume(hook.id, OPERATOR)

    made.settle()

    (letter,) = made.webhooks.dead_letters(hook.id)
    assert "pruned" in letter.why
    assert letter.entry is None
    assert told(made.post.taken) == changes(made.world.store)
    made.die()
    made.settle()
    assert made.counts.dead == 1


def test_what_is_in_memory_is_told_although_the_journal_lost_it() -> None:
    post = SimulatedPost(lambda _target, _received: 500)
    made, hook = carriage(post=post)
    made.world.announce(EventType.FREEZE, "web-0")
    made.settle()
    lost = changes(made.world.store)
    made.webhooks.pause(hook.id, OPERATOR)
    made.settle()
    made.world.announce(EventType.FREEZE, "web-1")
    made.world.clock.advance(timedelta(hours=1))
    made.world.parts.journals.prune(made.world.clock.now(), OPERATOR)
    made.world.announce(EventType.FREEZE, "web-2")
    made.webhooks.resume(hook.id, OPERATOR)

    post.answers = only()
    made.advance(timedelta(minutes=1))

    assert told(post.taken) == lost + changes(made.world.store)


def test_a_paused_webhook_is_told_later() -> None:
    made, hook = carriage()
    made.webhooks.pause(hook.id, OPERATOR)
    made.world.announce(EventType.FREEZE, "web-0")
    made.settle()
    assert made.post.received == []

    made.webhooks.resume(hook.id, OPERATOR)
    made.settle()

    assert told(made.post.taken) == changes(made.world.store)


def test_a_removed_webhook_is_told_nothing_more() -> None:
    made, hook = carriage()
    made.is_slow = True
    made.world.announce(EventType.FREEZE, "web-0")
    made.settle()
    assert made.sent

    made.webhooks.remove(hook.id, OPERATOR)
    made.carry()
    made.settle()
    made.world.announce(EventType.FREEZE, "web-1")
    made.settle()
    made.carry()

    assert len(made.post.received) == 1
    assert made.counts.webhooks == 0
    assert made.world.store.scan("webhook", "", 100) == []


def test_what_comes_back_for_a_webhook_that_is_gone_is_nobodys() -> None:
    made, hook = carriage()
    made.is_slow = True
    made.world.announce(EventType.FREEZE, "web-0")
    made.settle()
    made.webhooks.remove(hook.id, OPERATOR)
    made.settle()

    made.carry()
    made.settle()

    assert made.counts.delivered == 0


def test_a_webhook_that_is_removed_while_the_roll_is_called_is_passed_over() -> None:
    made, hook = carriage()
    write = Write(
        webhook_records.webhook_key(WebhookId("x")), 0, webhook_records.dump_webhook(hook)
    )
    made.webhooks.remove(hook.id, OPERATOR)
    made.world.store.commit(CommitId("half"), (write,), ())

    made.die()
    made.settle()

    assert hook.id not in made.courier.standings


def test_too_many_dead_letters_stop_a_webhook_until_somebody_looks() -> None:
    made, hook = carriage()
    made.counts.dead_letters[hook.id] = DEAD_LETTERS_MAX
    made.world.announce(EventType.FREEZE, "web-0")
    made.settle()
    assert made.post.received == []

    made.counts.dead_letters[hook.id] -= 1
    made.settle()

    assert told(made.post.taken) == changes(made.world.store)


def test_only_some_are_sent_at_a_time_and_one_of_each_scope() -> None:
    made, _ = carriage(*OTHERS)
    made.is_slow = True
    for number in range(5):
        made.world.announce(EventType.FREEZE, f"rg1/web{number}/web-0")

    made.settle()

    assert len(made.sent) == satchels.IN_FLIGHT_MAX
    scopes = {
        one[1] for one in changes(made.world.store) if one[0] in {d.change for d in made.sent}
    }
    assert len(scopes) == satchels.IN_FLIGHT_MAX


def test_a_change_that_is_under_way_is_neither_sent_again_nor_overtaken() -> None:
    """keeps N10: a slow receiver is not flooded, and is told in order."""
    made, _ = carriage()
    made.is_slow = True
    event = made.world.announce(EventType.FREEZE, "web-0")
    made.settle()
    made.world.desk.cancel(event.id, OPERATOR)

    made.settle()

    first, *_ = changes(made.world.store)
    assert [delivery.change for delivery in made.sent] == [first[0]]


def test_a_satchel_is_read_into_only_while_there_is_room() -> None:
    post = SimulatedPost(lambda _target, _received: 500)
    made, _ = carriage(post=post)
    made.world.announce(EventType.FREEZE, "web-0")
    entry = made.world.journal()[-1]
    for _ in range(1500):
        made.world.parts.books.journalize(entry)
    made.settle()
    assert satchels.LETTERS_MAX <= made.counts.waiting < satchels.LETTERS_MAX + 300

    post.answers = only()
    made.advance(timedelta(minutes=1))

    assert told(post.taken) == changes(made.world.store)


class Forgetful(MemoryStore):
    """A store that, when told to, loses the answers to commits."""

    lost = 0

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        done = super().commit(commit_id, writes, journal, lease)
        if self.lost:
            self.lost -= 1
            raise OutcomeUnknown("the answer was lost")
        return done


def test_a_commit_whose_outcome_is_unknown_is_repeated() -> None:
    clock = SimulatedClock(NOON)
    store = Forgetful(clock)
    made = Carriage(World(WEB, clock=clock, store=store, ids=SeededIds(3)))
    store.lost = 3
    hook = made.webhooks.add(subscription(), OPERATOR)
    made.world.announce(EventType.FREEZE, "web-0")
    made.courier.turn()
    store.lost = 2

    made.settle()
    made.settle()
    made.settle()

    assert store.lost == 0
    assert told(made.post.taken) == changes(store)
    assert made.counts.dead_letters[hook.id] == 0


def test_a_courier_that_was_overtaken_goes_on_where_the_other_is() -> None:
    made, _ = carriage()
    first = made.courier
    made.is_slow = True
    made.world.announce(EventType.FREEZE, "web-0")
    made.settle()
    sent = list(made.sent)
    made.is_slow = False
    made.die()
    made.settle()

    made.courier = first
    for delivery in sent:
        first.came_back(delivery, "")
    made.settle()

    assert told(made.post.taken) == changes(made.world.store)


@given(
    acts=st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(["announce", "die", "fail", "mend", "wait"])),
        max_size=40,
    )
)
def test_whatever_happens_nothing_is_missed_and_the_order_of_each_scope_is_kept(
    acts: list[tuple[int, str]],
) -> None:
    """keeps N10"""
    failing: set[str] = set()
    post = SimulatedPost(
        lambda _, received: 500 if received.json["data"]["Scope"] in failing else 200
    )
    made, _ = carriage(*OTHERS, post=post)
    made.is_slow = True
    for number, act in acts:
        if act == "announce":
            event = made.world.announce(EventType.FREEZE, f"rg1/web{number}/web-0")
            made.world.desk.cancel(event.id, OPERATOR)
        elif act == "die":
            made.die()
        elif act == "fail":
            failing.add(f"rg1/web{number}")
        elif act == "mend":
            failing.discard(f"rg1/web{number}")
        else:
            made.world.clock.advance(timedelta(seconds=number))
        made.settle()
        if number % 2:
            made.carry()
    failing.clear()
    made.is_slow = False
    made.carry()
    made.advance(timedelta(minutes=20))

    assert by_scope(told(post.taken)) == by_scope(changes(made.world.store))
    # Whoever died may tell again what it told, but nothing before it.
    last: dict[str, int] = {}
    for change, scope in told(post.taken):
        place = by_scope(changes(made.world.store))[scope].index(change)
        assert place <= last.get(scope, -1) + 1
        last[scope] = max(place, last.get(scope, -1))
