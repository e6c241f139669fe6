"""The hatch: polls that nothing but memory is needed for, answered in one step.

Nearly all requests are such polls: known bytes, a known machine, the document of the second before.
Whatever is not so simple gets no answer here, and takes the long way through the server, which
leaves behind what the hatch needs for the next time. Who calls and which document is up are looked
up for each request, here as there.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from forewarn.core import enabling
from forewarn.ports.clock import Clock
from forewarn.ports.identities import Identities
from forewarn.service.attendance import Attendance
from forewarn.service.board import Board
from forewarn.web.counters import Counters
from forewarn.web.metadata import SCHEDULED_EVENTS, Decision
from forewarn.web.responses import Responses, Sheet

_SHOWN: Final = (SCHEDULED_EVENTS, 200)


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
        self._identify = identities.identify
        self._posting = board.posting
        self._hear_at = attendance.hear_at
        self._mark_age = attendance.mark_age
        self._joined = responses.joined
        self._sheets = responses.sheets
        self._answers = counters.answers
        self._clock = clock
        self.look_at_the_clock(timedelta())

    def look_at_the_clock(self, again_after: timedelta) -> None:
        """Take it to be the present time until it is looked at again.

        Machines are heard up to that moment, rather later than they were: nobody falls silent early.
        """
        self._now = self._clock.now()
        self._elapsed = self._clock.elapsed() + again_after

    def answer(self, decision: Decision, listener: str, address: str) -> bytes | None:
        """The response, counted and noted; None if it takes more than memory."""
        plain = decision.plain
        if plain is None:
            return None
        caller = self._identify(listener, address)
        if caller is None:
            return None
        scope = caller.scope
        sheet = self._sheets.get(scope)
        if sheet is None or sheet.posting is not self._posting(scope):
            return None
        ready = sheet.forms.get(plain)
        if ready is None:
            return None
        if not (
            sheet.fresh_after < self._now < sheet.fresh_before and self._elapsed < sheet.fresh_for
        ):
            self._look_at_the_mark(sheet)
            return None
        self._hear_at(scope, self._elapsed)
        self._answers[_SHOWN] += 1
        return self._joined(ready, decision.ending)

    def _look_at_the_mark(self, sheet: Sheet) -> None:
        """Find out until when callers of this scope need not be heard in the store."""
        ledger = sheet.posting.ledger
        fresh = enabling.freshness(ledger, self._mark_age(ledger))
        if fresh is not None:
            sheet.fresh_after, sheet.fresh_before = fresh.after, fresh.before
            sheet.fresh_for = self._clock.elapsed() + fresh.lasts
