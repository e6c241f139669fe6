"""The feed: tells this process's readers what was committed, by itself or by others."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from forewarn.core.ledgers import Ledger
from forewarn.errors import Pruned
from forewarn.ports.store import Record, Store, Touch
from forewarn.service.board import Board
from forewarn.service.books import Books
from forewarn.service.commits import scanned
from forewarn.wire import records


class Feed:
    """Follows a store's changes from the moment at which all its ledgers were read."""

    def __init__(self, store: Store, books: Books, board: Board) -> None:
        self._store = store
        self._books = books
        self._board = board
        self._cursor = store.head()
        self._hearers: dict[str, Callable[[Record], None]] = {}

    def hear(self, prefix: str, hearer: Callable[[Record], None]) -> None:
        """Have this called with every record under a prefix that is no ledger, and when it changes.

        It may be called with a record that it knows: look at the version.
        """
        self._hearers[prefix] = hearer

    def read_all(self, reader: Callable[[Ledger], None]) -> int:
        """Hand every ledger to a reader; returns how many. Raises: Unavailable."""
        # The cursor comes first: a commit in between is told twice rather than never.
        self._cursor = self._store.head()
        for prefix, hearer in self._hearers.items():
            for record in scanned(self._store, prefix):
                hearer(record)
        count = 0
        for ledger in self._books.all():
            reader(ledger)
            count += 1
        return count

    def follow(self, limit: int, wait: timedelta = timedelta()) -> int:
        """Pass on what was committed since the last call; returns how many commits.

        Raises: Unavailable.
        """
        try:
            changes = self._store.changes(self._cursor, limit, wait)
        except Pruned:
            return self.read_all(self._books.told)
        touched = {touch.key: touch for change in changes for touch in change.touched}
        self._books.refresh([key for key, touch in touched.items() if self._is_news(touch)])
        self._tell_hearers(list(touched))
        if changes:
            self._cursor = changes[-1].cursor
        return len(changes)

    def _tell_hearers(self, touched: list[str]) -> None:
        for prefix, hearer in self._hearers.items():
            keys = [key for key in touched if key.startswith(prefix)]
            for record in self._store.get(keys).values() if keys else ():
                hearer(record)

    def _is_news(self, touch: Touch) -> bool:
        """Whether a ledger was committed that is not on the board yet."""
        scope = records.scope_of(touch.key)
        if scope is None:
            return False
        posting = self._board.posting(scope)
        return posting is None or posting.revision < touch.version
