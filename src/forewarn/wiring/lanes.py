"""Locks by scope: the threads of one process queue for a ledger instead of racing for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from forewarn.core.names import ScopeId

# Scopes that share a lock by chance wait for each other now and then; a lock each would not pay.
LANES: Final = 256


class Lanes:
    """A fixed number of locks, each for the scopes whose names fall to it."""

    def __init__(self) -> None:
        self._locks = [threading.Lock() for _ in range(LANES)]

    @contextmanager
    def __call__(self, scopes: Sequence[ScopeId]) -> Iterator[None]:
        """Hold the lanes of these scopes; always taken in one order, so that nobody deadlocks."""
        held: list[threading.Lock] = []
        try:
            for lane in sorted({hash(scope) % LANES for scope in scopes}):
                self._locks[lane].acquire()
                held.append(self._locks[lane])
            yield
        finally:
            for lock in held:
                lock.release()
