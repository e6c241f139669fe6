"""A store that comes from a backup, made fit to be served."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.documents import INCARNATION_MAX
from forewarn.core.events import EventStatus, EventType, Result
from forewarn.core.journal import Entry, What
from forewarn.core.names import ScopeId
from forewarn.core.restoring import JUMP_MIN, Overdue
from forewarn.errors import Refused
from forewarn.service.journals import PAGE
from forewarn.service.restorer import Restored, Restorer
from forewarn.testing.worlds import NOON, OPERATOR, WEB, World

HOUR = timedelta(hours=1)
OTHER = replace(WEB, name="other", machines=())


def restored(world: World, overdue: Overdue = Overdue.CANCEL) -> Restored:
    parts = world.parts
    restorer = Restorer(parts.clock, parts.ids, parts.store, parts.books, parts.rules)
    return restorer.restore(overdue, OPERATOR)


def back_up(world: World) -> None:
    """Write what the backup command does, as its last line."""
    world.parts.books.journalize(
        Entry(at=world.clock.now(), scope=ScopeId(""), what=What.BACKED_UP, actor=OPERATOR)
    )


def test_incarnations_leap_over_all_that_guests_can_have_seen() -> None:
    """keeps S9: an incarnation never goes back, not even by a restore."""
    world = World(WEB, OTHER)
    world.announce(EventType.FREEZE, "web-0")
    world.clock.advance(HOUR)
    back_up(world)
    world.clock.advance(2 * HOUR)

    done = restored(world)

    assert done == Restored(scopes=2, leap=JUMP_MIN + 10 * 7200, taken_at=NOON + HOUR)
    assert world.document(OTHER.id).incarnation == 1 + done.leap
    assert world.document(WEB.id).incarnation == 2 + done.leap
    entry = world.journal()[-1]
    assert entry.what is What.RESTORED
    assert entry.note == f"backup of 2030-01-01T13:00:00Z; 2 incarnations raised by {done.leap}"


def test_an_overdue_event_is_called_off() -> None:
    """keeps S11: nobody can tell whether its notice could be read."""
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    back_up(world)
    world.clock.advance(HOUR)

    restored(world)

    assert world.event(event.id).status is EventStatus.CANCELED
    assert world.document(WEB.id).notices == ()


def test_an_overdue_event_may_be_announced_anew_with_its_full_notice() -> None:
    """keeps S11."""
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0", "web-3")
    back_up(world)
    world.clock.advance(HOUR)

    restored(world, Overdue.REANNOUNCE)

    (notice,) = world.document(WEB.id).notices
    assert notice.id != event.id
    assert notice.machines == event.machines
    assert notice.not_before == NOON + HOUR + timedelta(minutes=15, seconds=2)
    world.advance(timedelta(minutes=15))
    assert world.event(notice.id).status is EventStatus.SCHEDULED
    world.advance(timedelta(seconds=2))
    assert world.event(notice.id).status is EventStatus.STARTED


def test_a_started_event_is_over_and_nothing_is_done_twice() -> None:
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    world.approve("10.0.0.10", event.id)
    back_up(world)

    restored(world)
    world.advance(HOUR)

    assert [outcome.result for outcome in world.event(event.id).outcomes] == [Result.LOST]
    assert len(world.fabric.impacts) == 1


def test_a_store_without_a_journal_is_taken_to_be_a_day_old() -> None:
    world = World()

    done = restored(world)

    assert done == Restored(scopes=0, leap=JUMP_MIN + 864_000, taken_at=NOON - timedelta(days=1))


def test_the_last_line_of_a_long_journal_counts() -> None:
    world = World(WEB)
    for _ in range(PAGE):
        back_up(world)
    world.clock.advance(HOUR)
    back_up(world)

    assert restored(world).taken_at == NOON + HOUR


def test_a_backup_whose_numbers_would_not_fit_is_refused() -> None:
    """keeps S9: clients read the number into 32 bits."""
    world = World(WEB)
    back_up(world)
    world.clock.advance(timedelta(seconds=INCARNATION_MAX // 10))

    with pytest.raises(Refused, match="too old"):
        restored(world)

    assert world.document(WEB.id).incarnation == 1
