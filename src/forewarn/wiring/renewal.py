"""Another run of a service in the place of one, over the same sockets: what a reset is.

Guests that come in between wait at the socket; nobody is refused.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from forewarn.web.emulator import Time
from forewarn.web.listeners import Bound
from forewarn.web.server import MetadataServer
from forewarn.wiring.running import Running, Switchboard

GRACE: Final = timedelta(seconds=10)
# How often to look whether the guests' endpoint has committed what it was asked, up to a second.
QUIET_SECONDS: Final = 0.001
QUIET_LOOKS_MAX: Final = 1000


class Renewal:
    """Replaces the run on a switchboard, one at a time."""

    def __init__(
        self,
        board: Switchboard,
        begin: Callable[[int | None], Awaitable[Running]],
        bound: Sequence[Bound],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._board = board
        self._begin = begin
        self._bound = bound
        self._loop = loop
        self._one = asyncio.Lock()

    @property
    def places(self) -> tuple[Bound, ...]:
        """The addresses for one run: sockets of its own, which it may close."""
        return tuple(replace(place, socket=place.socket.dup()) for place in self._bound)

    def begin_anew(self, seed: int | None) -> Time:
        """Have a new run take over; its time. Called from any thread but the loop's."""
        return asyncio.run_coroutine_threadsafe(self._renew(seed), self._loop).result()

    async def _renew(self, seed: int | None) -> Time:
        async with self._one:
            before = self._board.running
            await before.guests.stop(GRACE)
            before.abandon()
            # What was made to stay, see `wiring.garbage`, was the old run's.
            gc.unfreeze()
            running = await self._begin(seed)
            await running.open(self.places)
            self._board.running = running
            assert running.emulator is not None, "only an emulator is reset"
            return running.emulator.time


def tell_guests(loop: asyncio.AbstractEventLoop, guests: MetadataServer) -> datetime | None:
    """Have the guests' endpoint look at the clock, and finish what that has it do.

    The instant at which it should look again, if that matters. Called from any thread but the loop's.
    """

    async def look() -> datetime | None:
        again = guests.look_at_the_clock()
        # What was delayed until now may have been an approval.
        for _ in range(QUIET_LOOKS_MAX):
            if guests.is_quiet:
                break
            await asyncio.sleep(QUIET_SECONDS)
        return again

    return asyncio.run_coroutine_threadsafe(look(), loop).result()
