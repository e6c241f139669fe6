"""Lane: whoever comes while others are on their way waits, and goes together with the next.

The first to come leads: it takes everybody who waits, does their work with its own, and gives
each an outcome of its own. There is no thread behind it, and who comes alone goes at once.
Whatever the leader meets, nobody is left waiting.

Several who go again and again would fall apart into two halves that take turns, each waiting
while the other works. So after a group of several the next leader waits a little for as many to
come again: for half of what the work took the last time, at most.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from forewarn.errors import OutcomeUnknown

ItemT = TypeVar("ItemT")
OutcomeT = TypeVar("OutcomeT")

_PATIENCE: Final = 0.5


class _Passenger(Generic[ItemT, OutcomeT]):
    """Somebody in the lane. Who waits is woken with an outcome, or without one to lead."""

    __slots__ = ("item", "outcome", "wake")

    def __init__(self, item: ItemT) -> None:
        self.item = item
        self.outcome: OutcomeT | Exception | None = None
        # A lock for each: those who share a condition are woken only to contend for its lock.
        self.wake = threading.Lock()


class Lane(Generic[ItemT, OutcomeT]):
    """Makes one piece of work of all that is asked for at the same time.

    `cross` does the work, in one thread at a time. To call its argument closes the group and
    says what is in it, in the order of arrival. It returns an outcome for each: a value to
    return, or an exception to raise. If it raises, its own caller does, and only that one if
    the group was not closed yet.
    """

    def __init__(
        self, cross: Callable[[Callable[[], list[ItemT]]], Sequence[OutcomeT | Exception]]
    ) -> None:
        self._cross = cross
        # Guards what follows, and is never held while anybody works.
        self._mutex = threading.Lock()
        self._waiting: list[_Passenger[ItemT, OutcomeT]] = []
        # Whoever is at work, or was woken to begin.
        self._leader: _Passenger[ItemT, OutcomeT] | None = None
        # Whether the leader sleeps until as many are here as may be expected.
        self._is_gathering = False
        self._expected = 1
        self._gather_until = 0.0

    def go(self, item: ItemT) -> OutcomeT:
        """Have the work done, together with that of others; returns or raises its own outcome.

        Raises: OutcomeUnknown, if whoever led was interrupted.
        """
        mine: _Passenger[ItemT, OutcomeT] = _Passenger(item)
        try:
            if not self._enter(mine):
                mine.wake.acquire()
            if mine.outcome is None:
                self._lead(mine)
        except BaseException:
            self._leave(mine)
            raise
        outcome = mine.outcome
        assert outcome is not None, "who went has an outcome"
        if isinstance(outcome, Exception):
            try:
                raise outcome
            finally:
                # Or the error would hold its own frame, and that the error.
                del mine, outcome
        return outcome

    def _enter(self, mine: _Passenger[ItemT, OutcomeT]) -> bool:
        """Wait, or lead where nobody does; whether it is to lead."""
        with self._mutex:
            self._waiting.append(mine)
            if self._leader is None:
                self._leader = mine
                return True
            mine.wake.acquire()
            if self._is_gathering and len(self._waiting) >= self._expected:
                self._is_gathering = False
                self._leader.wake.release()
            return False

    def _lead(self, mine: _Passenger[ItemT, OutcomeT]) -> None:
        group: list[_Passenger[ItemT, OutcomeT]] = []

        def aboard() -> list[ItemT]:
            with self._mutex:
                group[:], self._waiting = self._waiting, []
            return [passenger.item for passenger in group]

        if self._expected > 1:
            self._gather(mine)
        began = time.monotonic()
        try:
            outcomes = self._cross(aboard)
            for passenger, outcome in zip(group, outcomes, strict=True):
                passenger.outcome = outcome
        finally:
            for passenger in group:
                if passenger is not mine:
                    if passenger.outcome is None:
                        passenger.outcome = OutcomeUnknown(
                            "whoever wrote this commit was interrupted: repeat the commit"
                        )
                    passenger.wake.release()
        now = time.monotonic()
        self._gather_until = now + (now - began) * _PATIENCE
        self._expected = len(group) + len(self._waiting)
        self._leave(mine)

    def _gather(self, mine: _Passenger[ItemT, OutcomeT]) -> None:
        """Give those who just went the chance to come again."""
        patience = self._gather_until - time.monotonic()
        with self._mutex:
            if patience <= 0 or len(self._waiting) >= self._expected:
                return
            self._is_gathering = True
            # Free if it never waited; if it did, it holds what it was woken with.
            mine.wake.acquire(blocking=False)
        mine.wake.acquire(timeout=patience)
        with self._mutex:
            self._is_gathering = False

    def _leave(self, mine: _Passenger[ItemT, OutcomeT]) -> None:
        """Wait and lead no longer; if this one led, somebody else does."""
        with self._mutex:
            if mine in self._waiting:
                self._waiting.remove(mine)
            if self._leader is not mine:
                return
            self._is_gathering = False
            self._leader = self._waiting[0] if self._waiting else None
            if self._leader is not None:
                self._leader.wake.release()
