"""Webhooks as people ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.events import EventType
from forewarn.core.journal import Actor, Role, What
from forewarn.core.names import ScopeId
from forewarn.core.targets import Target
from forewarn.core.webhooks import (
    WEBHOOKS_MAX,
    WEBHOOKS_OF_ONE_MAX,
    ChangeId,
    DeadLetter,
    Wanted,
    WebhookId,
)
from forewarn.errors import Conflict, OutcomeUnknown, Refused, Unavailable, Unknown
from forewarn.ids import RandomIds
from forewarn.ports.store import CommitId, Cursor, Lease, Write
from forewarn.service.deliveries import Counts, Writer
from forewarn.service.webhooks import CONFLICTS_MAX, Subscription, Webhooks
from forewarn.stores.memory import MemoryStore
from forewarn.testing.receivers import Received, SimulatedPost, is_signed
from forewarn.testing.worlds import OPERATOR, WEB, World
from forewarn.wire import webhook_records as spelling
from forewarn.wire.signatures import dump_secret
from forewarn.wire.targets import load_target

SECRET = b"s" * 32
ASKED = Subscription(
    name="pager", target=load_target("https://hooks.example.org/hook"), wanted=Wanted()
)


class Rival(MemoryStore):
    """A store at which somebody else, when told to, always commits first; or answers are lost."""

    rivals = 0
    lost = 0

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        if self.rivals:
            self.rivals -= 1
            raise Conflict([write.key for write in writes])
        done = super().commit(commit_id, writes, journal, lease)
        if self.lost:
            self.lost -= 1
            raise OutcomeUnknown("the answer was lost")
        return done


def house(post: SimulatedPost | None = None) -> tuple[World, Webhooks, Rival, Counts]:
    world = World(WEB)
    store = Rival(world.clock)
    counts = Counts()
    webhooks = Webhooks(
        clock=world.clock,
        store=store,
        ids=RandomIds(),
        writer=Writer(lambda _: None, "sub"),
        post=post or SimulatedPost(),
        new_secret=lambda: SECRET,
        counts=counts,
    )
    return world, webhooks, store, counts


def test_a_webhook_is_kept_and_listed_by_name() -> None:
    _, webhooks, _, _ = house()
    second = webhooks.add(ASKED, OPERATOR)
    first = webhooks.add(replace(ASKED, name="Alarm"), OPERATOR)

    assert webhooks.all() == (first, second)
    assert webhooks.get(first.id.upper()) == first
    assert first.created_by == OPERATOR.name
    assert first.secret == SECRET


def test_every_step_is_in_the_journal_without_the_secret_or_the_path() -> None:
    _, webhooks, store, _ = house()
    hook = webhooks.add(ASKED, Actor(Role.OWNER, "olga", "10.0.0.1"))
    webhooks.pause(hook.id, OPERATOR)
    webhooks.resume(hook.id, OPERATOR)
    webhooks.remove(hook.id, OPERATOR)

    journal = b"".join(line for change in store.changes(Cursor(""), 100) for line in change.journal)

    for word in (b"added pager", b"olga", b"paused pager", b"resumed pager", b"removed pager"):
        assert word in journal
    assert dump_secret(SECRET).encode() not in journal
    assert b"/hook" not in journal


def test_a_target_that_is_not_allowed_is_refused() -> None:
    _, webhooks, _, _ = house()
    elsewhere = Target(scheme="https", host="evil.example", port=443, path="/")

    with pytest.raises(Refused, match="allow-list"):
        webhooks.add(replace(ASKED, target=elsewhere), OPERATOR)


def test_a_name_is_given_once() -> None:
    _, webhooks, _, _ = house()
    webhooks.add(ASKED, OPERATOR)

    with pytest.raises(Refused, match="already"):
        webhooks.add(replace(ASKED, name="PAGER"), OPERATOR)


def test_there_are_not_too_many() -> None:
    _, webhooks, _, _ = house()
    for number in range(WEBHOOKS_MAX):
        webhooks.add(replace(ASKED, name=f"hook-{number}"), OPERATOR)

    with pytest.raises(Refused, match="remove one"):
        webhooks.add(ASKED, OPERATOR)


def test_no_owner_has_them_all() -> None:
    _, webhooks, _, _ = house()
    olga, otto = (Actor(Role.OWNER, name, "127.0.0.1") for name in ("olga", "otto"))
    for number in range(WEBHOOKS_OF_ONE_MAX):
        webhooks.add(replace(ASKED, name=f"hook-{number}"), olga)

    with pytest.raises(Refused, match="olga has 20 webhooks already: remove one"):
        webhooks.add(ASKED, olga)
    webhooks.add(ASKED, otto)


def test_what_nobody_knows_is_unknown() -> None:
    _, webhooks, _, _ = house()
    hook = webhooks.add(ASKED, OPERATOR)

    for ask in (webhooks.get, webhooks.dead_letters, webhooks.try_out):
        with pytest.raises(Unknown, match="webhook list"):
            ask("nobody")
    with pytest.raises(Unknown, match="dead letter 7"):
        webhooks.redeliver(hook.id, 7, OPERATOR)


def test_whoever_is_shut_out_is_told_nothing_more() -> None:
    _, webhooks, _, _ = house()
    hers = webhooks.add(ASKED, Actor(Role.OWNER, "olga", "10.0.0.1"))
    others = webhooks.add(replace(ASKED, name="siren"), OPERATOR)

    webhooks.pause_all_of("olga", OPERATOR)

    assert webhooks.get(hers.id).is_paused
    assert not webhooks.get(others.id).is_paused


def test_pausing_what_is_paused_changes_nothing() -> None:
    _, webhooks, store, _ = house()
    hook = webhooks.add(ASKED, OPERATOR)
    paused = webhooks.pause(hook.id, OPERATOR)
    head = store.head()

    assert webhooks.pause(hook.id, OPERATOR) == paused
    assert store.head() == head


def test_whoever_is_overtaken_looks_again() -> None:
    _, webhooks, store, _ = house()
    hook = webhooks.add(ASKED, OPERATOR)
    store.rivals = 3

    assert webhooks.pause(hook.id, OPERATOR).is_paused
    store.rivals = 3
    webhooks.remove(hook.id, OPERATOR)

    assert webhooks.all() == ()


def test_whoever_is_overtaken_again_and_again_is_told() -> None:
    _, webhooks, store, _ = house()
    hook = webhooks.add(ASKED, OPERATOR)
    store.rivals = 2 * CONFLICTS_MAX

    with pytest.raises(Conflict):
        webhooks.pause(hook.id, OPERATOR)
    with pytest.raises(Conflict):
        webhooks.remove(hook.id, OPERATOR)


def test_a_commit_whose_outcome_is_unknown_is_repeated() -> None:
    _, webhooks, store, _ = house()
    store.lost = 1
    webhooks.add(ASKED, OPERATOR)
    store.lost = 5
    webhooks.add(replace(ASKED, name="other"), OPERATOR)

    assert len(webhooks.all()) == 2


def test_a_trial_is_signed_and_says_that_it_is_one() -> None:
    post = SimulatedPost()
    _, webhooks, _, _ = house(post)
    hook = webhooks.add(ASKED, OPERATOR)

    change = webhooks.try_out(hook.id)

    (received,) = post.taken
    assert received.id == change
    assert received.json["type"] == "forewarn.test"
    assert is_signed(received, dump_secret(SECRET))


def test_a_trial_that_is_not_taken_says_why() -> None:
    post = SimulatedPost(lambda _target, _received: 302)
    _, webhooks, _, _ = house(post)
    hook = webhooks.add(ASKED, OPERATOR)

    with pytest.raises(Unavailable, match="302: redirections are not followed"):
        webhooks.try_out(hook.id)


def test_few_wait_for_a_trial_at_a_time() -> None:
    post = SimulatedPost()
    _, webhooks, _, _ = house(post)
    hook = webhooks.add(ASKED, OPERATOR)

    def again(_target: Target, _received: Received) -> int:
        if len(refused) < 2:
            refused.append("")
            webhooks.try_out(hook.id)
        return 200

    refused: list[str] = []
    post.answers = again
    with pytest.raises(Unavailable, match="others are trying"):
        webhooks.try_out(hook.id)

    post.answers = lambda _target, _received: 200
    webhooks.try_out(hook.id)


def test_what_says_only_what_is_missing_is_not_delivered_but_discarded() -> None:
    world, webhooks, store, counts = house()
    hook = webhooks.add(ASKED, OPERATOR)
    letter = DeadLetter(number=1, change=None, entry=None, at=world.clock.now(), tries=0, why="?")
    _put(store, hook.id, letter)
    counts.dead_letters[hook.id] = 1

    with pytest.raises(Refused, match="discard"):
        webhooks.redeliver(hook.id, 1, OPERATOR)
    webhooks.discard(hook.id, 1, OPERATOR)

    assert webhooks.dead_letters(hook.id) == ()
    assert counts.dead == 0


def test_all_dead_letters_are_listed_and_go_with_their_webhook() -> None:
    world, webhooks, store, _ = house()
    hook = webhooks.add(ASKED, OPERATOR)
    for number in range(1, 1203):
        _put(
            store,
            hook.id,
            DeadLetter(
                number=number, change=None, entry=None, at=world.clock.now(), tries=0, why=""
            ),
        )

    assert [one.number for one in webhooks.dead_letters(hook.id)] == list(range(1, 1203))
    webhooks.remove(hook.id, OPERATOR)

    assert store.scan("webhook", "", 10) == []


def test_a_letter_about_a_scope_that_nobody_knows_any_more_is_delivered() -> None:
    post = SimulatedPost()
    world, webhooks, store, _ = house(post)
    hook = webhooks.add(ASKED, OPERATOR)
    world.announce(EventType.FREEZE, "web-0")
    world.advance(timedelta(seconds=1))
    entry = next(e for e in world.journal() if e.what is What.ANNOUNCED)
    letter = DeadLetter(
        number=1,
        change=ChangeId("c.0"),
        entry=replace(entry, scope=ScopeId("rg9/gone")),
        at=world.clock.now(),
        tries=5,
        why="answered 500",
    )
    _put(store, hook.id, letter)

    webhooks.redeliver(hook.id, 1, OPERATOR)

    assert post.taken[0].json["source"].endswith("/resourceGroups/rg9/providers/Microsoft.Compute/virtualMachines/web-0")  # fmt: skip
    assert webhooks.dead_letters(hook.id) == ()


def _put(store: Rival, webhook: WebhookId, letter: DeadLetter) -> None:
    key = spelling.letter_key(webhook, letter.number)
    store.commit(RandomIds().commit_id(), (Write(key, 0, spelling.dump_letter(letter)),), ())
