"""VMs as people call them."""

from __future__ import annotations

import pytest

from forewarn.cli import targets
from forewarn.cli.answers import Fleet, Machine, Scope
from forewarn.errors import Refused, Unknown


def scope(group: str, name: str, kind: str, *machines: str, presence: str = "running") -> Scope:
    return Scope(
        scope=name,
        resource_group=group,
        kind=kind,
        enabled=True,
        update_domains=1,
        machines=[
            Machine(
                name=machine,
                addresses=[],
                host=None,
                update_domain=0,
                presence=presence,
                origin="file",
                vm_id="",
            )
            for machine in machines
        ],
    )


FLEET = Fleet(
    scopes=[
        scope("rg1", "web", "availability-set", "web-0", "web-1"),
        scope("rg1", "ss 1", "scale-set", "ss_0", "twin"),
        scope("rg2", "web", "availability-set", "web-0"),
        scope("rg3", "a", "standalone", "twin"),
        scope("rg3", "b", "standalone", "twin"),
        scope("rg3", "c", "standalone", "late", presence="deleted"),
    ]
)


def resources(*typed: str) -> list[str]:
    return [target.resource("S") for target in targets.find(FLEET, typed)]


@pytest.mark.parametrize("typed", ["web-1", "WEB-1", "rg1/web-1", "RG1/Web/web-1"])
def test_a_vm_is_called_by_as_much_of_its_name_as_tells_it_from_others(typed: str) -> None:
    assert resources(typed) == [
        "/subscriptions/S/resourceGroups/rg1/providers/Microsoft.Compute/virtualMachines/web-1"
    ]


def test_an_instance_belongs_to_its_scale_set() -> None:
    (resource,) = resources("ss_0")

    assert resource.endswith(
        "/Microsoft.Compute/virtualMachineScaleSets/ss%201/virtualMachines/ss_0"
    )


def test_a_vm_that_was_named_twice_is_meant_once() -> None:
    assert len(resources("web-1", "rg1/web-1", "rg2/web-0")) == 2


def test_a_name_of_several_vms_is_refused_and_the_choices_are_told() -> None:
    with pytest.raises(Refused, match="say which of rg1/web/web-0, rg2/web/web-0"):
        resources("web-0")


def test_names_that_nothing_has_are_told_all_at_once() -> None:
    for typed in ("rg1/web/web-1/x", "rg9/web-1", "rg1/w/web-1", "late"):
        with pytest.raises(Unknown, match=f"no VM {typed}, nobody; `forewarn fleet`"):
            resources("web-1", typed, "nobody")


def test_vms_that_owners_cannot_tell_apart_are_left_alone() -> None:
    """Azure's address of a VM has its group and its name, and no more."""
    with pytest.raises(Refused, match="rg3/a/twin and rg3/b/twin have one name"):
        resources("rg3/a/twin")

    assert len(resources("rg1/twin")) == 1
