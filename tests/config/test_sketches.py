"""A fleet in a few words."""

from __future__ import annotations

import pytest

from forewarn.config.fleets import parse_fleet
from forewarn.config.sketches import MACHINES_MAX, Sketch
from forewarn.core.scopes import Scope, ScopeKind
from forewarn.errors import Malformed


def scopes(sketch: Sketch) -> list[Scope]:
    return [declared.scope for declared in parse_fleet(sketch.toml, "sketch").declarations]


def test_nothing_at_all_is_one_vm_that_anybody_on_loopback_is() -> None:
    (scope,) = scopes(Sketch())

    (machine,) = scope.machines
    assert (machine.name, machine.addresses) == ("vm-0", ("127.0.0.1", "127.0.1.10"))


def test_sets_have_as_many_vms_as_they_say_each_with_an_address() -> None:
    sketch = Sketch(
        machines=["db"], spots=["cheap"], availability_sets=["web:3"], scale_sets=["batch:2"]
    )

    found = scopes(sketch)

    assert [(scope.name, scope.kind, scope.spot) for scope in found] == [
        ("db", ScopeKind.STANDALONE, False),
        ("cheap", ScopeKind.STANDALONE, True),
        ("web", ScopeKind.AVAILABILITY_SET, False),
        ("batch", ScopeKind.SCALE_SET, False),
    ]
    machines = [machine for scope in found for machine in scope.machines]
    assert [machine.name for machine in machines] == [
        "db", "cheap", "web-0", "web-1", "web-2", "batch_0", "batch_1",
    ]  # fmt: skip
    assert len({machine.addresses for machine in machines}) == len(machines)


def test_a_large_set_goes_on_in_another_block() -> None:
    (scope,) = scopes(Sketch(scale_sets=["batch:201"]))

    assert scope.machines[-1].addresses == ("127.0.2.10",)


@pytest.mark.parametrize("given", ["web", "web:", ":3", "web:0", "web:-1", "web:three", "web:²"])
def test_a_set_without_a_count_is_refused(given: str) -> None:
    with pytest.raises(Malformed, match="say NAME:COUNT"):
        _ = Sketch(availability_sets=[given]).toml


def test_too_many_vms_are_refused() -> None:
    with pytest.raises(Malformed, match="too many"):
        _ = Sketch(scale_sets=[f"batch:{MACHINES_MAX + 1}"]).toml


def test_a_name_that_is_none_is_refused_and_breaks_out_of_nothing() -> None:
    with pytest.raises(Malformed, match="is not a name"):
        parse_fleet(Sketch(machines=['a"\nspot = true']).toml, "sketch")
