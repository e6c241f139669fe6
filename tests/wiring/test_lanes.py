"""Threads that decide on one scope take turns; threads of several scopes cannot deadlock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import pytest

from forewarn.core.names import ScopeId
from forewarn.wiring.lanes import LANES, Lanes

SECONDS = 10
# Long enough for a thread to come as far as it gets.
MOMENT = 0.05


def lane_of(scope: ScopeId) -> int:
    return hash(scope) % LANES


# Names are hashed otherwise in each process: two that fall to lanes of their own are looked for.
_NAMES = [ScopeId(f"rg/{number}") for number in range(100)]
A = _NAMES[0]
B = next(name for name in _NAMES if lane_of(name) != lane_of(A))
FIRST, SECOND = sorted((A, B), key=lane_of)


def enter(
    lanes: Callable[[Sequence[ScopeId]], AbstractContextManager[None]], *scopes: ScopeId
) -> threading.Event:
    """Go through these lanes, in a thread that holds nobody up should it never come out."""
    inside = threading.Event()

    def go() -> None:
        with lanes(scopes):
            inside.set()

    threading.Thread(target=go, daemon=True).start()
    return inside


def test_one_scope_is_decided_on_by_one_thread_at_a_time() -> None:
    lanes = Lanes()
    with lanes((A,)):
        # Named twice, it is still one lane.
        inside = enter(lanes, A, A)
        assert not inside.wait(MOMENT)

    assert inside.wait(SECONDS)


def test_every_scope_that_was_named_is_held() -> None:
    lanes = Lanes()
    with lanes((A, B)):
        waiting = [enter(lanes, scope) for scope in (A, B)]
        assert not any(inside.wait(MOMENT) for inside in waiting)

    assert all(inside.wait(SECONDS) for inside in waiting)


def test_another_scope_is_not_held_up() -> None:
    lanes = Lanes()
    with lanes((A,)):
        assert enter(lanes, B).wait(SECONDS)


def test_scopes_named_in_any_order_do_not_deadlock() -> None:
    """Whoever waits for the first lane holds none that somebody in the first one may want."""
    lanes = Lanes()
    with lanes((FIRST,)):
        waiting = [enter(lanes, FIRST, SECOND), enter(lanes, SECOND, FIRST)]
        assert not any(inside.wait(MOMENT) for inside in waiting)

        assert enter(lanes, SECOND).wait(SECONDS)

    assert all(inside.wait(SECONDS) for inside in waiting)


def test_a_lane_is_free_again_whatever_happened_inside() -> None:
    lanes = Lanes()
    with pytest.raises(ZeroDivisionError), lanes((A,)):
        raise ZeroDivisionError

    assert enter(lanes, A).wait(SECONDS)
