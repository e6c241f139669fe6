"""What happened, and the record of one event."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.events import Event, EventStatus, EventType
from forewarn.core.journal import Role, What
from forewarn.core.names import ScopeId
from forewarn.core.scopes import Enabling
from forewarn.core.wishes import Wish
from forewarn.errors import Pruned, UnknownEvent
from forewarn.ports.store import Cursor
from forewarn.service.journals import PAGE, SEARCHED_PAGES_MAX, Filter
from forewarn.testing.worlds import NOON, OPERATOR, WEB, World

BEGINNING = Cursor("")
HOUR = timedelta(hours=1)
ASKING = replace(WEB, name="asking", enabling=Enabling.ON_REQUEST, machines=())


def story() -> tuple[World, Event, Event]:
    """Two events: one that ran its course, one that was called off an hour later."""
    world = World(WEB, ASKING)
    first = world.announce(EventType.FREEZE, "web-0")
    world.approve("10.0.0.10", first.id)
    world.advance(HOUR)
    second = world.announce(EventType.REBOOT, "web-1")
    world.desk.cancel(second.id, OPERATOR)
    world.settle()
    return world, first, second


def test_the_journal_is_read_page_by_page_without_gap_or_repeat() -> None:
    """keeps S23."""
    world, *_ = story()
    journals = world.parts.journals
    whats: list[What] = []
    page = journals.page(BEGINNING, 2, Filter())
    while not page.is_last:
        whats += [line.entry.what for line in page.lines]
        page = journals.page(page.cursor, 2, Filter())
    whats += [line.entry.what for line in page.lines]

    assert whats == [entry.what for entry in world.journal()]
    assert whats == [
        *(What.ROSTER, What.ROSTER),
        *(What.ANNOUNCED, What.READABLE, What.APPROVED, What.STARTED, What.COMPLETED),
        *(What.ANNOUNCED, What.READABLE, What.CANCELED),
    ]


def test_at_the_end_the_cursor_stays() -> None:
    world, *_ = story()
    end = world.store.head()

    page = world.parts.journals.page(end, 10, Filter())

    assert (page.lines, page.cursor, page.is_last) == ((), end, True)


def test_only_what_is_wanted_is_read() -> None:
    world, first, second = story()
    journals = world.parts.journals

    of_event = journals.page(BEGINNING, 100, Filter(event=f"{{{second.id.lower()}}}"))
    of_scope = journals.page(BEGINNING, 100, Filter(scope=ASKING.id))
    of_neither = journals.page(BEGINNING, 100, Filter(scope=ASKING.id, event=first.id))

    assert [line.entry.what for line in of_event.lines] == [
        What.ANNOUNCED,
        What.READABLE,
        What.CANCELED,
    ]
    assert [line.entry.what for line in of_scope.lines] == [What.ROSTER]
    assert of_neither.lines == ()
    assert of_neither.cursor == world.store.head()


def test_the_record_of_an_event_outlives_its_ledger() -> None:
    """keeps N6."""
    world, first, _ = story()
    world.advance(timedelta(days=30))
    with pytest.raises(UnknownEvent):
        world.desk.event(first.id)

    scope, record = world.parts.journals.event(first.id.lower())

    assert scope == WEB.id
    assert record.status is EventStatus.COMPLETED
    assert record.announced_at == record.readable_at == record.started_at == NOON
    assert record.approval is not None
    assert (record.approval.by, record.approval.address) == ("web-0", "10.0.0.10")
    assert record.ended_at == NOON + timedelta(seconds=9)


def test_a_long_journal_is_searched_to_its_end() -> None:
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    for _ in range(PAGE):
        world.desk.postpone(event.id, timedelta(seconds=1), OPERATOR)

    _, record = world.parts.journals.event(event.id)

    assert record.not_before == event.not_before + timedelta(seconds=PAGE)


def test_an_event_nobody_announced_has_no_record() -> None:
    world, *_ = story()

    with pytest.raises(UnknownEvent, match="NOBODY"):
        world.parts.journals.event("NOBODY")


def test_pruning_forgets_what_is_older_and_says_so() -> None:
    world, first, second = story()
    journals = world.parts.journals
    ledgers = list(world.parts.books.all())

    pruned = journals.prune(NOON + HOUR, OPERATOR)

    assert pruned == 7
    assert [entry.what for entry in world.journal()] == [
        *(What.ANNOUNCED, What.READABLE, What.CANCELED, What.PRUNED)
    ]
    note = world.journal()[-1]
    assert note.note == f"{pruned} entries before 2030-01-01T13:00:00Z"
    assert (note.scope, note.actor, note.at) == (ScopeId(""), OPERATOR, NOON + HOUR)
    assert list(world.parts.books.all()) == ledgers
    assert journals.event(second.id)[1].status is EventStatus.CANCELED
    with pytest.raises(UnknownEvent):
        journals.event(first.id)


def test_whoever_reads_on_from_a_pruned_place_is_told() -> None:
    world, *_ = story()
    cursor = world.parts.journals.page(BEGINNING, 1, Filter()).cursor
    world.parts.journals.prune(NOON + HOUR, OPERATOR)

    with pytest.raises(Pruned):
        world.parts.journals.page(cursor, 10, Filter())


def test_pruning_an_empty_journal_is_no_news() -> None:
    world = World()

    assert world.parts.journals.prune(NOON, OPERATOR) == 0

    assert world.journal() == []


def test_pruning_everything_keeps_the_newest_commit() -> None:
    world, *_ = story()
    count = len(world.journal())

    assert world.parts.journals.prune(NOON + 2 * HOUR, OPERATOR) == count - 1

    assert [entry.what for entry in world.journal()] == [What.CANCELED, What.PRUNED]


def test_a_long_journal_is_pruned_at_the_right_place() -> None:
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    for _ in range(PAGE):
        world.desk.postpone(event.id, timedelta(seconds=1), OPERATOR)
    world.clock.advance(timedelta(minutes=1))
    world.desk.cancel(event.id, OPERATOR)

    world.parts.journals.prune(world.clock.now(), OPERATOR)

    assert [entry.what for entry in world.journal()] == [What.CANCELED, What.PRUNED]


def found(world: World, wanted: Filter) -> list[tuple[What, str]]:
    page = world.parts.journals.search(BEGINNING, 1000, wanted)
    return [(line.entry.what, line.entry.scope) for line in page.lines]


@pytest.mark.parametrize(
    ("wanted", "whats"),
    [
        (Filter(group="RG1", what=What.ROSTER), [What.ROSTER, What.ROSTER]),
        (Filter(group="rg"), []),
        (Filter(type=EventType.REBOOT), [What.ANNOUNCED, What.READABLE, What.CANCELED]),
        (Filter(what=What.CANCELED), [What.CANCELED]),
        (Filter(machine="WEB-1", what=What.READABLE), [What.READABLE]),
        (Filter(machine="rg1/web-1", what=What.READABLE), [What.READABLE]),
        (Filter(machine="rg1/web/web-1", what=What.READABLE), [What.READABLE]),
        (Filter(machine="rg2/web-1"), []),
        (Filter(actor="WEB-0"), [What.APPROVED]),
        (Filter(role=Role.GUEST), [What.APPROVED]),
        (Filter(until=NOON), []),
        (Filter(since=NOON + HOUR), [What.ANNOUNCED, What.READABLE, What.CANCELED]),
        (Filter(since=NOON + HOUR, until=NOON + HOUR), []),
        (
            Filter(of_events=True, until=NOON + timedelta(seconds=1), role=Role.GUEST),
            [What.APPROVED],
        ),
        (Filter(of_events=True, what=What.ROSTER), []),
        (Filter(concerns=lambda scope: scope == "rg1/asking"), [What.ROSTER]),
    ],
)
def test_lines_are_found_by_what_is_known_of_them(wanted: Filter, whats: list[What]) -> None:
    """keeps S23."""
    world, *_ = story()

    assert [what for what, _ in found(world, wanted)] == whats


def test_a_search_is_told_in_pages_without_gap_or_repeat() -> None:
    world, *_ = story()
    journals, wanted = world.parts.journals, Filter(of_events=True)
    whats: list[What] = []
    page = journals.search(BEGINNING, 3, wanted)
    sizes = [len(page.lines)]
    while True:
        whats += [line.entry.what for line in page.lines]
        if page.is_last:
            break
        page = journals.search(page.cursor, 3, wanted)
        sizes.append(len(page.lines))

    assert whats == [entry.what for entry in world.journal() if entry.event is not None]
    assert sizes == [3, 3, 2]


def test_lines_of_one_commit_stay_together() -> None:
    world = World(WEB)
    wish = Wish(type=EventType.FREEZE, machines=("web-0", "web-1", "web-2"))
    world.announce(EventType.FREEZE, "web-0")
    world.desk.announce(wish, (), OPERATOR)
    wanted = Filter(what=What.ANNOUNCED)

    first = world.parts.journals.search(BEGINNING, 2, wanted)
    second = world.parts.journals.search(first.cursor, 2, wanted)

    assert [len(page.lines) for page in (first, second)] == [1, 3]
    assert [page.is_last for page in (first, second)] == [False, True]


def test_a_search_that_finds_nothing_says_where_to_go_on() -> None:
    """Nobody keeps a thread for as long as the journal is."""
    world = World(WEB)
    entry = world.journal()[0]
    for _ in range(SEARCHED_PAGES_MAX * PAGE):
        world.parts.books.journalize(entry)

    page = world.parts.journals.search(BEGINNING, 10, Filter(event="none"))
    rest = world.parts.journals.search(page.cursor, 10, Filter(event="none"))

    assert (page.lines, page.is_last, rest.lines, rest.is_last) == ((), False, (), True)
