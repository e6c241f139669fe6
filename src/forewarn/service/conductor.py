"""The conductor: what happens because time passes.

It keeps a heap of wakes, one per scope that has any, so that its cost follows what happens and
not the size of the fleet. Any number of conductors may run: each step is a compare-and-swap, and
whoever loses looks again.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from forewarn.core import enabling, ledgers, periods, publishing, starting, waking
from forewarn.core.events import EventStatus, Outcome, Result
from forewarn.core.journal import SERVICE
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import EventId, Revision, ScopeId
from forewarn.core.orders import Order, Progress, unfinished_orders
from forewarn.core.periods import Periods
from forewarn.core.scopes import Enabling
from forewarn.errors import Conflict, ForewarnError, Refused, Unavailable
from forewarn.ports.clock import Clock
from forewarn.ports.fabric import Fabric
from forewarn.service.attendance import Attendance
from forewarn.service.board import Board
from forewarn.service.books import Amendment, Books

LOOK_AGAIN_AFTER: Final = timedelta(seconds=1)
# Scopes whose changes are committed at once. More would save little, and keep others from the store.
TENDED_TOGETHER: Final = 64


@dataclass(frozen=True, slots=True)
class Setback:
    """A scope that could not be tended; it is tried again a little later."""

    scope: ScopeId
    error: ForewarnError


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of one turn: when the next is due, and what could not be done."""

    next_wake: datetime | None
    setbacks: tuple[Setback, ...]


class Conductor:
    """Tends each scope when its time has come."""

    def __init__(
        self,
        clock: Clock,
        books: Books,
        board: Board,
        fabric: Fabric,
        attendance: Attendance,
        rules: Periods,
    ) -> None:
        self._clock = clock
        self._books = books
        self._board = board
        self._fabric = fabric
        self._attendance = attendance
        self._rules = rules
        # Written by any committing thread; a deque's ends are safe to use from several.
        self._inbox: deque[ScopeId] = deque()
        self._heap: list[tuple[datetime, ScopeId]] = []
        self._wakes: dict[ScopeId, datetime] = {}
        # The revision at which all that is due was done, and only time can bring more.
        self._left: dict[ScopeId, Revision] = {}
        # How far the hands are ahead of the time that passed, when last looked at.
        self._offset = self._offset_least = clock.now() - clock.elapsed()
        # When, on the clock that does not jump, each waiting event's notice began.
        self._readable_since: dict[EventId, timedelta] = {}

    def note(self, ledger: Ledger) -> None:
        """A ledger was committed: look at it in the next turn. Safe to call from any thread."""
        self._attendance.see(ledger)
        self._inbox.append(ledger.scope.id)

    def adopt(self, ledger: Ledger) -> None:
        """Take a ledger in at start-up, when only its next wake matters."""
        self._attendance.adopt(ledger)
        if ledger.open_events:
            self.note(ledger)
        else:
            self._schedule(ledger, self._clock.now())

    def turn(self) -> Turn:
        """Tend every scope whose time has come or whose ledger changed."""
        setbacks: list[Setback] = []
        due = iter(self._due())
        while scopes := tuple(islice(due, TENDED_TOGETHER)):
            for scope, error in self._tend(scopes).items():
                if not isinstance(error, (Conflict, Unavailable)):
                    raise error
                setbacks.append(Setback(scope, error))
                self._left.pop(scope, None)
                self._wake_at(scope, self._clock.now() + LOOK_AGAIN_AFTER)
        return Turn(self._next_wake(), tuple(setbacks))

    def _due(self) -> Iterable[ScopeId]:
        due: dict[ScopeId, None] = {}
        while self._inbox:
            scope = self._inbox.popleft()
            if not self._has_done(scope):
                due[scope] = None
        now = self._clock.now()
        if self._was_set_back(now):
            # Every wake is too late now, and the fabric does not go by the time of day.
            due.update(dict.fromkeys(self._wakes))
        while self._heap and self._heap[0][0] <= now:
            instant, scope = heapq.heappop(self._heap)
            if self._wakes.get(scope) == instant:
                del self._wakes[scope]
                due[scope] = None
        return due

    def _has_done(self, scope: ScopeId) -> bool:
        """Whether the newest ledger of the scope is what the last look at it has left."""
        ledger = self._board.ledger(scope)
        return ledger is not None and self._left.get(scope) == ledger.revision

    def _was_set_back(self, now: datetime) -> bool:
        before, self._offset = self._offset, now - self._clock.elapsed()
        self._offset_least = min(self._offset_least, self._offset)
        return self._offset < before - LOOK_AGAIN_AFTER

    def _next_wake(self) -> datetime | None:
        if self._inbox:
            return self._clock.now()
        while self._heap and self._wakes.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _wake_at(self, scope: ScopeId, instant: datetime) -> None:
        self._wakes[scope] = instant
        heapq.heappush(self._heap, (instant, scope))

    def _tend(self, scopes: Sequence[ScopeId]) -> dict[ScopeId, Exception]:
        """Do what is due in these scopes, and note when to look again; what could not be done."""
        troubles: dict[ScopeId, Exception] = {}
        reports: list[Amendment] = []
        amended = self._books.amend_each([(scope, self._decide) for scope in scopes])
        for scope, ledger in zip(scopes, amended, strict=True):
            if isinstance(ledger, Exception):
                troubles[scope] = ledger
                continue
            for order in _orders(ledger):
                try:
                    reports += self._carry_out(order)
                except Unavailable as error:
                    # One machine out of reach does not keep the others waiting.
                    troubles[scope] = error
            self._schedule(ledger, self._clock.now())
        for (scope, _), noted in zip(reports, self._books.amend_each(reports), strict=True):
            if isinstance(noted, Exception):
                troubles[scope] = noted
        return troubles

    def _decide(self, ledger: Ledger) -> Decision:
        """All that time alone brings, in one decision."""
        now = self._clock.now()
        decision = Decision(ledger)
        # What guests cannot read yet is not readable, whatever the ledger says.
        if publishing.unpublished(ledger) and self._board.shows(ledger):
            decision = publishing.publish(ledger, now, self._rules)
        unserved = self._unserved(decision.ledger)
        started = waking.start_due(decision.ledger, now, self._rules, unserved)
        decision = ledgers.then(decision, started)
        for event, machine in waking.overdue(decision.ledger, now, self._rules):
            late = starting.time_out(decision.ledger, event.id, machine, now)
            decision = ledgers.then(decision, late)
        if _may_fall_silent(ledger):
            silent_for = self._attendance.silent_for(ledger)
            silent = enabling.fall_silent(decision.ledger, silent_for, now)
            decision = ledgers.then(decision, silent)
        return ledgers.then(decision, waking.forget(decision.ledger, now, self._rules))

    def _carry_out(self, order: Order) -> list[Amendment]:
        """Begin what is not begun; what is to be noted if it is over. Raises: Unavailable."""
        outcome = self._pursue(order)
        if outcome is None:
            return []
        return [(order.scope, lambda ledger: _report(ledger, order.event, outcome))]

    def _pursue(self, order: Order) -> Outcome | None:
        """Have an order carried out; its outcome once it is over. Raises: Unavailable."""
        try:
            report = self._fabric.observe(order)
            if report.progress is Progress.UNKNOWN:
                self._fabric.begin(order)
        except Refused as refusal:
            return Outcome(order.machine, Result.FAILED, self._clock.now(), str(refusal))
        if report.progress is Progress.DONE:
            return Outcome(order.machine, Result.DONE, self._clock.now(), report.detail)
        if report.progress is Progress.FAILED:
            return Outcome(order.machine, Result.FAILED, self._clock.now(), report.detail)
        return None

    def _schedule(self, ledger: Ledger, now: datetime) -> None:
        """Note when to look at the scope again, having just looked."""
        # What the board did not show when it was looked at is looked at again once it does.
        if not publishing.unpublished(ledger):
            self._left[ledger.scope.id] = ledger.revision
        instants: list[datetime] = []
        wake = waking.wake(ledger, now, self._rules)
        if wake is not None:
            # What is due and was not done waits for the fabric, or for time to really pass.
            instants.append(wake if wake > now else now + LOOK_AGAIN_AFTER)
        if _may_fall_silent(ledger):
            silent_for = self._attendance.silent_for(ledger)
            instants.append(now + periods.SILENCE - silent_for)
        if instants:
            self._wake_at(ledger.scope.id, min(instants))

    def _unserved(self, ledger: Ledger) -> frozenset[EventId]:
        """The events whose notice has not really passed, whatever the time of day says."""
        elapsed = self._clock.elapsed()
        unserved: set[EventId] = set()
        for event in ledger.events:
            if event.status is not EventStatus.SCHEDULED or event.readable_at is None:
                self._readable_since.pop(event.id, None)
                continue
            # Somebody else may have written that down before the hands were set: of all the
            # moments at which they can have shown this, the last one counts.
            began = min(event.readable_at - self._offset_least, elapsed)
            since = self._readable_since.setdefault(event.id, began)
            if elapsed - since < event.notice:
                unserved.add(event.id)
        return frozenset(unserved)


def _may_fall_silent(ledger: Ledger) -> bool:
    return ledger.scope.enabling is Enabling.ON_REQUEST and ledger.is_enabled


def _orders(ledger: Ledger) -> tuple[Order, ...]:
    """What the fabric is to do, or is doing, for the scope."""
    return tuple(
        order
        for event in ledger.events
        if event.status is EventStatus.STARTED
        for order in unfinished_orders(ledger.scope.id, event)
    )


def _report(ledger: Ledger, event_id: EventId, outcome: Outcome) -> Decision:
    """Note an outcome, unless somebody else noted the end of that order first."""
    event = ledger.find(event_id)
    if event is None or not event.is_open or outcome.machine not in event.unfinished:
        return Decision(ledger)
    return starting.report(ledger, event_id, outcome, SERVICE)
