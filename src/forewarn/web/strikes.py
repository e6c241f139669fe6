"""Strikes: faults as guests feel them at the endpoint.

Of the faults that concern a caller, one may delay its request, one may refuse it, and one may spoil the
answer. A request that is delayed is taken up when the delay is over, whether or not the guest has hung up
meanwhile. A request that is refused is not looked at, so that nothing is approved. One whose answer is
spoiled was done: a guest that saw its connection reset may have approved all the same, as in real life.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from forewarn.core.documents import FIRST_INCARNATION
from forewarn.core.names import Incarnation, ScopeId
from forewarn.ports.clock import Clock
from forewarn.ports.identities import Caller, Identities
from forewarn.service.board import Board, Posting
from forewarn.web import metadata
from forewarn.web.connection import Connection
from forewarn.web.faults import Fault, FaultKind, Faults, Happening
from forewarn.web.messages import Ending, Reply
from forewarn.web.responses import Responses
from forewarn.wire import refusals

_REFUSALS: Final = {
    FaultKind.THROTTLED: refusals.THROTTLED,
    FaultKind.GONE: refusals.GONE,
    FaultKind.BROKEN: refusals.BROKEN,
    FaultKind.AWAY: refusals.AWAY,
}
_DELAYING: Final = (FaultKind.SLOW, FaultKind.SLOW_FIRST)
_SPOILING_ANY: Final = (FaultKind.RESET,)
_SPOILING_BODIES: Final = (FaultKind.RESET, FaultKind.EMPTY, FaultKind.TRUNCATED)
_OK: Final = b"HTTP/1.1 200 "
_HEAD_END: Final = b"\r\n\r\n"


class Strikes:
    """Has faults strike guests. Called in the loop's thread; told of faults in any."""

    def __init__(  # noqa: PLR0913 - it stands between the endpoint and its guests
        self,
        faults: Faults,
        identities: Identities,
        board: Board,
        responses: Responses,
        *,
        clock: Clock,
        wake: Callable[[ScopeId], None],
        log: logging.Logger,
    ) -> None:
        """`wake` has those of a scope look at the document again; called in any thread."""
        self._faults = faults
        self._identities = identities
        self._board = board
        self._responses = responses
        self._clock = clock
        self._wake = wake
        self._log = log
        self._late: dict[int, _Late] = {}
        self._delayed = 0
        # There will be no later.
        self._is_over = False
        # By fault, for each scope that was counted anew: the number that it had just before its 1.
        self._restarts: dict[str, dict[ScopeId, int]] = {}
        # Held by whoever writes them; they are replaced whole, for those who read.
        self._restarting = threading.Lock()
        # The last posting of each scope, and the same with another number.
        self._renumbered: dict[ScopeId, tuple[Posting, Posting]] = {}
        faults.watch(self._note)

    # -- requests ----------------------------------------------------------------------------

    def delay(self, connection: Connection, then: Callable[[], None]) -> bool:
        """Have a request wait, if it is struck so; `then` takes it up. Whether it waits."""
        fault = None if self._is_over else self._strike(_DELAYING, connection)
        if fault is None:
            return False
        connection.suspend()
        self._delayed += 1
        late = self._late[self._delayed] = _Late(self._clock.elapsed() + fault.delay, then)
        if not self._faults.is_manual:
            seconds = fault.delay.total_seconds()
            loop = asyncio.get_running_loop()
            late.timer = loop.call_later(seconds, self._take_up, self._delayed)
        return True

    def instead(self, caller: Caller) -> Reply | None:
        """The answer to a request that is struck so that nobody looks at it."""
        fault = self._faults.strike(_REFUSALS, caller.scope, (caller.machine,))
        return None if fault is None else metadata.refused(_REFUSALS[fault.kind])

    def send(self, connection: Connection, response: bytes, ending: Ending) -> None:
        """Send the answer to the request at hand, as it is or spoiled."""
        head, _, body = response.partition(_HEAD_END)
        is_document = response.startswith(_OK) and body
        fault = self._strike(_SPOILING_BODIES if is_document else _SPOILING_ANY, connection)
        match None if fault is None else fault.kind:
            case FaultKind.RESET:
                connection.reset()
            case FaultKind.EMPTY:
                connection.send(self._responses.response(Reply(200), ending), ending)
            case FaultKind.TRUNCATED:
                # Half of what the head promises, and then the end.
                connection.send(head + _HEAD_END + body[: len(body) // 2], Ending.CLOSE)
            case _:
                connection.send(response, ending)

    def _strike(self, kinds: Collection[FaultKind], connection: Connection) -> Fault | None:
        caller = self._identities.identify(connection.listener, connection.address)
        if caller is None:
            return None
        return self._faults.strike(kinds, caller.scope, (caller.machine,))

    def look_at_the_clock(self) -> datetime | None:
        """Take up what has waited long enough, and end the faults whose time is over.

        When the next request has waited long enough, on a clock that has to be advanced to that.
        """
        self._faults.look_at_the_clock()
        if not self._faults.is_manual:
            return None
        elapsed = self._clock.elapsed()
        for number in [n for n, late in self._late.items() if late.due <= elapsed]:
            self._take_up(number)
        due = min((late.due for late in self._late.values()), default=None)
        return None if due is None else self._clock.now() + (due - elapsed)

    def end_delays(self) -> None:
        """Take up whatever waits, and have nothing wait from now on."""
        self._is_over = True
        for number in tuple(self._late):
            self._take_up(number)

    def _take_up(self, number: int) -> None:
        late = self._late.pop(number)
        if late.timer is not None:
            late.timer.cancel()
        late.then()

    # -- documents ---------------------------------------------------------------------------

    def shown(self, scope: ScopeId, posting: Posting) -> Posting:
        """A scope's posting as guests see it: counted anew, if it was told to be."""
        before = next((r[scope] for r in reversed(self._restarts.values()) if scope in r), 0)
        if not before:
            return posting
        number = Incarnation(posting.document.incarnation - before)
        kept = self._renumbered.get(scope)
        if kept is None or kept[0] is not posting or kept[1].document.incarnation != number:
            kept = (posting, Posting(replace(posting.ledger, incarnation=number)))
            self._renumbered[scope] = kept
        return kept[1]

    def _note(self, happening: Happening, fault: Fault, whom: str) -> None:
        if fault.kind is FaultKind.INCARNATION_RESTART:
            self._note_restart(happening, fault)
        self._log.warning(
            "fault %s %s%s: %s",
            fault.id,
            happening.value,
            f" {whom}" if whom else "",
            _told(fault),
            extra={"action": f"fault_{happening.value}", "fault": fault.id},
        )

    def _note_restart(self, happening: Happening, fault: Fault) -> None:
        """Count the scopes that are meant from 1 on from now on, or as before again."""
        with self._restarting:
            restarts = dict(self._restarts)
            scopes = restarts.pop(fault.id, {})
            if happening is Happening.BEGAN:
                scopes = restarts[fault.id] = self._counted_so_far(fault)
            self._restarts = restarts
        for scope in scopes:
            self._wake(scope)

    def _counted_so_far(self, fault: Fault) -> dict[ScopeId, int]:
        """For each scope that is meant, the number before that of its document."""
        found: dict[ScopeId, int] = {}
        for scope in self._board.scopes:
            posting = self._board.posting(scope)
            assert posting is not None, "no scope is ever taken down"
            if fault.concerns(scope, [machine.name for machine in posting.scope.machines]):
                found[scope] = posting.document.incarnation - FIRST_INCARNATION
        return found


@dataclass(slots=True)
class _Late:
    """A request that waits for its time, on the emulator's clock or on the loop's."""

    due: timedelta
    then: Callable[[], None]
    timer: asyncio.TimerHandle | None = None


def _told(fault: Fault) -> str:
    """What a fault is, for people."""
    parts = [fault.kind.value, "for " + (fault.machine or "all VMs")]
    if fault.times is not None:
        parts.append(f"strikes left: {fault.times}")
    if fault.until is not None:
        parts.append(f"until {fault.until:%Y-%m-%dT%H:%M:%SZ}")
    if fault.delay:
        parts.append(f"by {fault.delay.total_seconds():g} s")
    return ", ".join(parts)
