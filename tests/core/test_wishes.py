"""How a wish falls into events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core import wishes
from forewarn.core.events import Cause, EventSource, EventType
from forewarn.core.names import HostName, MachineName
from forewarn.core.scopes import Machine, Presence, Scope
from forewarn.core.wishes import Wish
from forewarn.errors import Refused, Unknown
from forewarn.testing import strategies

A, B = HostName("host-a"), HostName("host-b")


def machine(name: str, host: HostName | None, update_domain: int) -> Machine:
    return Machine(name=MachineName(name), host=host, update_domain=update_domain)


WEB = Scope(
    name="web",
    machines=(
        machine("web-3", A, 1),
        machine("web-0", B, 0),
        machine("web-1", A, 0),
        machine("web-2", B, 0),
        machine("web-4", None, 0),
        machine("web-5", None, 0),
        Machine(name=MachineName("old"), presence=Presence.DELETED),
        Machine(name=MachineName("off"), presence=Presence.DEALLOCATED),
    ),
)


def freeze(*names: str) -> Wish:
    return Wish(type=EventType.FREEZE, machines=names)


def test_machines_are_taken_once_each_and_in_the_order_of_the_roster() -> None:
    chosen = wishes.targets(WEB, freeze("WEB-2", "web-0", "web-3", "web-2"))

    assert [m.name for m in chosen] == ["web-3", "web-0", "web-2"]


def test_an_event_has_one_update_domain_on_one_host() -> None:
    """keeps S15: lower update domains first, then the order of the roster."""
    grouped = wishes.groups(WEB.machines[:-2])

    assert [[m.name for m in group] for group in grouped] == [
        ["web-0", "web-2"],
        ["web-1"],
        ["web-4"],
        ["web-5"],
        ["web-3"],
    ]


@given(strategies.scopes())
def test_grouping_loses_nobody_and_splits_only_where_it_must(scope: Scope) -> None:
    grouped = wishes.groups(scope.machines)

    assert sorted(m.name for group in grouped for m in group) == sorted(
        m.name for m in scope.machines
    )
    kinds = [{(m.update_domain, m.host) for m in group} for group in grouped]
    assert all(len(kind) == 1 for kind in kinds)
    hosted = [kind.pop() for kind, group in zip(kinds, grouped, strict=True) if group[0].host]
    assert len(hosted) == len(set(hosted))
    assert all(len(group) == 1 for group in grouped if group[0].host is None)
    assert [group[0].update_domain for group in grouped] == sorted(
        group[0].update_domain for group in grouped
    )


@given(strategies.scopes(), st.data())
def test_the_order_of_the_names_in_a_wish_does_not_matter(
    scope: Scope, data: st.DataObject
) -> None:
    running = [m.name for m in scope.machines if m.presence is Presence.RUNNING]
    if running:
        shuffled = data.draw(st.permutations(running))

        assert wishes.targets(scope, freeze(*shuffled)) == wishes.targets(scope, freeze(*running))


def test_a_machine_that_is_not_there_is_unknown_and_one_that_is_gone_refused() -> None:
    with pytest.raises(Unknown, match="no VM web-9 in scope default/web"):
        wishes.targets(WEB, freeze("web-0", "web-9"))
    with pytest.raises(Refused, match="old is deleted"):
        wishes.targets(WEB, freeze("web-0", "old"))
    with pytest.raises(Refused, match="off is deallocated"):
        wishes.targets(WEB, freeze("web-0", "off"))


def test_a_wish_names_somebody() -> None:
    with pytest.raises(Refused, match="at least one"):
        wishes.targets(WEB, freeze())


@pytest.mark.parametrize(
    ("wish", "text"),
    [
        (freeze("a"), "Host server is undergoing maintenance."),
        (
            Wish(type=EventType.REBOOT, source=EventSource.USER, machines=("a",)),
            "Virtual machine is going to be restarted as requested by authorized user.",
        ),
        (
            Wish(type=EventType.REDEPLOY, source=EventSource.USER, machines=("a",)),
            "Virtual machine is going to be redeployed as requested by authorized user.",
        ),
        (
            Wish(type=EventType.REBOOT, cause=Cause.HARDWARE_FAILURE, machines=("a",)),
            "Virtual machine has encountered a failure.",
        ),
        (
            Wish(type=EventType.REDEPLOY, cause=Cause.PREDICTED_FAILURE, machines=("a",)),
            "Host server is undergoing an emergency repair.",
        ),
        (Wish(type=EventType.PREEMPT, machines=("a",)), ""),
        (Wish(type=EventType.TERMINATE, machines=("a",)), ""),
        (Wish(type=EventType.FREEZE, machines=("a",), description="my words"), "my words"),
        (Wish(type=EventType.FREEZE, machines=("a",), description=""), ""),
    ],
)
def test_guests_read_azures_words_unless_others_are_given(wish: Wish, text: str) -> None:
    assert wishes.description(wish) == text
