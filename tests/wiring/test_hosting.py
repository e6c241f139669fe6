"""Who of a census is let into the fleet where two cannot both be."""

from __future__ import annotations

from forewarn.core.names import HostName, MachineName, ScopeId
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import Machine, Scope
from forewarn.wiring.hosting import Holder, admit


def found(name: str, *addresses: str) -> Declaration:
    machine = Machine(name=MachineName(name), addresses=addresses, host=HostName("host-a"))
    return Declaration(Scope(name=name, machines=(machine,)))


def admitted(
    *declared: Declaration, holders: dict[str, Holder] | None = None, leased: str = ""
) -> tuple[list[str], tuple[str, ...]]:
    those, why = admit(declared, (holders or {}).get, lambda _, name: name == leased)
    return [one.scope.name for one in those], why


def test_everybody_is_let_in_who_has_an_address_alone() -> None:
    assert admitted(found("a", "10.0.0.1"), found("b")) == (["a", "b"], ())


def test_of_two_newcomers_the_first_is_let_in() -> None:
    names, (why,) = admitted(found("a", "10.0.0.1"), found("b", "10.0.0.2", "10.0.0.1"))

    assert names == ["a"]
    assert why == (
        "b on host-a is left out: 10.0.0.1 is the address of a of scope default/a already: "
        "give one of them another"
    )


def test_who_had_an_address_keeps_it_from_a_newcomer() -> None:
    holders = {"10.0.0.1": Holder(ScopeId("default/b"), "b", is_found=True)}

    names, (why,) = admitted(found("a", "10.0.0.1"), found("b", "10.0.0.1"), holders=holders)

    assert names == ["b"]
    assert why.startswith("a on host-a is left out")


def test_what_others_declared_has_its_address_whatever_a_census_finds() -> None:
    holders = {"10.0.0.1": Holder(ScopeId("default/file"), "f", is_found=False)}

    names, (why,) = admitted(found("a", "10.0.0.1"), found("b", "10.0.0.2"), holders=holders)

    assert names == ["b"]
    assert "the address of f of scope default/file" in why


def test_an_address_that_its_machine_gave_up_is_free_and_two_may_swap() -> None:
    holders = {
        "10.0.0.1": Holder(ScopeId("default/a"), "a", is_found=True),
        "10.0.0.2": Holder(ScopeId("default/b"), "b", is_found=True),
        "10.0.0.3": Holder(ScopeId("default/gone"), "gone", is_found=True),
    }

    names, why = admitted(
        found("a", "10.0.0.2"), found("b", "10.0.0.1"), found("c", "10.0.0.3"), holders=holders
    )

    assert (names, why) == (["a", "b", "c"], ())


def test_an_address_that_a_guest_was_leased_is_nobody_elses_loss() -> None:
    """A guest may ask a DHCP server for any address, and have been the first to."""
    holders = {"10.0.0.1": Holder(ScopeId("default/a-liar"), "a-liar", is_found=True)}

    names, (why,) = admitted(
        found("a-liar", "10.0.0.1"), found("web", "10.0.0.1"), holders=holders, leased="a-liar"
    )

    assert names == ["web"]
    assert why.startswith("a-liar on host-a is left out")


def test_who_is_left_out_takes_no_other_address_with_it() -> None:
    names, _ = admitted(
        found("a", "10.0.0.1"), found("b", "10.0.0.2", "10.0.0.1"), found("c", "10.0.0.2")
    )

    assert names == ["a", "c"]
