"""Keeping a roster in step with what its sources declare."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given

from forewarn.core import announcing, rosters
from forewarn.core.events import EventStatus, EventType
from forewarn.core.journal import Actor, Role, What
from forewarn.core.ledgers import Ledger
from forewarn.core.names import EventId, HostName, MachineName
from forewarn.core.periods import Periods
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import Enabling, Machine, Origin, Presence, Scope
from forewarn.core.wishes import Wish
from forewarn.errors import Refused
from forewarn.testing import strategies
from forewarn.testing.strategies import EPOCH as NOON

OPS = Actor(Role.OPERATOR, "ops")
EMPTY = Ledger(scope=Scope(name="web", enabling=Enabling.ALWAYS))


def declared(*names: str, count: int = 3) -> Declaration:
    machines = tuple(Machine(name=MachineName(n), host=HostName("host-a")) for n in names)
    scope = Scope(name="web", machines=machines, update_domains=count, enabling=Enabling.ALWAYS)
    return Declaration(scope)


def enrolled(ledger: Ledger, declaration: Declaration, origin: Origin = Origin.FILE) -> Ledger:
    return rosters.enroll(ledger, declaration, origin, OPS, NOON).ledger


def roster(ledger: Ledger) -> list[tuple[str, int]]:
    return [(machine.name, machine.update_domain) for machine in ledger.scope.machines]


def frozen(ledger: Ledger, *names: str) -> Ledger:
    announced = announcing.announce(
        ledger,
        Wish(type=EventType.FREEZE, machines=names),
        now=NOON,
        new_id=lambda: EventId("E1"),
        rules=Periods(),
        actor=OPS,
    )
    return announced.decision.ledger


def test_a_new_scope_is_enrolled_round_robin_and_journaled() -> None:
    decision = rosters.enroll(EMPTY, declared("a", "b", "c", "d"), Origin.FILE, OPS, NOON)

    assert roster(decision.ledger) == [("a", 0), ("b", 1), ("c", 2), ("d", 0)]
    (entry,) = decision.entries
    assert entry.what is What.ROSTER
    assert entry.note == "added a, added b, added c, added d"


@given(strategies.scopes())
def test_declaring_the_same_again_changes_nothing(scope: Scope) -> None:
    declaration = Declaration(scope, frozenset(machine.name for machine in scope.machines))
    once = enrolled(Ledger(scope=replace(scope, machines=())), declaration)

    again = rosters.enroll(once, declaration, Origin.FILE, OPS, NOON)

    assert once.scope == scope
    assert again.ledger == once
    assert again.entries == ()


def test_an_addition_moves_no_neighbor() -> None:
    first = enrolled(EMPTY, declared("a", "b"))

    second = enrolled(first, declared("a", "x", "b", "y"))

    assert roster(second) == [("a", 0), ("b", 1), ("x", 2), ("y", 0)]


def test_a_given_update_domain_counts_at_once() -> None:
    first = enrolled(EMPTY, declared("a", "b"))
    moved = declared("a", "b")
    machines = (replace(moved.scope.machines[0], update_domain=2), moved.scope.machines[1])
    moved = Declaration(replace(moved.scope, machines=machines), frozenset({MachineName("a")}))

    assert roster(enrolled(first, moved)) == [("a", 2), ("b", 1)]


def test_fewer_update_domains_move_only_those_who_must() -> None:
    first = enrolled(EMPTY, declared("a", "b", "c"))

    assert roster(enrolled(first, declared("a", "b", "c", count=2))) == [
        ("a", 0),
        ("b", 1),
        ("c", 0),
    ]


def test_a_source_changes_only_its_own_and_everybody_keeps_the_place() -> None:
    by_file = enrolled(EMPTY, declared("a", "b"))
    by_both = enrolled(by_file, declared("c"), Origin.API)
    assert roster(by_both) == [("a", 0), ("b", 1), ("c", 2)]

    again = enrolled(by_both, declared("b", "d"))

    assert roster(again) == [("b", 1), ("c", 2), ("d", 0)]
    assert [machine.origin for machine in again.scope.machines] == [
        Origin.FILE,
        Origin.API,
        Origin.FILE,
    ]


@pytest.mark.parametrize("name", ["a", "A"])
def test_a_clash_is_refused_and_names_both(name: str) -> None:
    by_file = enrolled(EMPTY, declared("a"))

    with pytest.raises(Refused, match="declared by the file and by the census"):
        enrolled(by_file, declared(name), Origin.CENSUS)


def test_a_file_may_claim_whom_a_census_found_and_nothing_that_is_announced_is_lost() -> None:
    found = frozen(enrolled(EMPTY, declared("a", "b", count=3), Origin.CENSUS), "b")
    off = replace(found.scope.machines[0], presence=Presence.STOPPED)
    found = replace(found, scope=replace(found.scope, machines=(off, found.scope.machines[1])))

    claimed = enrolled(found, declared("c", "b", count=3))

    assert roster(claimed) == [("a", 0), ("b", 1), ("c", 2)]
    assert [m.origin for m in claimed.scope.machines] == [Origin.CENSUS, Origin.FILE, Origin.FILE]
    assert claimed.scope.machines[0].presence is Presence.STOPPED
    assert claimed.scope.origin is Origin.FILE
    assert claimed.open_events == found.open_events


def test_whether_a_machine_of_a_file_runs_is_the_word_of_who_has_seen_it() -> None:
    known = enrolled(EMPTY, declared("a", "b"))
    off = tuple(replace(m, presence=Presence.STOPPED) for m in known.scope.machines)
    stopped = replace(known, scope=replace(known.scope, machines=off))

    after = enrolled(stopped, replace(declared("a", "b"), seen=frozenset({MachineName("b")})))

    assert [machine.presence for machine in after.scope.machines] == [
        Presence.STOPPED,
        Presence.RUNNING,
    ]


def test_a_machine_is_ceded_to_another_scope_unless_it_has_an_open_event() -> None:
    machines = tuple(
        Machine(name=MachineName(n), host=HostName("host-a"), vm_id=f"id-{n}") for n in "ab"
    )
    both = Declaration(replace(declared().scope, machines=machines))
    found = enrolled(EMPTY, both, Origin.CENSUS)

    decision = rosters.cede(found, frozenset({"id-a", "id-z"}), OPS, NOON)

    assert roster(decision.ledger) == [("b", 1)]
    assert [entry.note for entry in decision.entries] == ["removed a"]
    # What a file has is not ceded, whatever its id.
    assert rosters.cede(enrolled(EMPTY, both), frozenset({"id-a"}), OPS, NOON).entries == ()
    busy = frozen(found, "b")
    assert roster(rosters.cede(busy, frozenset({"id-a"}), OPS, NOON).ledger) == [("b", 1)]
    with pytest.raises(Refused, match="b has an open event in scope default/web, E1: cancel it"):
        rosters.cede(busy, frozenset({"id-b"}), OPS, NOON)


def test_a_scope_that_cannot_be_is_refused() -> None:
    with pytest.raises(Refused, match="update domains"):
        enrolled(EMPTY, declared("a", count=0))

    by_file = enrolled(EMPTY, declared("a", "b", "c"))
    with pytest.raises(Refused, match="c is in update domain 2"):
        enrolled(by_file, declared("d", count=2), Origin.API)


def test_a_machine_taken_out_leaves_what_is_scheduled_and_the_last_one_cancels_it() -> None:
    both = frozen(enrolled(EMPTY, declared("a", "b", count=1)), "a", "b")

    narrowed = rosters.enroll(both, declared("b", count=1), Origin.FILE, OPS, NOON)
    gone = rosters.withdraw(narrowed.ledger, Origin.FILE, OPS, NOON)

    assert [entry.what for entry in narrowed.entries] == [What.ROSTER, What.NARROWED]
    assert narrowed.ledger.event("E1").machines == ("b",)
    assert [entry.what for entry in gone.entries] == [What.ROSTER, What.CANCELED]
    assert gone.ledger.event("E1").status is EventStatus.CANCELED
    assert gone.ledger.event("E1").machines == ("b",)
    assert gone.ledger.scope.machines == ()
    assert gone.ledger.incarnation == both.incarnation


def test_a_machine_with_an_open_event_stays_in_its_update_domain() -> None:
    """Keeps S15: guests were told of an event in one update domain."""
    ledger = frozen(enrolled(EMPTY, declared("a", "b")), "a")
    moved = Declaration(
        replace(ledger.scope, machines=(replace(ledger.scope.machines[0], update_domain=2),)),
        frozenset({MachineName("a")}),
    )

    with pytest.raises(Refused, match="a of scope default/web has an open event, E1"):
        enrolled(ledger, moved)


def test_a_name_is_spelled_anew_only_while_nothing_is_open() -> None:
    """Resources, and whatever guests were told, agree to the letter."""
    ledger = enrolled(EMPTY, declared("a"))

    respelled = rosters.enroll(ledger, declared("A"), Origin.FILE, OPS, NOON)

    assert roster(respelled.ledger) == [("A", 0)]
    assert respelled.entries[0].note == "changed A"
    with pytest.raises(Refused, match="a of scope default/web has an open event"):
        enrolled(frozen(ledger, "a"), declared("A"))


def test_withdrawing_leaves_the_machines_of_other_sources() -> None:
    by_both = enrolled(enrolled(EMPTY, declared("a", "b")), declared("c"), Origin.API)

    withdrawn = rosters.withdraw(by_both, Origin.FILE, OPS, NOON)

    assert roster(withdrawn.ledger) == [("c", 2)]
    assert withdrawn.entries[0].note == "removed a, removed b"
    nothing = rosters.withdraw(by_both, Origin.CENSUS, OPS, NOON)
    assert nothing.ledger is by_both
    assert nothing.entries == ()


def test_a_machine_that_is_gone_does_not_come_back_by_being_declared_still() -> None:
    first = enrolled(EMPTY, declared("a"))
    gone = replace(first.scope.machines[0], presence=Presence.DELETED)
    ledger = replace(first, scope=replace(first.scope, machines=(gone,)))

    assert enrolled(ledger, declared("a")).scope.machines == (gone,)


def test_differences_are_said_in_words() -> None:
    before = declared("a", "b").scope
    changed = replace(before.machines[0], host=HostName("host-b"))
    after = replace(before, machines=(changed,), recovery=timedelta(minutes=1))

    assert rosters.differences(before, after) == (
        "removed b, changed a, changed the scope's settings"
    )
    assert rosters.differences(before, before) == ""


@pytest.mark.parametrize(
    ("known", "seen", "after"),
    [
        (Presence.RUNNING, Presence.STOPPED, Presence.STOPPED),
        (Presence.STOPPED, Presence.RUNNING, Presence.RUNNING),
        (Presence.DEALLOCATED, Presence.RUNNING, Presence.RUNNING),
        # Both are off; only the record knows the difference.
        (Presence.DEALLOCATED, Presence.STOPPED, Presence.DEALLOCATED),
        # Terminated, and not gone yet.
        (Presence.DELETED, Presence.RUNNING, Presence.DELETED),
    ],
)
def test_a_census_has_seen_whether_a_machine_runs(
    known: Presence, seen: Presence, after: Presence
) -> None:
    def with_presence(presence: Presence) -> Declaration:
        scope = declared("a").scope
        return Declaration(
            replace(scope, machines=(replace(scope.machines[0], presence=presence),))
        )

    before = enrolled(EMPTY, with_presence(known), Origin.CENSUS)

    ledger = enrolled(before, with_presence(seen), Origin.CENSUS)

    assert ledger.scope.machines[0].presence is after


def test_a_file_has_not_seen_whether_a_machine_runs() -> None:
    before = enrolled(EMPTY, declared("a"))
    stopped = replace(before.scope.machines[0], presence=Presence.STOPPED)
    known = replace(before, scope=replace(before.scope, machines=(stopped,)))

    ledger = enrolled(known, declared("a"))

    assert ledger.scope.machines[0].presence is Presence.STOPPED
