"""Refusals: who was turned away, in the journal, in amounts that nobody can fill a disk with.

Each address may have some lines at once and then one a minute, and all addresses together some
lines and then a few a minute. What was left out is counted, and told in the next line.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from forewarn.core.journal import Actor, Entry, What
from forewarn.core.names import ScopeId
from forewarn.ports.clock import Clock
from forewarn.service.books import Books
from forewarn.service.suspicion import network

LINES_OF_ADDRESS: Final = 10
LINES_OF_ALL: Final = 100
EACH_OF_ADDRESS: Final = timedelta(minutes=1)
EACH_OF_ALL: Final = timedelta(seconds=6)
REMEMBERED_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Purse:
    """How many lines are left, as it was at an instant."""

    left: float
    at: timedelta


class Refusals:
    """Writes down who was refused."""

    def __init__(
        self, clock: Clock, books: Books, turn: AbstractContextManager[object] | None = None
    ) -> None:
        self._clock = clock
        self._books = books
        # Where several threads ask, a lock; not held while writing.
        self._turn = nullcontext() if turn is None else turn
        self._of_all = _Purse(LINES_OF_ALL, clock.elapsed())
        self._purses: OrderedDict[str, _Purse] = OrderedDict()
        self._left_out = 0

    def note(self, what: What, actor: Actor, note: str) -> None:
        """Write a line, or count it. Raises: Unavailable."""
        with self._turn:
            if not self._spend(network(actor.address)):
                self._left_out += 1
                return
            left_out, self._left_out = self._left_out, 0
        if left_out:
            note += f" (and {left_out} more refusals before, not written down)"
        self._books.journalize(
            Entry(at=self._clock.now(), scope=ScopeId(""), what=what, actor=actor, note=note)
        )

    def _spend(self, place: str) -> bool:
        """Take a line off what a place and all together may have, if both have one."""
        now = self._clock.elapsed()
        full = _Purse(LINES_OF_ADDRESS, now)
        own = _earned(self._purses.get(place, full), LINES_OF_ADDRESS, EACH_OF_ADDRESS, now)
        of_all = _earned(self._of_all, LINES_OF_ALL, EACH_OF_ALL, now)
        pays = own.left >= 1 and of_all.left >= 1
        self._purses[place] = _Purse(own.left - pays, now)
        self._of_all = _Purse(of_all.left - pays, now)
        self._purses.move_to_end(place)
        while len(self._purses) > REMEMBERED_MAX:
            self._purses.popitem(last=False)
        return pays


def _earned(purse: _Purse, most: int, each: timedelta, now: timedelta) -> _Purse:
    return _Purse(min(purse.left + (now - purse.at) / each, float(most)), now)
