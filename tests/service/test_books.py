"""Load, decide, commit, tell: what may go wrong in between."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.core import enabling, ledgers
from forewarn.core.journal import SERVICE, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import Incarnation, Revision, ScopeId
from forewarn.core.scopes import Enabling, Scope
from forewarn.errors import Conflict, OutcomeUnknown, Refused, Unavailable, Unknown
from forewarn.ids import SeededIds
from forewarn.ports.store import Cursor
from forewarn.service.books import CONFLICTS_MAX, PAGE, REPEATS_MAX, Books, Ledgers, Writers
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import Fault, FaultyStore
from forewarn.testing.worlds import NOON, WEB
from forewarn.wire import records

ASKING = replace(WEB, enabling=Enabling.ON_REQUEST)
OTHER = replace(ASKING, name="other")


class Library:
    """Books over a store that can be told to fail, and what their readers were told."""

    def __init__(self, *scopes: Scope) -> None:
        self.store = FaultyStore(MemoryStore(SimulatedClock(NOON)))
        self.books = Books(self.store, SeededIds(1))
        self.rival = Books(self.store, SeededIds(2))
        self.told: list[Ledger] = []
        self.books.open([Decision(Ledger(scope=scope)) for scope in scopes])
        self.books.tell(self.told.append)
        self.store.asked.clear()

    def changes(self) -> int:
        return len(self.store.changes(Cursor(""), 1000))


class Memory(Library):
    """Books that decide on what they were told last."""

    def __init__(self, *scopes: Scope, writers: Writers = Writers.SEVERAL) -> None:
        super().__init__(*scopes)
        self.latest = {ledger.scope.id: ledger for ledger in self.books.all()}
        self.books = Books(self.store, SeededIds(3), latest=self.latest.get, writers=writers)
        self.books.tell(self._remember)

    def _remember(self, ledger: Ledger) -> None:
        self.told.append(ledger)
        self.latest[ledger.scope.id] = ledger


def enable(ledger: Ledger) -> Decision:
    return enabling.hear(ledger, SERVICE, NOON)


def leave(ledger: Ledger) -> Decision:
    return Decision(ledger)


def test_a_ledger_that_was_opened_can_be_loaded() -> None:
    library = Library(ASKING)

    ledger = library.books.load(ASKING.id)

    assert ledger == Ledger(scope=ASKING, revision=Revision(1))


def test_a_scope_nobody_declared_is_unknown() -> None:
    library = Library(ASKING)

    with pytest.raises(Unknown, match="no scope rg1/other"):
        library.books.load(ScopeId("rg1/other"))


def test_a_scope_is_opened_once() -> None:
    library = Library(ASKING)

    with pytest.raises(Conflict):
        library.books.open([Decision(Ledger(scope=ASKING))])


def test_an_amended_ledger_is_returned_and_told_as_it_is_stored() -> None:
    library = Library(ASKING)

    amended = library.books.amend(ASKING.id, enable)

    assert amended.revision == 2
    assert amended.enabled_at == NOON
    assert library.books.load(ASKING.id) == amended
    assert library.told == [amended]


def test_the_journal_is_written_in_the_same_commit() -> None:
    """keeps S23."""
    library = Library(ASKING)

    library.books.amend(ASKING.id, enable)

    change = library.store.changes(Cursor(""), 10)[-1]
    (entry,) = map(records.load_entry, change.journal)
    assert [touch.key for touch in change.touched] == [records.key(ASKING.id)]
    assert (entry.what, entry.scope, entry.at) == (What.ENABLED, ASKING.id, NOON)


def test_a_decision_that_changes_nothing_is_not_committed() -> None:
    library = Library(ASKING)

    ledger = library.books.amend(ASKING.id, leave)

    assert ledger.revision == 1
    assert not library.told
    assert not library.store.asked


def test_an_entry_alone_is_committed_without_a_new_revision() -> None:
    library = Library(ASKING)

    ledger = library.books.amend(
        ASKING.id, lambda found: ledgers.note(found, What.ROSTER, SERVICE, NOON, None, "looked")
    )

    assert ledger.revision == 1
    assert not library.told
    assert library.changes() == 2


def test_whoever_is_overtaken_decides_again_on_what_is_there_now() -> None:
    library = Library(ASKING)
    library.store.overtake(lambda: library.rival.amend(ASKING.id, enable))
    seen: list[int] = []

    def rename(ledger: Ledger) -> Decision:
        seen.append(ledger.revision)
        return Decision(replace(ledger, scope=replace(ledger.scope, location="west")))

    amended = library.books.amend(ASKING.id, rename)

    assert seen == [1, 2]
    assert amended.revision == 3
    assert amended.enabled_at == NOON
    assert amended.scope.location == "west"


def test_after_many_conflicts_the_caller_is_told() -> None:
    library = Library(ASKING)

    def disturb() -> None:
        # Whatever it does, it is another value each time.
        library.rival.amend(
            ASKING.id,
            lambda found: Decision(replace(found, incarnation=Incarnation(found.incarnation + 1))),
        )

    # A rival's own commit passes through the store too.
    library.store.overtake(*[disturb, lambda: None] * CONFLICTS_MAX)

    with pytest.raises(Conflict, match="ledger/rg1/web"):
        library.books.amend(ASKING.id, enable)

    assert library.books.load(ASKING.id).revision == 1 + CONFLICTS_MAX


@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER])
def test_a_commit_whose_outcome_is_unknown_is_repeated_under_the_same_id(fault: Fault) -> None:
    library = Library(ASKING)
    library.store.spoil(fault, Fault.LOST_BEFORE)

    amended = library.books.amend(ASKING.id, enable)

    assert amended.revision == 2
    assert len(library.store.asked) == 3
    assert len(set(library.store.asked)) == 1
    assert library.changes() == 2
    assert library.told == [amended]


def test_a_commit_that_stays_unknown_is_the_callers_to_know() -> None:
    library = Library(ASKING)
    library.store.spoil(*[Fault.LOST_BEFORE] * (REPEATS_MAX + 1))

    with pytest.raises(OutcomeUnknown):
        library.books.amend(ASKING.id, enable)

    assert not library.told


def test_a_store_that_is_away_is_not_asked_again() -> None:
    library = Library(ASKING)
    library.store.spoil(Fault.AWAY)

    with pytest.raises(Unavailable):
        library.books.amend(ASKING.id, enable)

    assert len(library.store.asked) == 1


def test_several_ledgers_are_amended_together_or_not_at_all() -> None:
    library = Library(ASKING, OTHER)

    def decide(found: Ledgers) -> list[Decision]:
        return [enable(found[ASKING.id]), leave(found[OTHER.id])]

    amended = library.books.amend_together((ASKING.id, OTHER.id), decide)

    assert [amended[ASKING.id].revision, amended[OTHER.id].revision] == [2, 1]
    library.store.overtake(lambda: library.rival.amend(OTHER.id, enable))
    library.books.amend_together(
        (ASKING.id, OTHER.id),
        lambda found: [
            Decision(replace(ledger, scope=replace(ledger.scope, location="west")))
            for ledger in found.values()
        ],
    )
    assert library.books.load(ASKING.id).revision == 3
    assert library.books.load(OTHER.id).revision == 3


def test_several_ledgers_are_one_commit() -> None:
    library = Library(ASKING, OTHER)
    library.store.spoil(Fault.AWAY)

    def decide(found: Ledgers) -> list[Decision]:
        return [enable(ledger) for ledger in found.values()]

    with pytest.raises(Unavailable):
        library.books.amend_together((ASKING.id, OTHER.id), decide)
    before = [library.books.load(scope).revision for scope in (ASKING.id, OTHER.id)]
    amended = library.books.amend_together((ASKING.id, OTHER.id), decide)

    assert (before, [ledger.revision for ledger in amended.values()]) == ([1, 1], [2, 2])
    assert len(library.store.asked) == 2
    assert library.changes() == 2


def test_one_unknown_scope_spoils_the_whole() -> None:
    library = Library(ASKING)

    with pytest.raises(Unknown):
        library.books.amend_together((ASKING.id, OTHER.id), lambda _: [])


def test_all_ledgers_are_read_page_by_page() -> None:
    scopes = [replace(ASKING, name=f"s{number:05}", machines=()) for number in range(PAGE + 1)]
    library = Library(*scopes)

    names = [ledger.scope.name for ledger in library.books.all()]

    assert names == [scope.name for scope in scopes]


def test_readers_hear_of_what_somebody_else_committed() -> None:
    library = Library(ASKING)
    committed = library.rival.amend(ASKING.id, enable)
    assert not library.told

    library.books.refresh([records.key(ASKING.id)])

    assert library.told == [committed]


class Turnstile:
    """Counts how often somebody went through."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *_: object) -> None:
        return


def test_readers_are_told_one_commit_at_a_time() -> None:
    library = Library(ASKING)
    turn = Turnstile()
    books = Books(library.store, SeededIds(3), turn)

    books.amend(ASKING.id, enable)

    assert turn.count == 1


# -- each for itself, all at once ----------------------------------------------------------


def refuse(ledger: Ledger) -> Decision:
    raise Refused(f"not {ledger.scope.name}")


def stumble(ledger: Ledger) -> Decision:
    raise ZeroDivisionError(ledger.scope.name)


def rename(ledger: Ledger) -> Decision:
    return Decision(replace(ledger, scope=replace(ledger.scope, location="west")))


def test_what_is_decided_at_the_same_time_is_one_commit() -> None:
    library = Memory(ASKING, OTHER)

    first, second = library.books.amend_each([(ASKING.id, enable), (OTHER.id, rename)])

    assert [first, second] == [library.books.load(ASKING.id), library.books.load(OTHER.id)]
    assert library.told == [first, second]
    assert len(library.store.asked) == 1


def test_what_one_of_several_meets_is_its_own_affair() -> None:
    """keeps S16."""
    library = Memory(ASKING, OTHER, replace(ASKING, name="third"))
    nowhere = ScopeId("rg1/nowhere")

    refused, amended, broken, unknown = library.books.amend_each(
        [
            (ASKING.id, refuse),
            (OTHER.id, enable),
            (ScopeId("rg1/third"), stumble),
            (nowhere, enable),
        ]
    )

    assert isinstance(refused, Refused)
    assert amended == library.books.load(OTHER.id)
    assert isinstance(broken, ZeroDivisionError)
    assert isinstance(unknown, Unknown)


def test_whoever_comes_second_to_a_scope_decides_on_what_the_first_has_left() -> None:
    library = Memory(ASKING)

    first, second = library.books.amend_each([(ASKING.id, enable), (ASKING.id, rename)])

    assert isinstance(first, Ledger)
    assert isinstance(second, Ledger)
    assert (first.revision, second.revision) == (2, 3)
    assert second.enabled_at == NOON


def test_whoever_is_overtaken_together_with_others_decides_again() -> None:
    """keeps S16."""
    library = Memory(ASKING, OTHER)
    library.rival.amend(OTHER.id, enable)

    first, second = library.books.amend_each([(ASKING.id, rename), (OTHER.id, rename)])

    assert [first, second] == [library.books.load(ASKING.id), library.books.load(OTHER.id)]
    assert isinstance(second, Ledger)
    assert (second.enabled_at, second.scope.location) == (NOON, "west")


def test_a_store_that_is_away_is_away_for_all_who_went_together() -> None:
    """keeps S16."""
    library = Memory(ASKING, OTHER)
    library.store.spoil(Fault.AWAY)

    outcomes = library.books.amend_each([(ASKING.id, enable), (OTHER.id, enable)])

    assert [type(outcome) for outcome in outcomes] == [Unavailable, Unavailable]
    assert not library.told


def test_that_nothing_need_change_is_decided_on_what_is_stored() -> None:
    """keeps S16: what others committed may be a reason after all."""
    library = Memory(ASKING)
    library.rival.amend(ASKING.id, rename)

    (ledger,) = library.books.amend_each([(ASKING.id, leave)])

    assert isinstance(ledger, Ledger)
    assert ledger.revision == 2


def test_whoever_alone_writes_need_not_ask_the_store_what_it_knows() -> None:
    library = Memory(ASKING, writers=Writers.ONE)
    library.store.is_away = True

    (ledger,) = library.books.amend_each([(ASKING.id, leave)])

    assert ledger == library.latest[ASKING.id]
