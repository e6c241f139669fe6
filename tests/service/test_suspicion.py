"""How long somebody who guesses has to wait, and who does not have to."""

from __future__ import annotations

from datetime import timedelta

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.service import suspicion
from forewarn.service.suspicion import Suspicion, network
from forewarn.testing.worlds import NOON

HERE, THERE = "10.0.0.1", "10.0.0.2"
NOW = timedelta()


class Guessing:
    """Somebody's suspicion, and a clock to wait by."""

    def __init__(self) -> None:
        self.clock = SimulatedClock(NOON)
        self.suspicion = Suspicion(self.clock)

    def fail(self, principal: str, address: str, times: int = 1) -> None:
        for _ in range(times):
            self.suspicion.note_failure(principal, address)


def test_the_first_wrong_tries_are_free_and_then_the_wait_doubles() -> None:
    guessing = Guessing()
    waits = []
    for _ in range(10):
        guessing.fail("me", HERE)
        waits.append(guessing.suspicion.wait("me", HERE).total_seconds())

    assert waits == [0, 0, 1, 2, 4, 8, 16, 32, 60, 60]


def test_a_wait_is_over_when_it_is_over() -> None:
    guessing = Guessing()
    guessing.fail("me", HERE, 4)

    guessing.clock.advance(timedelta(seconds=1.5))
    assert guessing.suspicion.wait("me", HERE) == timedelta(seconds=0.5)
    # Setting the hands of the clock changes nothing.
    guessing.clock.jump(timedelta(days=1))
    assert guessing.suspicion.wait("me", HERE) == timedelta(seconds=0.5)
    guessing.clock.advance(timedelta(seconds=0.5))
    assert guessing.suspicion.wait("me", HERE) == NOW


def test_a_guesser_locks_nobody_out_elsewhere_and_nobody_else_here() -> None:
    guessing = Guessing()
    guessing.fail("me", HERE, 10)

    assert guessing.suspicion.wait("me", THERE) == NOW
    assert guessing.suspicion.wait("you", HERE) == NOW


def test_an_address_that_guesses_for_many_has_to_wait_for_all() -> None:
    guessing = Guessing()
    for number in range(suspicion.TRIES_OF_ADDRESS):
        guessing.fail(f"p{number}", HERE)

    assert guessing.suspicion.wait("me", HERE) > NOW
    assert guessing.suspicion.wait("", HERE) > NOW
    assert guessing.suspicion.wait("me", THERE) == NOW


def test_ids_that_nobody_has_are_counted_for_the_address_alone() -> None:
    guessing = Guessing()
    guessing.fail("", HERE, suspicion.TRIES_OF_ADDRESS)

    assert guessing.suspicion.wait("", HERE) == suspicion.WAIT_MIN


def test_the_right_secret_forgives_its_principal_but_not_the_address() -> None:
    guessing = Guessing()
    guessing.fail("me", HERE, 2)
    guessing.fail("", HERE, suspicion.TRIES_OF_ADDRESS - 3)

    guessing.suspicion.note_success("me", HERE)
    guessing.suspicion.note_success("you", HERE)
    guessing.fail("me", HERE)

    assert guessing.suspicion.wait("me", HERE) == suspicion.WAIT_MIN


def test_after_a_while_all_is_forgotten() -> None:
    guessing = Guessing()
    guessing.fail("me", HERE, 10)

    guessing.clock.advance(suspicion.FORGOTTEN_AFTER)
    assert guessing.suspicion.wait("me", HERE) == NOW
    guessing.fail("me", HERE)
    assert guessing.suspicion.wait("me", HERE) == NOW


def test_memory_is_bounded() -> None:
    guessing = Guessing()
    guessing.fail("me", HERE, 10)
    for number in range(suspicion.REMEMBERED_MAX):
        guessing.fail("", f"x{number}")

    assert guessing.suspicion.wait("me", HERE) == NOW


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::"),
        ("2001:db8::ffff:0:1", "2001:db8::"),
        ("fe80::1%eth0", "fe80::"),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.1"),
        ("somewhere", "somewhere"),
        ("", ""),
    ],
)
def test_whoever_has_an_address_has_its_network(address: str, place: str) -> None:
    assert network(address) == place
