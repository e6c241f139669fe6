"""The guests' endpoint on real sockets; the only file of the room that waits, and that logs.

Theory: one thread runs the event loop and answers from the board, without a lock and without the
store. What commits (approvals, and noting that a scope asked) runs in worker threads, and the
answer that depends on it is sent after the commit is durable.
"""

from __future__ import annotations

import asyncio
import logging
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import Final

from forewarn.core.names import Incarnation, ScopeId
from forewarn.ports.clock import Clock
from forewarn.ports.identities import Caller, Identities
from forewarn.service.board import Board, Posting
from forewarn.service.desk import Desk
from forewarn.web import metadata
from forewarn.web.backroom import Backroom, Tray
from forewarn.web.connection import Connection
from forewarn.web.counters import Counters
from forewarn.web.door import Door
from forewarn.web.faults import Faults
from forewarn.web.gate import Admission, Gate
from forewarn.web.hall import Hall
from forewarn.web.hatch import Answer, Hatch
from forewarn.web.limits import Limits, connections_max
from forewarn.web.listeners import Bound
from forewarn.web.memo import Heads, Memo
from forewarn.web.messages import Ending, Reply
from forewarn.web.metadata import OTHER, STRICT, Decision, Manners, ReadDocument, StartEvents
from forewarn.web.phases import Phase
from forewarn.web.responses import Responses
from forewarn.web.roll import Roll
from forewarn.web.strikes import Strikes
from forewarn.web.visits import ASK_ELSEWHERE, Strangers, VisitorsBook, named, not_at_once, origin
from forewarn.web.waiting import Waiter, WaitingRoom
from forewarn.wire import refusals
from forewarn.wire.refusals import Refusal

# Waiting guests that are told of a change in one turn of the loop.
TOLD_AT_ONCE: Final = 250

_CLOSE: Final = Ending.CLOSE


class MetadataServer:
    """Answers guests on any number of addresses."""

    def __init__(  # noqa: PLR0913 - everything it serves with
        self,
        desk: Desk,
        identities: Identities,
        board: Board,
        *,
        limits: Limits,
        counters: Counters,
        clock: Clock,
        subscription_id: str,
        log: logging.Logger,
        manners: Manners = STRICT,
        visitors: VisitorsBook | None = None,
        faults: Faults | None = None,
    ) -> None:
        self.limits = limits
        self.manners = manners
        self.memo: Memo[Decision] = Memo(limits)
        self.heads = Heads(limits)
        self.gate = Gate(limits, counters, connections_max=connections_max(limits))
        self._desk = desk
        self._identities = identities
        self._board = board
        self._counters = counters
        self._visitors = visitors
        self._clock = clock
        self._subscription_id = subscription_id
        self._log = log
        self._responses = Responses()
        self._hatch = Hatch(identities, board, desk.attendance, self._responses, counters, clock)
        self.recall: Callable[[bytes], Decision | None] = self.memo.recall
        # What goes wrong on purpose.
        self._strikes: Strikes | None = None
        self._send: Callable[[Connection, bytes, Ending], None] = Connection.send
        if faults is not None:
            self._strikes = Strikes(
                faults, identities, board, self._responses,
                clock=clock, wake=self._note_change, log=log,
            )  # fmt: skip
            self._send = self._strikes.send
        self._waiting = WaitingRoom()
        self._strangers = Strangers(log, "" if visitors is None else ASK_ELSEWHERE)
        self._backroom = Backroom(limits.workers, self._note_quiet)
        self._roll = Roll(self._backroom, desk, counters, log)
        self._approvals: Tray[tuple[Caller, bytes], Reply | Exception] = Tray(
            self._backroom,
            partial(metadata.start_each, desk=desk),
            lot_max=limits.approvals_together_max,
        )
        self._doors: list[Door] = []
        self._hall: Hall | None = None
        self._sweeping: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        self._quiet = asyncio.Event()

    # -- beginning and end -------------------------------------------------------------------

    async def serve(self, bound: Sequence[Bound]) -> None:
        """Answer on addresses that were taken before, and see to it that they are closed."""
        assert self._loop is None, "a server is started once"
        self._loop = asyncio.get_running_loop()
        self._hall = Hall(self._loop, unsent_bytes_max=self.limits.unread_bytes_max)
        self._board.watch(self._note_change)
        self._sweep(self._loop)
        for place in bound:
            self.open(place)

    def open(self, place: Bound) -> Door:
        """Answer at this address too, until the door is closed; in the loop's thread."""
        assert self._loop is not None, "see serve"
        # Whoever is written down, or struck, takes the long way: the hatch knows neither.
        is_simple = self._visitors is None and self._strikes is None
        answer = self._hatch.at(place.name) if is_simple else not_at_once
        door = Door(self, place, self._loop, answer)
        door.open()
        self._doors.append(door)
        extra = {"action": "listen", "listener": place.name}
        self._log.info("listening on %s", place.name, extra=extra)
        return door

    async def stop(self, grace: timedelta) -> None:
        """Take no more requests, finish what is under way, and close; cut it off after a while."""
        self._stopping = True
        for door in self._doors:
            door.close()
        # First of all: whoever was delayed must not be told to wait now.
        for connection in self._connections():
            connection.retire()
        for connection in self._waiting.connections:
            self.end_wait(connection)
        if self._strikes is not None:
            self._strikes.end_delays()
        self._note_quiet()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace.total_seconds()):
                await self._quiet.wait()
        for connection in self._connections():
            connection.abort()
        # Connections tell of their end in the loop's next turn.
        await asyncio.sleep(0)
        if self._hall is not None:
            self._hall.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._backroom.close()

    def _connections(self) -> tuple[Connection, ...]:
        return tuple(v for v in self.gate.visitors if isinstance(v, Connection))

    @property
    def is_quiet(self) -> bool:
        """Whether nothing that was asked is still to be committed."""
        return self._backroom.is_quiet and self._approvals.is_empty

    def _note_quiet(self) -> None:
        if self._stopping and not self.gate.visitors and self.is_quiet:
            self._quiet.set()

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        # First of all: a sweep that breaks must not be the last one.
        self._sweeping = loop.call_later(self.limits.sweep.total_seconds(), self._sweep, loop)
        self.look_at_the_clock()
        self.gate.sweep(loop.time())

    def look_at_the_clock(self) -> datetime | None:
        """Take note of the time, as is done every now and then; in the loop's thread.

        The instant at which it should be looked at again, if that matters.
        """
        self._responses.date(self._clock.now())
        self._hatch.look_at_the_clock(self.limits.sweep)
        return None if self._strikes is None else self._strikes.look_at_the_clock()

    # -- what doors ask ----------------------------------------------------------------------

    def seat(self, descriptor: int, listener: str, address: str, answer: Answer) -> Connection:
        """A connection for a guest that stays."""
        assert self._hall is not None
        return Connection(self._hall, descriptor, self, answer, listener, address)

    def note_exhaustion(self, listener: str, error: OSError) -> None:
        """Take note that nobody can be let in for the moment."""
        self._counters.throttled += 1
        extra = {"action": "exhausted", "listener": listener}
        self._log.warning("nobody can be let in for a moment: %s", error, extra=extra)

    # -- what connections ask ----------------------------------------------------------------

    def admit(self, connection: Connection) -> Admission:
        """Count a new connection, and say whether it is served."""
        connection.is_last = self._stopping
        if self._identities.identify(connection.listener, connection.address) is None:
            return self.gate.admit_stranger(connection)
        connection.is_known = True
        return self.gate.admit_machine(connection)

    def take(self, connection: Connection, decision: Decision, body: bytes) -> None:
        """Answer a request, now or later."""
        if self._strikes is None or not self._strikes.delay(
            connection, partial(self._take_up, connection, decision, body)
        ):
            self._take_up(connection, decision, body)

    def _take_up(self, connection: Connection, decision: Decision, body: bytes) -> None:
        try:
            caller = self._identities.identify(connection.listener, connection.address)
            action = decision.action
            if caller is None:
                self._turn_away(connection, decision)
            elif self._strikes is not None and (reply := self._strikes.instead(caller)) is not None:
                self._reply(connection, decision, reply)
            elif isinstance(action, ReadDocument):
                self._read(connection, decision, action, caller)
            elif isinstance(action, StartEvents):
                self._approve(connection, decision, caller, body)
            else:
                reply = metadata.answer(
                    decision, caller, self._desk, subscription_id=self._subscription_id
                )
                self._reply(connection, decision, reply)
        except Exception:  # noqa: BLE001 - a bug costs one answer, not the endpoint
            self._log.exception("a request broke", extra={"action": "broken", **origin(connection)})
            if connection.phase is Phase.ANSWERING:
                self._reply(connection, decision, metadata.refused(refusals.BROKEN))
            else:
                connection.abort()

    def refuse(self, connection: Connection, refusal: Refusal) -> None:
        """Answer what is no request, or one too many, and hang up."""
        self._count(connection, None, refusal.status)
        connection.send_off(self._responses.response(metadata.refused(refusal), _CLOSE))

    def end_wait(self, connection: Connection) -> None:
        """Answer a long poll with what there is."""
        waiter = self._waiting.leave(connection)
        self._counters.waiting = len(self._waiting)
        if waiter is None:
            return
        connection.phase = Phase.ANSWERING
        # While it waited, the machine may have been given to another scope, or taken away.
        caller = self._identities.identify(connection.listener, connection.address)
        if caller is None:
            self._turn_away(connection, waiter.decision)
            return
        scope, decision = caller.scope, waiter.decision
        posting = self._posting(scope)
        # `*` names any document; whoever waited for another one is shown it all the same.
        is_news = (scope, posting.document.incarnation) != (waiter.scope, waiter.incarnation)
        if is_news:
            ending = _CLOSE if connection.is_last else decision.ending
            self._count(connection, decision, 200)
            response = self._responses.news(waiter.action, scope, posting, ending)
            self._send(connection, response, ending)
        else:
            self._show(connection, decision, waiter.action, scope)

    def forget(self, connection: Connection) -> None:
        """Take note that a connection is over."""
        self.gate.leave(connection)
        if self._waiting.leave(connection) is not None:
            self._counters.waiting = len(self._waiting)
        self._note_quiet()

    # -- answers -----------------------------------------------------------------------------

    def _count(self, connection: Connection, decision: Decision | None, status: int) -> None:
        self._counters.count(OTHER if decision is None else decision.route, status)
        if self._visitors is not None:
            caller = self._identities.identify(connection.listener, connection.address)
            self._visitors.enter(caller, connection.address, decision, status)

    def _reply(self, connection: Connection, decision: Decision, reply: Reply) -> None:
        if decision.method == "HEAD":
            reply = replace(reply, body=b"")
        ending = _CLOSE if connection.is_last else decision.ending
        self._count(connection, decision, reply.status)
        self._send(connection, self._responses.response(reply, ending), ending)

    def _posting(self, scope: ScopeId) -> Posting:
        """What guests of a scope are shown."""
        posting = self._board.posting(scope)
        assert posting is not None, "identities know only scopes that were posted"
        return posting if self._strikes is None else self._strikes.shown(scope, posting)

    def _turn_away(self, connection: Connection, decision: Decision) -> None:
        self._counters.strangers += 1
        self._strangers.name(connection)
        connection.is_last = True
        self._reply(connection, decision, metadata.refused(refusals.stranger(connection.address)))

    def _read(
        self, connection: Connection, decision: Decision, action: ReadDocument, caller: Caller
    ) -> None:
        if self._desk.hear(caller):
            if not self._desk.posting(caller).is_enabled:
                # The first answer is given after the scope is enabled for good.
                connection.suspend()
                then = partial(self._show_or_wait, connection, decision, action, caller.scope)
                self._roll.note(caller, then)
                return
            self._roll.note(caller)
        if action.wait:
            self._show_or_wait(connection, decision, action, caller.scope)
        else:
            self._show(connection, decision, action, caller.scope)

    def _show(
        self, connection: Connection, decision: Decision, action: ReadDocument, scope: ScopeId
    ) -> None:
        posting = self._posting(scope)
        ending = _CLOSE if connection.is_last else decision.ending
        status, response = self._responses.document(action, scope, posting, ending)
        self._count(connection, decision, status)
        self._send(connection, response, ending)

    def _show_or_wait(
        self, connection: Connection, decision: Decision, action: ReadDocument, scope: ScopeId
    ) -> None:
        posting = self._posting(scope)
        must_wait = action.wait and not connection.is_last and metadata.is_known(action, posting)
        if not must_wait or connection.phase is not Phase.ANSWERING:
            self._show(connection, decision, action, scope)
            return
        assert self._loop is not None
        connection.wait(self._loop.time() + action.wait.total_seconds())
        waiter = Waiter(decision, action, scope, posting.document.incarnation)
        self._waiting.enter(connection, waiter)
        self._counters.waiting = len(self._waiting)

    # -- documents that change ---------------------------------------------------------------

    def _note_change(self, scope: ScopeId) -> None:
        """Another document is up; told in whichever thread posted it."""
        if self._loop is None:
            return
        # Whoever commits after the endpoint's end has nobody to wake.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._wake, scope)

    def _wake(self, scope: ScopeId) -> None:
        incarnation = self._posting(scope).document.incarnation
        self._tell(iter(self._waiting.behind(scope, incarnation)), incarnation)

    def _tell(self, guests: Iterator[Connection], incarnation: Incarnation) -> None:
        """End the wait of some, then of the others: answers go out in between."""
        assert self._loop is not None
        for connection in islice(guests, TOLD_AT_ONCE):
            # Meanwhile it may have had its answer, and wait for the next one.
            if self._waiting.is_behind(connection, incarnation):
                self.end_wait(connection)
        if operator.length_hint(guests):
            self._loop.call_soon(self._tell, guests, incarnation)

    # -- approvals, committed in worker threads ----------------------------------------------

    def _approve(
        self, connection: Connection, decision: Decision, caller: Caller, body: bytes
    ) -> None:
        connection.suspend()
        self._approvals.put((caller, body), partial(self._approved, connection, decision, caller))

    def _approved(
        self,
        connection: Connection,
        decision: Decision,
        caller: Caller,
        outcome: Reply | Exception,
    ) -> None:
        if isinstance(outcome, Exception):
            # A bug costs one answer, not the endpoint.
            extra = {"action": "broken", **named(caller)}
            self._log.error("an approval broke", exc_info=outcome, extra=extra)
            outcome = metadata.refused(refusals.BROKEN)
        self._counters.approvals += outcome.status == HTTPStatus.OK
        self._log.info(
            "%s asked to start events: %s",
            caller.machine,
            outcome.status,
            extra={"action": "approve", "status": outcome.status, **named(caller)},
        )
        self._reply(connection, decision, outcome)
