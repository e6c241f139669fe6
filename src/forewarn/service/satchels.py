"""A satchel: what a courier has read for one webhook and not told it yet.

In each scope changes are told one after the other, in the order of the journal; scopes do not wait for
each other. A satchel is in memory only: the position that it comes to is what is stored, and from there
the same satchel is filled again. It holds a bounded number of letters, and is read on into when there is
room again.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from forewarn.core import webhooks
from forewarn.core.journal import Entry
from forewarn.core.names import ScopeId
from forewarn.core.webhooks import ChangeId, Webhook
from forewarn.ports.store import Change, Cursor
from forewarn.wire import records
from forewarn.wire.webhook_records import Position

LETTERS_MAX: Final = 1000
IN_FLIGHT_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class Letter:
    """One change, to be told to one webhook."""

    change: ChangeId
    entry: Entry
    tries: int = 0
    # Not to be tried before, on the clock that does not jump.
    due: timedelta = timedelta()
    why: str = ""


@dataclass(slots=True)
class _Stretch:
    """A stretch of the journal with something in it to tell, up to the next such stretch."""

    through: Cursor
    left: int = 0
    # The last change that was told in each scope.
    told: dict[ScopeId, ChangeId] = field(default_factory=dict)


class Satchel:
    """What one webhook is still to be told. Used by one thread."""

    def __init__(self, webhook: Webhook, position: Position) -> None:
        self.webhook = webhook
        # Up to where the journal was read, and up to where everything was told.
        self.read = Cursor(position.cursor)
        self._told = Cursor(position.cursor)
        # What is told already, although it stands beyond that: still to be passed by.
        self._passing = dict(position.beyond)
        self._queues: dict[ScopeId, deque[tuple[Letter, _Stretch]]] = {}
        self._stretches: deque[_Stretch] = deque()
        self._in_flight: set[ScopeId] = set()
        self.waiting = 0
        # How many letters were ever given up on: the number of the last one.
        self.given_up = position.given_up

    @property
    def has_room(self) -> bool:
        return self.waiting < LETTERS_MAX

    @property
    def position(self) -> Position:
        """How far the webhook was told, to be stored."""
        beyond: dict[ScopeId, ChangeId] = {}
        for stretch in self._stretches:
            beyond.update(stretch.told)
        # What is still to be passed by stands further on than what was passed by so far.
        return Position(self._told, {**beyond, **self._passing}, self.given_up)

    def fill(self, changes: Sequence[Change]) -> None:
        """Take in the next commits of the journal."""
        for change in changes:
            self._take(change)
            self.read = change.cursor
        if not self._stretches:
            self._told = self.read

    def start_over(self) -> None:
        """Read the journal from the beginning of what is left of it: the rest is gone."""
        self.read = Cursor("")
        self._passing = {}
        if self._stretches:
            self._stretches[-1].through = Cursor("")
        else:
            self._told = Cursor("")

    def due(self, elapsed: timedelta) -> list[Letter]:
        """The letters to be told now; each is in flight until it is told, or failed."""
        found: list[Letter] = []
        for scope, queue in self._queues.items():
            if len(self._in_flight) >= IN_FLIGHT_MAX:
                break
            letter = queue[0][0]
            if scope not in self._in_flight and letter.due <= elapsed:
                self._in_flight.add(scope)
                found.append(letter)
        return found

    def next_due(self) -> timedelta | None:
        """When the next letter is to be tried, if any waits for its time alone."""
        if len(self._in_flight) >= IN_FLIGHT_MAX:
            return None
        times = [q[0][0].due for scope, q in self._queues.items() if scope not in self._in_flight]
        return min(times, default=None)

    def settle(self, letter: Letter) -> None:
        """A letter was told, or given up on: its scope goes on to the next."""
        scope = letter.entry.scope
        queue = self._queues[scope]
        first, stretch = queue.popleft()
        assert first.change == letter.change, "in each scope one after the other"
        if queue:
            # To the end, so that no scope waits for all letters of another one.
            self._queues[scope] = self._queues.pop(scope)
        else:
            del self._queues[scope]
        self._in_flight.discard(scope)
        self.waiting -= 1
        stretch.left -= 1
        stretch.told[scope] = letter.change
        if not stretch.left:
            self._pass_told()

    def fail(self, letter: Letter, why: str, now: datetime, elapsed: timedelta) -> Letter | None:
        """A letter was not taken: try it later. If there is no hope, the letter to be given up on."""
        tries = letter.tries + 1
        failed = replace(
            letter, tries=tries, why=why, due=elapsed + webhooks.back_off(tries, _chance(letter))
        )
        if webhooks.is_hopeless(letter.entry, now, tries):
            return failed
        scope = letter.entry.scope
        self._in_flight.discard(scope)
        self._queues[scope][0] = (failed, self._queues[scope][0][1])
        return None

    def failing(self) -> Iterator[Letter]:
        """The letters that were tried, and wait to be tried again."""
        return (q[0][0] for q in self._queues.values() if q[0][0].tries)

    def _take(self, change: Change) -> None:
        stretch = _Stretch(change.cursor)
        for number, value in enumerate(change.journal):
            entry = records.load_entry(value)
            if not webhooks.wants(self.webhook, entry):
                continue
            letter = Letter(ChangeId(f"{change.commit_id}.{number}"), entry)
            if not self._was_told(letter, stretch):
                self._queues.setdefault(entry.scope, deque()).append((letter, stretch))
                stretch.left += 1
                self.waiting += 1
        if stretch.left:
            self._stretches.append(stretch)
        elif self._stretches:
            _join(self._stretches[-1], stretch)

    def _was_told(self, letter: Letter, stretch: _Stretch) -> bool:
        """Whether a letter stands before what a scope was told already, or is that."""
        scope = letter.entry.scope
        last = self._passing.get(scope)
        if last is None:
            return False
        stretch.told[scope] = letter.change
        if last == letter.change:
            del self._passing[scope]
        return True

    def _pass_told(self) -> None:
        """Move the position over what is told, and forget where the stretches of that ended."""
        kept: deque[_Stretch] = deque()
        for stretch in self._stretches:
            if stretch.left or not kept:
                kept.append(stretch)
            else:
                _join(kept[-1], stretch)
        while kept and not kept[0].left:
            self._told = kept.popleft().through
        self._stretches = kept


def _join(stretch: _Stretch, following: _Stretch) -> None:
    """Have a stretch reach as far as the next one, of which everything is told."""
    stretch.through = following.through
    stretch.told.update(following.told)


def _chance(letter: Letter) -> float:
    """A share that differs from letter to letter and from try to try, and is repeatable."""
    return zlib.crc32(f"{letter.change}/{letter.tries}".encode()) / 0xFFFFFFFF
