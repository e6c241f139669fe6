"""The hatch: polls that nothing but memory is needed for, answered in one step.

Nearly all requests are such polls: known bytes, a known machine, the document of the second before.
Whatever is not so simple gets no answer here, and takes the long way through the server, which
leaves behind what the hatch needs for the next time. Who calls and which document is up are looked
up for each request, here as there.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from forewarn.core import enabling
from forewarn.ports.clock import Clock
from forewarn.ports.identities import Identities
from forewarn.service.attendance import Attendance
from forewarn.service.board import Board
from forewarn.web.counters import Counters
from forewarn.web.metadata import Decision
from forewarn.web.responses import Responses, Sheet

# What is given to whoever speaks from an address; None if it takes more than memory.
Answer = Callable[[Decision, str], bytes | None]


class Hatch:
    """Answers what can be answered at once."""

    def __init__(
        self,
        identities: Identities,
        board: Board,
        attendance: Attendance,
        responses: Responses,
        counters: Counters,
        clock: Clock,
    ) -> None:
        self._identities = identities
        self._board = board
        self._attendance = attendance
        self._responses = responses
        self._counters = counters
        self._clock = clock
        self.look_at_the_clock(timedelta())

    def look_at_the_clock(self, again_after: timedelta) -> None:
        """Take it to be the present time until it is looked at again.

        Machines are heard up to that moment, rather later than they were: nobody falls silent early.
        """
        self._now = self._clock.now()
        self._elapsed = self._clock.elapsed() + again_after

    def at(self, listener: str) -> Answer:
        """What answers those who came to this listener."""
        # Looked up once, what is looked up in them each time: every call here is felt.
        glance = self._identities.glance(listener)
        posted, sheets = self._board.posting, self._responses.sheets.get
        heard, joined = self._attendance.heard, self._responses.joined
        counters = self._counters

        def answer(decision: Decision, address: str) -> bytes | None:
            """The response, counted and noted; None if it takes more than memory."""
            plain = decision.plain
            if plain is None:
                return None
            caller = glance(address)
            if caller is None:
                return None
            scope = caller.scope
            sheet = sheets(scope)
            if sheet is None or sheet.posting is not posted(scope):
                return None
            ready = sheet.forms.get(plain)
            if ready is None:
                return None
            elapsed = self._elapsed
            if sheet.fresh_at is not elapsed and not self._is_fresh(sheet):
                return None
            heard[scope] = elapsed
            counters.shown += 1
            return joined(ready, decision.ending)

        return answer

    def _is_fresh(self, sheet: Sheet) -> bool:
        """Whether callers of this scope need not be heard in the store, at the present time."""
        if sheet.fresh_after < self._now < sheet.fresh_before and self._elapsed < sheet.fresh_for:
            # Until the clock is looked at again, the outcome is the same.
            sheet.fresh_at = self._elapsed
            return True
        ledger = sheet.posting.ledger
        fresh = enabling.freshness(ledger, self._attendance.mark_age(ledger))
        if fresh is not None:
            sheet.fresh_after, sheet.fresh_before = fresh.after, fresh.before
            sheet.fresh_for = self._clock.elapsed() + fresh.lasts
        return False
