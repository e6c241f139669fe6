"""The roll: that a scope's machines asked is noted in the store, once at a time for each scope."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from forewarn.core.names import ScopeId
from forewarn.errors import ForewarnError
from forewarn.ports.identities import Caller
from forewarn.service.desk import Desk
from forewarn.web.backroom import Backroom
from forewarn.web.counters import Counters
from forewarn.web.visits import named

Then = Callable[[], None]


class Roll:
    """Has the desk commit who asked, in the backroom, and goes on with whoever waits for that."""

    def __init__(
        self, backroom: Backroom, desk: Desk, counters: Counters, log: logging.Logger
    ) -> None:
        self._backroom = backroom
        self._desk = desk
        self._counters = counters
        self._log = log
        # Scopes that are being noted, and who asked for it since.
        self._since: dict[ScopeId, list[tuple[Caller, tuple[Then, ...]]]] = {}

    def note(self, caller: Caller, *then: Then) -> None:
        """Note that the caller's scope asked, and go on; also where it cannot be noted."""
        since = self._since.get(caller.scope)
        if since is not None:
            since.append((caller, then))
            return
        self._since[caller.scope] = []
        self._backroom.do(partial(self._desk.attend, caller), partial(self._noted, caller, then))

    def _noted(self, caller: Caller, then: Sequence[Then], job: asyncio.Future[None]) -> None:
        error = job.exception()
        if error is not None:
            # The document is known all the same: the guest gets it, and its next request tries
            # again. A bug is logged, and costs no answer.
            self._counters.attend_failures += 1
            self._log.warning(
                "could not note that scope %s asked: %s",
                caller.scope,
                error,
                exc_info=None if isinstance(error, ForewarnError) else error,
                extra={"action": "attend_failed", **named(caller)},
            )
        since = self._since.pop(caller.scope)
        later = [go_on for _, thens in since for go_on in thens]
        for go_on in then:
            go_on()
        if since and error is None and self._desk.hear(since[0][0]):
            # What was noted was too old for them: on a clock that is moved, a day is soon over.
            self.note(since[0][0], *later)
            return
        for go_on in later:
            go_on()
