"""Who is calling, by the address they speak from."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from forewarn.core.names import MachineName, ScopeId
from forewarn.core.scopes import Machine, Presence, Scope, ScopeKind
from forewarn.identities.addresses import AddressBook, canonical
from forewarn.ports.identities import Caller, Identities

LISTENER = "169.254.169.254:80"
PINNED = "127.0.0.1:8011"


def machine(name: str, *addresses: str) -> Machine:
    return Machine(name=MachineName(name), addresses=addresses)


def scope(name: str, *machines: Machine, group: str = "rg1") -> Scope:
    return Scope(
        name=name, resource_group=group, kind=ScopeKind.AVAILABILITY_SET, machines=machines
    )


WEB_0 = machine("web-0", "10.0.0.1", "fd00::1")
WEB_1 = machine("web-1", "10.0.0.2")
WEB = scope("Web", WEB_0, WEB_1)
WEB_ID = ScopeId("rg1/web")


def enrolled(*scopes: Scope, pinned: dict[str, str] | None = None) -> AddressBook:
    book = AddressBook()
    for listener, machine in (pinned or {}).items():
        book.pin(listener, machine)
    for one in scopes:
        book.enroll(one)
    return book


def test_a_machine_is_known_by_each_of_its_addresses() -> None:
    """Keeps S14: the scope follows from where the request came from."""
    book: Identities = enrolled(WEB)

    assert book.identify(LISTENER, "10.0.0.1") == Caller(WEB_ID, WEB_0.name, "10.0.0.1")
    assert book.identify(LISTENER, "fd00::1") == Caller(WEB_ID, WEB_0.name, "fd00::1")
    assert book.identify(LISTENER, "10.0.0.2") == Caller(WEB_ID, WEB_1.name, "10.0.0.2")


@pytest.mark.parametrize("address", ["10.0.0.3", "", "web-0", "10.0.0.1:80", "::1", "fd00::1%"])
def test_whoever_is_not_enrolled_is_a_stranger(address: str) -> None:
    book = enrolled(WEB)

    assert book.identify(LISTENER, address) is None
    assert book.owner(address) is None


@pytest.mark.parametrize(
    ("address", "spelled"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::FFFF:A00:1", "10.0.0.1"),
        ("::ffff:10.0.0.1%eth0", "10.0.0.1"),
        ("fd00::1", "fd00::1"),
        ("FD00:0:0::0001", "fd00::1"),
        ("fd00::1%eth0", "fd00::1"),
        ("010.0.0.1", None),
        ("10.0.0.1/32", None),
        ("localhost", None),
    ],
)
def test_an_address_has_one_spelling(address: str, spelled: str | None) -> None:
    assert canonical(address) == spelled


@pytest.mark.parametrize("address", ["::ffff:10.0.0.1", "FD00::1", "fd00::1%tap3"])
def test_a_machine_is_known_however_its_address_is_spelled(address: str) -> None:
    book = enrolled(WEB)

    caller = book.identify(LISTENER, address)

    assert caller is not None
    assert caller.machine == WEB_0.name
    assert book.owner(address) is caller


def test_a_roster_may_spell_addresses_its_own_way() -> None:
    book = enrolled(scope("odd", machine("odd-0", "::ffff:10.0.0.9", "nonsense")))

    assert book.identify(LISTENER, "10.0.0.9") is not None
    assert book.identify(LISTENER, "nonsense") is None


def test_nothing_is_made_anew_for_a_call() -> None:
    book = enrolled(WEB)

    assert book.identify(LISTENER, "10.0.0.1") is book.identify(LISTENER, "::ffff:10.0.0.1")


def test_a_deleted_machine_is_a_stranger_and_a_deallocated_one_is_not() -> None:
    deleted = replace(WEB_0, presence=Presence.DELETED)
    deallocated = replace(WEB_1, presence=Presence.DEALLOCATED)
    book = enrolled(WEB, replace(WEB, machines=(deleted, deallocated)), pinned={PINNED: "web-0"})

    assert book.identify(LISTENER, "10.0.0.1") is None
    assert book.identify(PINNED, "127.0.0.1") is None
    assert book.identify(LISTENER, "10.0.0.2") is not None


def test_a_scope_takes_the_place_of_what_was_known_of_it() -> None:
    moved = machine("web-0", "10.0.0.7")
    book = enrolled(WEB, replace(WEB, machines=(moved,)))

    assert book.identify(LISTENER, "10.0.0.7") == Caller(WEB_ID, moved.name, "10.0.0.7")
    assert book.identify(LISTENER, "10.0.0.1") is None
    assert book.identify(LISTENER, "10.0.0.2") is None


def test_an_empty_scope_leaves_nothing_behind() -> None:
    book = enrolled(WEB, replace(WEB, machines=()))

    assert book.owner("10.0.0.1") is None


@pytest.mark.parametrize("gaining_first", [True, False])
def test_an_address_may_move_to_another_scope_whichever_is_enrolled_first(
    gaining_first: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    losing, gaining = scope("a"), scope("b", machine("b-0", "10.1.0.1"))
    book = enrolled(scope("a", machine("a-0", "10.1.0.1")))

    for one in (gaining, losing) if gaining_first else (losing, gaining):
        book.enroll(one)

    assert book.owner("10.1.0.1") == Caller(ScopeId("rg1/b"), MachineName("b-0"), "10.1.0.1")


def test_two_scopes_may_exchange_addresses() -> None:
    book = enrolled(scope("a", machine("a-0", "10.1.0.1")), scope("b", machine("b-0", "10.1.0.2")))

    book.enroll(scope("a", machine("a-0", "10.1.0.2")))
    book.enroll(scope("b", machine("b-0", "10.1.0.1")))

    owners = [book.owner("10.1.0.1"), book.owner("10.1.0.2")]
    assert [owner and owner.machine for owner in owners] == ["b-0", "a-0"]


def test_an_address_that_moved_on_and_went_away_is_nobodys() -> None:
    book = enrolled(scope("a", machine("a-0", "10.1.0.1")), scope("b", machine("b-0", "10.1.0.1")))

    book.enroll(scope("b"))
    book.enroll(scope("a"))

    assert book.owner("10.1.0.1") is None


@pytest.mark.parametrize("target", ["web-0", "WEB-0", "rg1/web-0", "RG1/Web/web-0"])
def test_whoever_comes_to_a_pinned_listener_is_its_machine(target: str) -> None:
    book = enrolled(WEB, pinned={PINNED: target})

    expected = Caller(WEB_ID, WEB_0.name, PINNED)
    assert book.identify(PINNED, "127.0.0.1") == expected
    # Even from the address of another machine.
    assert book.identify(PINNED, "10.0.0.2") == expected
    assert book.identify(LISTENER, "127.0.0.1") is None


@pytest.mark.parametrize("target", ["web-9", "rg2/web-0", "rg1/batch/web-0", "a/b/c/web-0", ""])
def test_a_listener_pinned_to_nobody_knows_strangers_only(target: str) -> None:
    book = enrolled(WEB, pinned={PINNED: target})

    assert book.identify(PINNED, "127.0.0.1") is None
    # Pinned is pinned: the source address does not count there.
    assert book.identify(PINNED, "10.0.0.1") is None


def test_a_pinned_name_that_fits_two_machines_is_nobodys_until_one_is_left() -> None:
    twin = scope("web", machine("web-0", "10.2.0.1"), group="rg2")
    book = enrolled(WEB, twin, pinned={PINNED: "web-0", "127.0.0.1:8012": "rg2/web-0"})

    assert book.identify(PINNED, "127.0.0.1") is None
    assert book.identify("127.0.0.1:8012", "127.0.0.1") is not None

    book.enroll(replace(WEB, machines=()))
    caller = book.identify(PINNED, "127.0.0.1")
    assert caller is not None
    assert caller.scope == "rg2/web"


def test_a_machine_that_stays_is_never_a_stranger_while_its_scope_is_enrolled_again() -> None:
    others = [machine(f"m-{n}", f"10.3.{n // 250}.{n % 250 + 1}") for n in range(500)]
    book = enrolled(scope("big", *others, WEB_1))

    def enroll() -> None:
        for count in range(200):
            book.enroll(scope("big", *others[: count % 7 * 50], WEB_1))

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(enroll)
        while not writing.done():
            assert book.identify(LISTENER, "10.0.0.2") is not None
        writing.result()


def test_a_million_machines_would_fit() -> None:
    """Well under 1 kB each, beside the rosters themselves."""
    count = 10_000
    addresses = [f"10.{n // 62_500}.{n // 250 % 250}.{n % 250}" for n in range(count)]
    scopes = [scope(f"s-{n}", machine(f"s-{n}-vm", a)) for n, a in enumerate(addresses)]
    book = AddressBook()

    tracemalloc.start()
    try:
        for one in scopes:
            book.enroll(one)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert used / count < 600


def test_a_glance_says_what_is_true_each_time() -> None:
    """Keeps S1: what is bound once is the way to look, not what was seen."""
    book: Identities = enrolled(WEB)
    glance = book.glance(LISTENER)

    before = glance("10.0.0.2")
    book.enroll(scope("Web", WEB_0))

    assert before == Caller(WEB_ID, WEB_1.name, "10.0.0.2")
    assert glance("10.0.0.1") == book.identify(LISTENER, "10.0.0.1")
    assert glance("10.0.0.2") is None


def test_a_glance_at_a_pinned_listener_sees_its_machine() -> None:
    """Keeps S1: where everybody is taken for one machine, addresses say nothing."""
    book = enrolled(WEB, pinned={PINNED: "web-1"})

    seen = book.glance(PINNED)("10.0.0.1")

    assert seen == book.identify(PINNED, "10.0.0.1")
    assert seen is not None
    assert seen.machine == WEB_1.name


def test_a_confined_listener_knows_nobody_else() -> None:
    """Keeps S14: who speaks from a neighbor's address on its own link is a stranger there."""
    book = enrolled(WEB)
    book.confine("tap0", ["10.0.0.1", "fd00:0::1", "not an address"])

    assert book.identify("tap0", "10.0.0.1") == Caller(WEB_ID, WEB_0.name, "10.0.0.1")
    assert book.identify("tap0", "fd00::1") == Caller(WEB_ID, WEB_0.name, "fd00::1")
    assert book.identify("tap0", "::ffff:10.0.0.1") == Caller(WEB_ID, WEB_0.name, "10.0.0.1")
    assert book.identify("tap0", "10.0.0.2") is None
    assert book.identify(LISTENER, "10.0.0.2") == Caller(WEB_ID, WEB_1.name, "10.0.0.2")


def test_who_glances_at_a_confined_listener_sees_what_holds_now() -> None:
    book = enrolled(WEB)
    book.confine("tap0", ["10.0.0.1"])
    glance = book.glance("tap0")
    assert (glance("10.0.0.1"), glance("10.0.0.2")) == (book.owner("10.0.0.1"), None)

    book.confine("tap0", ["10.0.0.2"])

    assert (glance("10.0.0.1"), glance("10.0.0.2")) == (None, book.owner("10.0.0.2"))
