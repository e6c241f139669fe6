"""One run of a service over one footing, and what leads callers to the run there is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from forewarn.core.rights import Principal
from forewarn.web.emulator import EmulatorParts
from forewarn.web.listeners import Bound
from forewarn.web.routes import Found, Table
from forewarn.web.server import MetadataServer
from forewarn.wiring.assembly import Assembly
from forewarn.wiring.carrying import Carriers
from forewarn.wiring.trust import Doorkeeper
from forewarn.wiring.working import Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A service at work: its parts, its threads, its guests and its paths."""

    assembly: Assembly
    workers: Workers
    carriers: Carriers
    guests: MetadataServer
    door: Doorkeeper
    table: Table
    emulator: EmulatorParts | None
    # What ends with it.
    stack: ExitStack

    async def open(self, bound: Sequence[Bound]) -> None:
        """Answer guests, and begin to work."""
        # Before anything is called readable, it is.
        await self.guests.serve(bound)
        for threads in (self.workers, self.carriers):
            threads.start()
            self.stack.callback(threads.stop)

    def end(self) -> None:
        """Finish the steps under way, and let go of the store. Guests are stopped before."""
        self.stack.close()

    def abandon(self) -> None:
        """The same for a run that keeps nothing: nobody waits for its threads to end."""
        self.workers.dismiss()
        self.carriers.dismiss()
        self.stack.pop_all()


class Switchboard:
    """The paths and the authority of the run there is: a new one takes its place at once."""

    def __init__(self, running: Running) -> None:
        self.running = running

    def end(self) -> None:
        """End the run there is."""
        self.running.end()

    def find(self, path: str) -> Found | None:
        return self.running.table.find(path)

    def principal(self, bearer: str) -> Principal | None:
        return self.running.door.authority.principal(bearer)

    def note_refusal(self, principal: Principal | None, address: str, what: str) -> None:
        self.running.door.authority.note_refusal(principal, address, what)
