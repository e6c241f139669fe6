"""Lane: whoever comes while others are on their way waits, and goes together with the next.

The first to come leads: it takes everybody who waits, does their work with its own, and gives
each an outcome of its own. There is no thread behind it and no delay: who comes alone goes at
once. Whatever the leader meets, nobody is left waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from forewarn.errors import OutcomeUnknown

ItemT = TypeVar("ItemT")
OutcomeT = TypeVar("OutcomeT")


class _Passenger(Generic[ItemT, OutcomeT]):
    """Somebody in the lane. Woken once: with an outcome, or without one, to lead."""

    __slots__ = ("item", "outcome", "wake")

    def __init__(self, item: ItemT) -> None:
        self.item = item
        self.outcome: OutcomeT | Exception | None = None
        # A lock for each, so that waking one does not set all others contending for another.
        self.wake = threading.Lock()
        self.wake.acquire()


class Lane(Generic[ItemT, OutcomeT]):
    """Makes one piece of work of all that is asked for at the same time.

    `cross` does the work. It is called by one thread at a time; calling its argument closes
    the group and says what is in it, in the order of arrival. It returns one outcome for each:
    a value to return, or an exception to raise.
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

    def go(self, item: ItemT) -> OutcomeT:
        """Have the work done, together with that of others; returns or raises its own outcome.

        Raises: OutcomeUnknown, if whoever led was interrupted.
        """
        mine = _Passenger[ItemT, OutcomeT](item)
        with self._mutex:
            self._waiting.append(mine)
            if self._leader is None:
                self._leader = mine
            is_leader = self._leader is mine
        try:
            if not is_leader:
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

    def _lead(self, mine: _Passenger[ItemT, OutcomeT]) -> None:
        group: list[_Passenger[ItemT, OutcomeT]] = []

        def aboard() -> list[ItemT]:
            with self._mutex:
                group[:], self._waiting = self._waiting, []
            return [passenger.item for passenger in group]

        try:
            outcomes = self._cross(aboard)
            for passenger, outcome in zip(group, outcomes, strict=True):
                passenger.outcome = outcome
        finally:
            for passenger in group:
                if passenger is mine:
                    continue
                if passenger.outcome is None:
                    passenger.outcome = OutcomeUnknown(
                        "whoever wrote this commit was interrupted: repeat the commit"
                    )
                passenger.wake.release()
        # Only now: those just woken may come again in time for the next group.
        self._leave(mine)

    def _leave(self, mine: _Passenger[ItemT, OutcomeT]) -> None:
        """Wait and lead no longer; if this one led, somebody else does."""
        with self._mutex:
            if mine in self._waiting:
                self._waiting.remove(mine)
            if self._leader is not mine:
                return
            self._leader = self._waiting[0] if self._waiting else None
            heir = self._leader
        if heir is not None:
            heir.wake.release()
