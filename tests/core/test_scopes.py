"""Who may be down together: update domains, and which scopes cannot be."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core import scopes
from forewarn.core.names import MachineName
from forewarn.core.scopes import UPDATE_DOMAINS_MAX, Machine, Scope, ScopeKind
from forewarn.errors import Refused
from forewarn.testing import strategies

WEB = Scope(
    name="Web",
    resource_group="RG1",
    kind=ScopeKind.AVAILABILITY_SET,
    machines=(Machine(name=MachineName("web-0")), Machine(name=MachineName("web-1"))),
)


def domains(machines: tuple[Machine, ...]) -> list[int]:
    return [machine.update_domain for machine in machines]


def named(count: int) -> tuple[Machine, ...]:
    return tuple(Machine(name=MachineName(f"web-{number}")) for number in range(count))


@pytest.mark.parametrize("count", [1, 3, 5, UPDATE_DOMAINS_MAX])
def test_a_new_scope_is_spread_round_robin(count: int) -> None:
    spread = scopes.spread(named(25), (), count)

    assert domains(spread) == [number % count for number in range(25)]


def test_the_emptiest_update_domain_is_next() -> None:
    given_to = replace(named(1)[0], update_domain=1)

    spread = scopes.spread((given_to, *named(4)[1:]), [given_to.name], 3)

    assert domains(spread) == [1, 0, 2, 0]


@given(strategies.scopes(machines_min=0), st.integers(0, 6))
def test_an_addition_moves_nobody_and_fills_evenly(scope: Scope, count: int) -> None:
    known = {machine.name for machine in scope.machines}
    new = [Machine(name=MachineName(f"new-{number}")) for number in range(count)]

    spread = scopes.spread((*scope.machines, *new), known, scope.update_domains)

    assert spread[: len(known)] == scope.machines
    before, after = Counter(domains(scope.machines)), Counter(domains(spread))
    for domain in range(scope.update_domains):
        assert after[domain] == before[domain] or after[domain] <= min(
            after[other] + 1 for other in range(scope.update_domains)
        )


@given(strategies.scopes(machines_min=0))
def test_reasonable_scopes_can_be(scope: Scope) -> None:
    scopes.check(scope)


@pytest.mark.parametrize(
    ("scope", "why"),
    [
        (replace(WEB, update_domains=0), "0 update domains"),
        (replace(WEB, update_domains=21), "give 1 to 20"),
        (replace(WEB, machines=(Machine(name=MachineName("a"), update_domain=5),)), "0 to 4"),
        (replace(WEB, machines=(Machine(name=MachineName("a"), update_domain=-1),)), "0 to 4"),
        (replace(WEB, machines=(*named(1), Machine(name=MachineName("WEB-0")))), "WEB-0 twice"),
        (replace(WEB, terminate_notice=timedelta(minutes=5, seconds=-1)), "5 to 15 minutes"),
        (replace(WEB, terminate_notice=timedelta(minutes=15, seconds=1)), "5 to 15 minutes"),
        (replace(WEB, terminate_notice=timedelta(minutes=5), spot=True), "spot"),
    ],
)
def test_a_scope_that_cannot_be_is_refused_with_the_reason(scope: Scope, why: str) -> None:
    """keeps S21: terminate notice is 5 to 15 minutes."""
    with pytest.raises(Refused, match=why):
        scopes.check(scope)


@pytest.mark.parametrize("minutes", [5, 15])
def test_terminate_notice_is_five_to_fifteen_minutes(minutes: int) -> None:
    """keeps S21."""
    scopes.check(replace(WEB, terminate_notice=timedelta(minutes=minutes)))


def test_names_ignore_case() -> None:
    assert WEB.id == "rg1/web"
    assert WEB.machine("WEB-1") is WEB.machines[1]
    assert WEB.machine("web-9") is None
