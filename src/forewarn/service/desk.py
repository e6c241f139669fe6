"""The desk: what people and guests ask for.

Every answer is given after the commit that makes it true is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from forewarn.core import announcing, enabling, ledgers, periods, starting
from forewarn.core.announcing import Announced
from forewarn.core.events import Audience, Event, Result
from forewarn.core.journal import Actor, Role
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import MachineName, ScopeId
from forewarn.core.periods import Periods
from forewarn.core.wishes import Wish
from forewarn.errors import Malformed
from forewarn.ports.clock import Clock
from forewarn.ports.identities import Caller
from forewarn.ports.ids import Ids
from forewarn.ports.store import Write
from forewarn.service.attendance import Attendance
from forewarn.service.board import Board, Posting
from forewarn.service.books import Books, Ledgers
from forewarn.service.directory import Directory


@dataclass(frozen=True, slots=True)
class Placed:
    """An event, and the scope it belongs to."""

    ledger: Ledger
    event: Event


@dataclass(frozen=True, slots=True)
class Desk:
    """Answers what is asked, over the ledgers."""

    clock: Clock
    ids: Ids
    books: Books
    board: Board
    directory: Directory
    attendance: Attendance
    rules: Periods

    # -- guests --------------------------------------------------------------------------

    def posting(self, caller: Caller) -> Posting:
        """What is up for the caller's scope; never touches the store."""
        posting = self.board.posting(caller.scope)
        assert posting is not None, "identities know only scopes that were posted"
        return posting

    def hear(self, caller: Caller) -> bool:
        """Take note of an accepted request; whether it must (also) be committed by `attend`."""
        self.attendance.hear(caller.scope)
        ledger = self.posting(caller).ledger
        return enabling.needs_mark(ledger, self.clock.now(), self.attendance.mark_age(ledger))

    def attend(self, caller: Caller) -> None:
        """Commit that the caller asked: the first request enables its scope.

        Raises: Unavailable.
        """
        now = self.clock.now()
        self.books.amend(caller.scope, lambda ledger: self._heard(ledger, caller, now))

    def approve_as_guest(self, caller: Caller, event_ids: Sequence[str]) -> None:
        """Approve events on behalf of the caller's whole scope: all of these, or none.

        Raises: UnknownEvent, Unavailable.
        """
        (error,) = self.approve_each([(caller, event_ids)])
        if error is not None:
            raise error

    def approve_each(self, asked: Sequence[tuple[Caller, Sequence[str]]]) -> list[Exception | None]:
        """Approve on behalf of several callers, who share what it takes to be durable.

        For each, what `approve_as_guest` would have raised, or None.
        """
        now = self.clock.now()
        outcomes = self.books.amend_each(
            [
                (caller.scope, partial(self._approved, caller, tuple(event_ids), now))
                for caller, event_ids in asked
            ]
        )
        return [outcome if isinstance(outcome, Exception) else None for outcome in outcomes]

    def _approved(
        self, caller: Caller, event_ids: tuple[str, ...], now: datetime, ledger: Ledger
    ) -> Decision:
        # Approved first: a request that is refused is not heard.
        approved = starting.approve(ledger, event_ids, _guest(caller), now)
        return ledgers.then(approved, self._heard(approved.ledger, caller, now))

    def _heard(self, ledger: Ledger, caller: Caller, now: datetime) -> Decision:
        """The ledger with its mark, where one is due; attended to before anybody is told of it."""
        heard = enabling.hear(ledger, _guest(caller), now, self.attendance.mark_age(ledger))
        if heard.ledger.heard_at == ledger.heard_at:
            self.attendance.hear(caller.scope)
        else:
            self.attendance.mark(ledger, now)
        return heard

    # -- operators -----------------------------------------------------------------------

    def announce(
        self,
        wish: Wish,
        hosts: Sequence[str],
        actor: Actor,
        beside: Callable[[Sequence[Event]], Sequence[Write]] | None = None,
    ) -> tuple[Placed, ...]:
        """Announce a wish to every scope it concerns, or to none.

        The wish names machines as people do: `web-0`, `rg1/web-0` or `rg1/web/web-0`. What is to
        be written beside the events is committed with them.

        Raises: Malformed, Unknown, Refused, Unavailable.
        """
        by_scope = self._by_scope(wish, hosts)
        made: dict[ScopeId, Announced] = {}

        def decide(found: Ledgers) -> list[Decision]:
            made.clear()
            for scope, names in by_scope.items():
                made[scope] = announcing.announce(
                    found[scope],
                    replace(wish, machines=tuple(names)),
                    now=self.clock.now(),
                    new_id=self.ids.event_id,
                    rules=self.rules,
                    actor=actor,
                )
            return [announced.decision for announced in made.values()]

        def write() -> Sequence[Write]:
            events = [event for announced in made.values() for event in announced.events]
            return () if beside is None else beside(events)

        committed = self.books.amend_together(tuple(by_scope), decide, write)
        return tuple(
            Placed(committed[scope], event)
            for scope, announced in made.items()
            for event in announced.events
        )

    def approve(self, event_id: str, actor: Actor) -> Placed:
        """Approve an event from outside its scope. Raises: UnknownEvent, Unavailable."""
        return self._amend_event(
            event_id, lambda ledger, now: starting.approve(ledger, (event_id,), actor, now)
        )

    def approve_together(self, scope: ScopeId, event_ids: Sequence[str], actor: Actor) -> None:
        """Approve events of one scope from outside it: all of these, or none.

        Raises: UnknownEvent, Refused, Unavailable.
        """
        now = self.clock.now()
        self.books.amend(
            scope, lambda ledger: starting.approve(ledger, tuple(event_ids), actor, now)
        )

    def cancel(self, event_id: str, actor: Actor) -> Placed:
        """Call an event off. Raises: UnknownEvent, IllegalTransition, Unavailable."""
        return self._amend_event(
            event_id, lambda ledger, now: starting.cancel(ledger, event_id, actor, now)
        )

    def postpone(self, event_id: str, later: datetime | timedelta, actor: Actor) -> Placed:
        """Move an event to an instant, or by a while. Raises: UnknownEvent, Refused, Unavailable."""

        def decide(ledger: Ledger, now: datetime) -> Decision:
            to = later
            if isinstance(to, timedelta):
                # Beyond a year it is refused in any case, and must not leave the calendar.
                within = min(max(to, timedelta()), periods.ANNOUNCED_AHEAD_MAX)
                to = ledger.event(event_id).not_before + within
            return starting.postpone(ledger, event_id, to, actor, now, self.rules)

        return self._amend_event(event_id, decide)

    def resolve(self, event_id: str, result: Result, actor: Actor) -> Placed:
        """End a started event by an operator's word.

        Raises: UnknownEvent, IllegalTransition, Unavailable.
        """
        return self._amend_event(
            event_id, lambda ledger, now: starting.resolve(ledger, event_id, result, actor, now)
        )

    def event(self, event_id: str) -> Placed:
        """An event and its ledger, as they are now. Raises: UnknownEvent, Unavailable."""
        ledger = self.books.load(self.directory.event(event_id))
        return Placed(ledger, ledger.event(event_id))

    def events(self) -> tuple[Placed, ...]:
        """The events in all ledgers, open or lately ended, oldest first. Raises: Unavailable."""
        placed = [
            Placed(ledger, event)
            for scope in self.directory.eventful()
            for ledger in (self.books.load(scope),)
            for event in ledger.events
        ]
        return tuple(sorted(placed, key=lambda p: (p.event.announced_at, p.event.not_before)))

    def _amend_event(self, event_id: str, decide: Callable[[Ledger, datetime], Decision]) -> Placed:
        now = self.clock.now()
        scope = self.directory.event(event_id)
        ledger = self.books.amend(scope, lambda found: decide(found, now))
        return Placed(ledger, ledger.event(event_id))

    def _by_scope(self, wish: Wish, hosts: Sequence[str]) -> dict[ScopeId, list[MachineName]]:
        found = self.directory.machines(wish.machines)
        for host in hosts:
            found.extend(self.directory.host(host))
        if not found:
            raise Malformed("name at least one VM or host")
        by_scope: dict[ScopeId, list[MachineName]] = {}
        for scope, machine in found:
            by_scope.setdefault(scope, []).append(machine)
        return by_scope


def is_unannounced(event: Event) -> bool:
    """Whether guests were not told of the event."""
    return event.audience is Audience.OPERATORS


def _guest(caller: Caller) -> Actor:
    return Actor(Role.GUEST, caller.machine, caller.address)
