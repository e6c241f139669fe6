"""Values take each other's place."""

from __future__ import annotations

import dataclasses
from dataclasses import replace as standard

import pytest
from hypothesis import given

from forewarn.core.events import Event
from forewarn.core.values import replace
from forewarn.testing import strategies
from forewarn.testing.worlds import NOON


@given(strategies.events())
def test_a_replacement_is_what_the_standard_library_would_make(event: Event) -> None:
    assert replace(event) == event
    assert replace(event, hold="x", ended_at=NOON) == standard(event, hold="x", ended_at=NOON)


@given(strategies.events())
def test_the_old_value_stays_as_it_is(event: Event) -> None:
    hold = event.hold

    replace(event, hold=hold + "x")

    assert event.hold == hold


@given(strategies.events())
def test_what_is_asserted_of_a_value_is_asserted_of_its_replacement(event: Event) -> None:
    with pytest.raises(AssertionError):
        replace(event, machines=())


def test_a_value_has_no_fields_but_its_own() -> None:
    point = dataclasses.make_dataclass("point", ["x", "y"], frozen=True, slots=True)

    with pytest.raises(KeyError):
        replace(point(1, 2), z=3)
