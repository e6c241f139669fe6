"""Threads that decide on one scope take turns; threads of several scopes cannot deadlock."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from forewarn.core.names import ScopeId
from forewarn.wiring.lanes import Lanes

A, B = ScopeId("rg/a"), ScopeId("rg/b")


def test_one_scope_is_decided_on_by_one_thread_at_a_time() -> None:
    lanes = Lanes()
    inside = threading.Event()

    def enter() -> None:
        # Named twice, it is still one lane.
        with lanes((A, A)):
            inside.set()

    with ThreadPoolExecutor(1) as pool:
        with lanes((A,)):
            pool.submit(enter)
            assert not inside.wait(0.05)

        assert inside.wait(10)


def test_scopes_named_in_any_order_do_not_deadlock() -> None:
    lanes = Lanes()
    rounds = 2_000

    def take(*scopes: ScopeId) -> int:
        count = 0
        for _ in range(rounds):
            with lanes(scopes):
                count += 1
        return count

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.submit(take, A, B), pool.submit(take, B, A)

        assert one.result(30) == other.result(30) == rounds
