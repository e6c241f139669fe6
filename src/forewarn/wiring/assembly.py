"""The service, put together: constructor calls, and who is told of what."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from forewarn.core.ledgers import Ledger
from forewarn.core.periods import Periods
from forewarn.ports.clock import Clock
from forewarn.ports.fabric import Fabric
from forewarn.ports.identities import Identities
from forewarn.ports.ids import Ids
from forewarn.ports.store import Store
from forewarn.service.attendance import Attendance, Endpoints
from forewarn.service.board import Board
from forewarn.service.books import Books, Lane, Writers
from forewarn.service.conductor import Conductor
from forewarn.service.desk import Desk
from forewarn.service.directory import Directory
from forewarn.service.drains import Drains
from forewarn.service.feed import Feed
from forewarn.service.journals import Journals
from forewarn.service.operations import Operations
from forewarn.service.registrar import Registrar
from forewarn.wire import drain_records


@dataclass(frozen=True, slots=True)
class Assembly:
    """All parts of a service, wired and not yet running."""

    clock: Clock
    ids: Ids
    rules: Periods
    store: Store
    fabric: Fabric
    identities: Identities
    books: Books
    board: Board
    directory: Directory
    desk: Desk
    conductor: Conductor
    registrar: Registrar
    journals: Journals
    operations: Operations
    feed: Feed
    drains: Drains

    def load(self) -> int:
        """Read every ledger from the store; returns how many. Raises: Unavailable."""

        def take_in(ledger: Ledger) -> None:
            self._post(ledger)
            self.conductor.adopt(ledger)

        return self.feed.read_all(take_in)

    def told(self, ledger: Ledger) -> None:
        """Pass a committed ledger on to everything that is built from ledgers."""
        posting = self.board.posting(ledger.scope.id)
        if posting is None or posting.revision < ledger.revision:
            self._post(ledger)
            self.conductor.note(ledger)

    def _post(self, ledger: Ledger) -> None:
        # Identities come last: whoever is known can be answered.
        posting = self.board.posting(ledger.scope.id)
        self.directory.note(ledger)
        self.board.post(ledger)
        if posting is None or posting.scope.machines != ledger.scope.machines:
            self.identities.enroll(ledger.scope)


def assemble(  # noqa: PLR0913 - every port, by name
    *,
    clock: Clock,
    ids: Ids,
    store: Store,
    fabric: Fabric,
    identities: Identities,
    rules: Periods,
    turn: AbstractContextManager[object] | None = None,
    lane: Lane | None = None,
    declaring: AbstractContextManager[object] | None = None,
    endpoints: Endpoints = Endpoints.ONE,
    writers: Writers = Writers.SEVERAL,
) -> Assembly:
    """Put a service together over these ports; the locks are for many threads."""
    board = Board()
    books = Books(store, ids, turn, lane, board.ledger, writers)
    directory = Directory()
    attendance = Attendance(clock, endpoints)
    desk = Desk(clock, ids, books, board, directory, attendance, rules)
    journals = Journals(clock, store, books)
    assembly = Assembly(
        clock=clock,
        ids=ids,
        rules=rules,
        store=store,
        fabric=fabric,
        identities=identities,
        books=books,
        board=board,
        directory=directory,
        desk=desk,
        conductor=Conductor(clock, books, board, fabric, attendance, rules),
        registrar=Registrar(clock, books, identities, declaring or nullcontext()),
        journals=journals,
        operations=Operations(clock, ids, store, books, desk, journals),
        feed=Feed(store, books, board),
        drains=Drains(clock, ids, store, turn),
    )
    books.tell(assembly.told)
    assembly.feed.hear(drain_records.PREFIX, assembly.drains.hear)
    return assembly
