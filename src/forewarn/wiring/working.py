"""The threads of a service: one that conducts, one that follows the store's feed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Final

from forewarn.core.names import ScopeId
from forewarn.errors import Unavailable
from forewarn.service.conductor import Turn
from forewarn.wiring.assembly import Assembly
from forewarn.wiring.watching import WatchedStore

# The time of day may be set at any moment, so nobody sleeps for long.
SLEEP_SECONDS_MAX: Final = 1.0
FEED_PAGE: Final = 500
FEED_SECONDS: Final = 0.1
# A turn for each commit of many would take the processor from whoever makes them.
GATHER_SECONDS: Final = 0.01
GATHER_SECONDS_MAX: Final = 0.1
# What is due at one instant takes a few turns; thousands would mean that none of them helps.
TURNS_MAX: Final = 10_000


class Workers:
    """Runs the conductor and the feed until told to stop."""

    def __init__(
        self,
        assembly: Assembly,
        store: WatchedStore,
        log: logging.Logger,
        on_crash: Callable[[], object],
        speed: float = 1.0,
    ) -> None:
        """Over a service whose clock goes at this speed; 0: it stands still until it is advanced."""
        self._assembly = assembly
        self._speed = speed
        self._store = store
        self._log = log
        self._on_crash = on_crash
        self._stopping = threading.Event()
        self._alarm = threading.Event()
        # A conductor has one turn at a time, whoever's thread it is.
        self._conducting = threading.Lock()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name=name, daemon=True)
            for name, work in (("conductor", self._conduct), ("feed", self._follow))
        ]
        # What the last turn could not do, by scope, so that each is logged once.
        self._setbacks: dict[ScopeId, str] = {}
        self.setbacks_total = 0
        # What was last told of the store's state, so that each is logged once.
        self._told = ""
        assembly.books.tell(lambda _: self._alarm.set())

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def start_conducting(self) -> None:
        """The same over a store that nobody else writes to: there is nothing to follow."""
        self._threads[0].start()

    def stop(self) -> None:
        """Finish the step under way, and end."""
        self.dismiss()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def dismiss(self) -> None:
        """Let the threads come to their end, and do not wait for it."""
        self._stopping.set()
        self._alarm.set()

    def settle(self) -> datetime | None:
        """Do all that is due now, in the caller's thread; when more will be due, if ever."""
        for _ in range(TURNS_MAX):
            turn = self._turn()
            if turn.next_wake is None or turn.next_wake > self._assembly.clock.now():
                return turn.next_wake
        raise AssertionError(f"the conductor did not come to rest in {TURNS_MAX} turns")

    @property
    def trouble(self) -> str | None:
        """Why what is asked or due cannot be done at the moment, if so."""
        if self._store.trouble is not None:
            return str(self._store.trouble)
        return next(iter(self._setbacks.values()), None)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # noqa: BLE001 - whatever it was, nobody else would hear of it
            # A bug. Going on without a conductor would be a promise broken in silence.
            self._log.exception("a worker crashed: the service stops")
            self._on_crash()

    def _conduct(self) -> None:
        # Whether the store can be written is known before somebody's approval finds out.
        with suppress(Unavailable):
            self._store.try_again()
        while not self._stopping.is_set():
            self._alarm.clear()
            turn = self._turn()
            if self._alarm.wait(self._sleep_seconds(turn)):
                self._let_gather()

    def _turn(self) -> Turn:
        with self._conducting:
            turn = self._assembly.conductor.turn()
            self._tell_setbacks(turn)
            self._look_after_the_store()
            return turn

    def _let_gather(self) -> None:
        """While one commit follows another, wait a little: what they bring is tended together."""
        until = time.monotonic() + GATHER_SECONDS_MAX
        while self._alarm.is_set() and not self._stopping.is_set() and time.monotonic() < until:
            self._alarm.clear()
            self._alarm.wait(GATHER_SECONDS)

    def _sleep_seconds(self, turn: Turn) -> float:
        # Whoever advances a clock that stands still also does what is due by then.
        if turn.next_wake is None or not self._speed:
            return SLEEP_SECONDS_MAX
        left = (turn.next_wake - self._assembly.clock.now()).total_seconds()
        return min(max(left / self._speed, 0.0), SLEEP_SECONDS_MAX)

    def _tell_setbacks(self, turn: Turn) -> None:
        self.setbacks_total += len(turn.setbacks)
        present = {setback.scope: str(setback.error) for setback in turn.setbacks}
        for scope, message in present.items():
            if self._setbacks.get(scope) != message:
                self._log.warning(message, extra={"action": "setback", "scope": scope})
        self._setbacks = present

    def _look_after_the_store(self) -> None:
        """A store in trouble is tried once a turn, so that nobody has to ask for it to be over."""
        trouble = self._store.trouble
        if trouble is not None:
            with suppress(Unavailable):
                self._store.try_again()
        trouble = self._store.trouble
        if trouble is None and self._told:
            self._log.info("the store can be used again", extra={"action": "store_back"})
        elif trouble is not None and str(trouble) != self._told:
            self._log.warning(str(trouble), extra={"action": "store_away"})
        self._told = str(trouble or "")

    def _follow(self) -> None:
        while not self._stopping.is_set():
            has_more = False
            # The store is watched, and told of once: see above.
            with suppress(Unavailable):
                has_more = self._assembly.feed.follow(FEED_PAGE) > 0
            # What this process commits itself its readers know already, so nobody is in a hurry; and
            # the store is not asked to wait, since it would not hear that we are to end.
            self._stopping.wait(FEED_SECONDS if has_more else SLEEP_SECONDS_MAX)
