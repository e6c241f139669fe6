"""Who was turned away is on record, and cannot fill a disk."""

from __future__ import annotations

from datetime import timedelta

from forewarn.core.journal import Actor, Role, What
from forewarn.service import refusals
from forewarn.service.refusals import Refusals
from forewarn.testing.worlds import World


def refuse(kept: Refusals, address: str, times: int = 1) -> None:
    for _ in range(times):
        kept.note(What.CALL_REFUSED, Actor(Role.STRANGER, "stranger", address), "GET /x")


def test_a_refusal_is_written_down() -> None:
    world = World()

    refuse(Refusals(world.clock, world.parts.books), "10.0.0.1")

    (entry,) = world.journal()
    assert (entry.what, entry.scope, entry.note) == (What.CALL_REFUSED, "", "GET /x")
    assert entry.actor == Actor(Role.STRANGER, "stranger", "10.0.0.1")


def test_one_address_gets_so_many_lines_and_the_rest_is_counted() -> None:
    world = World()
    kept = Refusals(world.clock, world.parts.books)

    refuse(kept, "10.0.0.1", 1000)
    assert len(world.journal()) == refusals.LINES_OF_ADDRESS
    world.clock.advance(refusals.EACH_OF_ADDRESS)
    refuse(kept, "10.0.0.1", 1000)

    assert len(world.journal()) == refusals.LINES_OF_ADDRESS + 1
    left_out = 1000 - refusals.LINES_OF_ADDRESS
    assert (
        world.journal()[-1].note
        == f"GET /x (and {left_out} more refusals before, not written down)"
    )


def test_many_addresses_together_get_so_many_lines() -> None:
    """A year of it is some hundred megabytes, which the journal's pruning sees to."""
    world = World()
    kept = Refusals(world.clock, world.parts.books)

    for number in range(refusals.REMEMBERED_MAX + 10):
        refuse(kept, f"x{number}")
    assert len(world.journal()) == refusals.LINES_OF_ALL
    world.clock.advance(timedelta(minutes=1))
    for number in range(100):
        refuse(kept, f"y{number}")

    assert len(world.journal()) == refusals.LINES_OF_ALL + 10
