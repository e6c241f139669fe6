"""What owners set, and scopes that are declared one by one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given

from forewarn.core import announcing, rosters, scopes
from forewarn.core.events import EventType
from forewarn.core.journal import Actor, Role, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import EventId, HostName, MachineName
from forewarn.core.periods import Periods
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import (
    OFF,
    AutoApproval,
    Enabling,
    Machine,
    Origin,
    OwnerPolicies,
    Presence,
    Scope,
    ScopeKind,
)
from forewarn.core.wishes import Wish
from forewarn.errors import Refused, Unknown
from forewarn.testing import strategies
from forewarn.testing.strategies import EPOCH as NOON

OWNER = Actor(Role.OPERATOR, "owner")
MINUTE = timedelta(minutes=1)
REBOOT, REDEPLOY = AutoApproval.USER_REBOOT, AutoApproval.USER_REDEPLOY
SET = Scope(
    name="set",
    kind=ScopeKind.SCALE_SET,
    machines=tuple(Machine(name=MachineName(name)) for name in ("a", "b")),
    enabling=Enabling.ALWAYS,
)
SAID = OwnerPolicies(approve_reboot=True, terminate_notice=7 * MINUTE)
KEPT = '{"sku":{"tier":"Standard"}}'


def blank(scope: Scope = SET) -> Ledger:
    return Ledger(scope=Scope(name=scope.name, resource_group=scope.resource_group, origin=None))


def declare(ledger: Ledger, scope: Scope, origin: Origin = Origin.API) -> Decision:
    return rosters.declare(ledger, Declaration(scope), origin, OWNER, NOON)


def enrolled(ledger: Ledger, scope: Scope, origin: Origin = Origin.FILE) -> Ledger:
    return rosters.enroll(ledger, Declaration(scope), origin, OWNER, NOON).ledger


def amended(ledger: Ledger, policies: OwnerPolicies, kept: str | None = None) -> Decision:
    keep = str if kept is None else lambda _: kept
    return rosters.amend_policies(ledger, policies, OWNER, NOON, keep)


def removed(ledger: Ledger, name: str) -> Decision:
    return rosters.remove(ledger, name, Origin.API, OWNER, NOON)


def notes(decision: Decision) -> list[str]:
    return [entry.note for entry in decision.entries]


def roster(ledger: Ledger) -> list[tuple[str, Presence, Origin]]:
    return [(m.name, m.presence, m.origin) for m in ledger.scope.machines]


API = declare(blank(), SET).ledger
FILE = enrolled(blank(), SET)


def with_presence(ledger: Ledger, name: str, presence: Presence) -> Ledger:
    machines = tuple(
        replace(m, presence=presence) if m.name == name else m for m in ledger.scope.machines
    )
    return replace(ledger, scope=replace(ledger.scope, machines=machines))


def frozen(ledger: Ledger, name: str) -> Ledger:
    announced = announcing.announce(
        ledger,
        Wish(type=EventType.FREEZE, machines=(name,)),
        now=NOON,
        new_id=lambda: EventId("E1"),
        rules=Periods(),
        actor=OWNER,
    )
    return announced.decision.ledger


# -- what owners set ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "said", "effective"),
    [
        ((), OwnerPolicies(), set()),
        ((REBOOT, REDEPLOY), OwnerPolicies(), {REBOOT, REDEPLOY}),
        ((REBOOT, REDEPLOY), OwnerPolicies(approve_reboot=False), {REDEPLOY}),
        ((REBOOT,), OwnerPolicies(approve_reboot=True), {REBOOT}),
        ((REBOOT,), OwnerPolicies(approve_redeploy=True), {REBOOT, REDEPLOY}),
        ((), OwnerPolicies(approve_reboot=False), set()),
    ],
)
def test_what_the_owner_says_of_approvals_wins(
    declared: tuple[AutoApproval, ...], said: OwnerPolicies, effective: set[AutoApproval]
) -> None:
    """keeps S19."""
    policies = scopes.auto_approvals(replace(SET, auto_approve=declared, owner=said))

    assert set(policies) == effective
    assert len(policies) == len(effective)


@pytest.mark.parametrize(
    ("declared", "said", "scope", "effective"),
    [
        (None, None, SET, None),
        (5 * MINUTE, None, SET, 5 * MINUTE),
        (5 * MINUTE, OFF, SET, None),
        (5 * MINUTE, 9 * MINUTE, SET, 9 * MINUTE),
        (None, 9 * MINUTE, SET, 9 * MINUTE),
        (None, 9 * MINUTE, replace(SET, spot=True), None),
    ],
)
def test_what_the_owner_says_of_terminate_notification_wins(
    declared: timedelta | None, said: timedelta | None, scope: Scope, effective: timedelta | None
) -> None:
    owner = OwnerPolicies(terminate_notice=said)
    scope = replace(scope, terminate_notice=declared, owner=owner)

    assert scopes.terminate_notice(scope) == effective


def test_what_the_owner_of_a_scale_set_said_is_moot_once_it_is_none() -> None:
    said = OwnerPolicies(terminate_notice=9 * MINUTE, os_image_notice=9 * MINUTE)
    scope = replace(SET, kind=ScopeKind.AVAILABILITY_SET, owner=said)

    assert scopes.terminate_notice(scope) is None
    assert scopes.os_image_notice(scope) is None
    assert scopes.os_image_notice(replace(SET, owner=said)) == 9 * MINUTE


@pytest.mark.parametrize(
    ("scope", "said", "words"),
    [
        (SET, OwnerPolicies(terminate_notice=4 * MINUTE), "terminate .* 4m ahead: give 5m to 15m"),
        (SET, OwnerPolicies(terminate_notice=16 * MINUTE), "16m ahead: give 5m to 15m"),
        (SET, OwnerPolicies(os_image_notice=16 * MINUTE), "OS image .* give at most 15m"),
        (SET, OwnerPolicies(os_image_notice=-MINUTE), "-1m ahead: give at most 15m"),
        (
            replace(SET, spot=True),
            OwnerPolicies(terminate_notice=5 * MINUTE),
            "scope default/set is spot",
        ),
        (
            replace(SET, kind=ScopeKind.AVAILABILITY_SET),
            OwnerPolicies(os_image_notice=5 * MINUTE),
            "of kind availability-set: only a scale set has OS image notification",
        ),
    ],
)
def test_what_an_owner_cannot_set_is_refused_in_words(
    scope: Scope, said: OwnerPolicies, words: str
) -> None:
    with pytest.raises(Refused, match=words):
        amended(Ledger(scope=scope), said)
    with pytest.raises(Refused, match=words):
        declare(blank(), replace(scope, owner=said))


@given(strategies.owner_policies())
def test_what_an_owner_may_set_is_set_and_journaled_once(said: OwnerPolicies) -> None:
    decision = amended(FILE, said)

    assert decision.ledger.scope == replace(FILE.scope, owner=said)
    assert bool(decision.entries) is (said != OwnerPolicies())
    assert amended(decision.ledger, said) == Decision(decision.ledger)
    assert amended(decision.ledger, OwnerPolicies()).ledger == FILE


def test_the_journal_says_what_the_owner_changed() -> None:
    said = OwnerPolicies(terminate_notice=OFF, os_image_notice=15 * MINUTE, event_grid=True)

    first = amended(FILE, said)
    second = amended(first.ledger, replace(said, event_grid=None, all_instances_down=False), KEPT)

    assert notes(first) == [
        "the owner changed terminate notice to off, os image notice to 15m, event grid to on"
    ]
    assert notes(second) == [
        "the owner changed all instances down to off, event grid to as declared"
    ]
    assert [(e.what, e.actor) for e in second.entries] == [(What.ROSTER, OWNER)]
    assert second.ledger.scope.kept == KEPT
    assert notes(amended(second.ledger, second.ledger.scope.owner, "")) == [
        "the owner changed what is kept for the owner"
    ]


def test_what_owners_set_and_keep_outlives_the_file_being_read_again() -> None:
    """keeps S19."""
    ledger = amended(FILE, SAID, KEPT).ledger
    ledger = rosters.keep(ledger, "A", lambda _: KEPT, OWNER, NOON).ledger
    moved = replace(SET.machines[0], host=HostName("host-9"))

    again = enrolled(ledger, replace(SET, machines=(moved, SET.machines[1]), location="west"))

    assert (again.scope.owner, again.scope.kept) == (SAID, KEPT)
    assert again.scope.location == "west"
    assert [m.kept for m in again.scope.machines] == [KEPT, ""]
    assert again.scope.machines[0].host == "host-9"


def test_a_text_is_kept_for_a_machine_or_for_its_scope() -> None:
    of_machine = rosters.keep(FILE, "b", lambda _: KEPT, OWNER, NOON)
    of_scope = rosters.keep(FILE, None, lambda _: KEPT, OWNER, NOON)

    assert [m.kept for m in of_machine.ledger.scope.machines] == ["", KEPT]
    assert notes(of_machine) == ["the owner changed what is kept for b"]
    assert of_scope.ledger.scope.kept == KEPT
    again = rosters.keep(of_machine.ledger, "b", lambda _: KEPT, OWNER, NOON)
    assert again == Decision(of_machine.ledger)
    with pytest.raises(Unknown, match="no VM c in scope default/set"):
        rosters.keep(FILE, "c", lambda _: KEPT, OWNER, NOON)


# -- declared one by one -----------------------------------------------------------------


def test_a_new_scope_belongs_to_who_declared_it() -> None:
    decision = declare(blank(), replace(SET, owner=SAID, kept=KEPT))

    scope = decision.ledger.scope
    assert (scope.origin, scope.owner, scope.kept) == (Origin.API, SAID, KEPT)
    assert roster(decision.ledger)[0] == ("a", Presence.RUNNING, Origin.API)
    assert notes(decision) == ["added a, added b"]
    assert declare(decision.ledger, SET) == Decision(decision.ledger)


def test_a_scope_of_the_file_is_not_the_apis_to_change() -> None:
    with pytest.raises(Refused, match="default/set is declared by the file, so the api cannot"):
        declare(FILE, replace(SET, machines=()))


def test_a_scope_does_not_change_its_kind() -> None:
    with pytest.raises(Refused, match="of kind scale-set and cannot become availability-set"):
        declare(API, replace(SET, kind=ScopeKind.AVAILABILITY_SET))


def test_a_scope_that_the_file_no_longer_declares_is_anybodys() -> None:
    withdrawn = rosters.withdraw(FILE, Origin.FILE, OWNER, NOON).ledger

    assert withdrawn.scope.origin is None
    other_kind = replace(SET, kind=ScopeKind.AVAILABILITY_SET)
    assert declare(withdrawn, other_kind).ledger.scope.origin is Origin.API


def test_an_empty_scope_can_be_withdrawn_as_well() -> None:
    empty = declare(blank(), replace(SET, machines=())).ledger
    assert empty.scope.origin is Origin.API

    withdrawn = rosters.withdraw(empty, Origin.API, OWNER, NOON)

    assert withdrawn.ledger.scope.origin is None
    assert rosters.withdraw(withdrawn.ledger, Origin.API, OWNER, NOON).ledger is withdrawn.ledger


def test_what_the_owner_set_goes_with_what_the_owner_made_and_not_with_a_file() -> None:
    for ledger, origin, after in ((API, Origin.API, OwnerPolicies()), (FILE, Origin.FILE, SAID)):
        withdrawn = rosters.withdraw(amended(ledger, SAID, KEPT).ledger, origin, OWNER, NOON)

        assert withdrawn.ledger.scope.owner == after
        assert withdrawn.ledger.scope.machines == ()


def test_where_a_file_declares_a_scope_too_the_file_speaks_for_it() -> None:
    c = replace(SET, machines=(Machine(name=MachineName("c")),))

    by_both = enrolled(API, c)

    assert by_both.scope.origin is Origin.FILE
    assert enrolled(FILE, c, Origin.API).scope.origin is Origin.FILE
    left = rosters.withdraw(by_both, Origin.FILE, OWNER, NOON).ledger
    assert left.scope.origin is Origin.API
    gone = rosters.withdraw(by_both, Origin.API, OWNER, NOON).ledger
    assert gone.scope.origin is Origin.FILE
    assert [m.name for m in gone.scope.machines] == ["c"]


def test_a_deleted_machine_comes_back_as_a_new_one_by_being_declared_anew() -> None:
    deleted = with_presence(API, "a", Presence.DELETED)

    decision = declare(deleted, SET)

    assert notes(decision) == ["added a"]
    assert [(m.name, m.presence) for m in decision.ledger.scope.machines] == [
        ("b", Presence.RUNNING),
        ("a", Presence.RUNNING),
    ]


@pytest.mark.parametrize("presence", [Presence.STOPPED, Presence.DEALLOCATED])
def test_a_machine_that_is_off_is_not_started_by_being_declared(presence: Presence) -> None:
    off = with_presence(API, "a", presence)

    assert declare(off, SET) == Decision(off)


def test_a_deleted_machine_stays_so_where_its_own_record_is_declared() -> None:
    """Whoever adds a neighbor passes on the records that are there."""
    deleted = with_presence(API, "a", Presence.DELETED)

    assert declare(deleted, deleted.scope) == Decision(deleted)
    without = declare(deleted, replace(SET, machines=SET.machines[1:])).ledger
    assert [m.name for m in without.scope.machines] == ["b"]


def test_a_file_brings_no_deleted_machine_of_the_api_back() -> None:
    deleted = with_presence(API, "a", Presence.DELETED)

    assert enrolled(deleted, SET, Origin.API).scope.machines[0].presence is Presence.DELETED


def test_a_machine_is_removed_for_good_by_who_declared_it() -> None:
    decision = removed(API, "A")

    assert [m.name for m in decision.ledger.scope.machines] == ["b"]
    assert notes(decision) == ["removed a"]
    assert decision.ledger.scope.origin is Origin.API
    with pytest.raises(Refused, match="declared by the file: the api cannot remove it"):
        removed(FILE, "a")
    with pytest.raises(Unknown, match="no VM c"):
        removed(API, "c")


def test_a_machine_with_an_open_event_is_not_removed() -> None:
    ledger = frozen(API, "a")

    with pytest.raises(Refused, match="a of scope default/set has an open event, E1: cancel"):
        removed(ledger, "a")
    assert [m.name for m in removed(ledger, "b").ledger.scope.machines] == ["a"]


def test_with_its_only_machine_a_standalone_scope_is_no_more() -> None:
    alone = replace(
        SET,
        kind=ScopeKind.STANDALONE,
        machines=SET.machines[:1],
        owner=OwnerPolicies(event_grid=True),
    )
    ledger = declare(blank(), alone).ledger

    decision = removed(ledger, "a")

    scope = decision.ledger.scope
    assert (scope.machines, scope.origin, scope.owner) == ((), None, OwnerPolicies())
    assert notes(decision) == ["removed a"]


def test_with_its_last_machine_a_set_goes_on() -> None:
    ledger = removed(removed(API, "a").ledger, "b").ledger

    assert (ledger.scope.machines, ledger.scope.origin) == ((), Origin.API)
