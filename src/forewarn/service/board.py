"""The board: every scope's document, ready to be read without asking the store.

Postings are immutable and replaced whole, so that readers in other threads need no lock.
"""

from __future__ import annotations

from collections.abc import Callable

from forewarn.core.documents import Document
from forewarn.core.ledgers import Ledger
from forewarn.core.names import Incarnation, Revision, ScopeId
from forewarn.core.scopes import Scope, ScopeKind
from forewarn.wire import scheduled_events
from forewarn.wire.versions import Version


class Posting:
    """One scope's document and roster at one revision; its bytes are made once per version."""

    __slots__ = ("_bodies", "_ledger", "document")

    def __init__(self, ledger: Ledger, before: Posting | None = None) -> None:
        self._ledger = ledger
        self.document: Document
        self._bodies: dict[Version, bytes]
        # What guests see is another thing exactly if its number is another one.
        if before is not None and before.reads_like == (ledger.incarnation, ledger.scope.kind):
            self.document, self._bodies = before.document, before._bodies  # noqa: SLF001 - its own kind
        else:
            self.document, self._bodies = ledger.document, {}

    @property
    def reads_like(self) -> tuple[Incarnation, ScopeKind]:
        """All that the bytes depend on."""
        return self.document.incarnation, self.scope.kind

    @property
    def ledger(self) -> Ledger:
        """The ledger that the posting was made from."""
        return self._ledger

    @property
    def scope(self) -> Scope:
        return self._ledger.scope

    @property
    def revision(self) -> Revision:
        return self._ledger.revision

    @property
    def is_enabled(self) -> bool:
        """Whether the document may be read without enabling the scope first."""
        return self._ledger.is_enabled

    def body(self, version: Version) -> bytes:
        """The document as guests of this api-version read it."""
        body = self._bodies.get(version)
        if body is None:
            body = scheduled_events.dump_document(self.document, version, self.scope.kind)
            self._bodies[version] = body
        return body


class Board:
    """The postings of all scopes. Posted to by one thread at a time, read by any."""

    def __init__(self) -> None:
        self._postings: dict[ScopeId, Posting] = {}
        # What is up for a scope; None for a scope nobody ever declared.
        # No method: it is called for every poll.
        self.posting: Callable[[ScopeId], Posting | None] = self._postings.get
        self._watchers: list[Callable[[ScopeId], None]] = []

    @property
    def scopes(self) -> tuple[ScopeId, ...]:
        """All that have a posting."""
        return tuple(self._postings.copy())

    def watch(self, watcher: Callable[[ScopeId], None]) -> None:
        """Have this called, in the posting thread, when a scope's document is another one."""
        self._watchers.append(watcher)

    def post(self, ledger: Ledger) -> None:
        """Put up a committed ledger, unless a newer one is there already."""
        scope = ledger.scope.id
        shown = self._postings.get(scope)
        if shown is not None and shown.revision >= ledger.revision:
            return
        posting = Posting(ledger, shown)
        self._postings[scope] = posting
        if shown is None or shown.reads_like != posting.reads_like:
            for watcher in self._watchers:
                watcher(scope)

    def ledger(self, scope: ScopeId) -> Ledger | None:
        """The newest ledger that was posted; None for a scope nobody ever declared."""
        posting = self._postings.get(scope)
        return None if posting is None else posting.ledger

    def shows(self, ledger: Ledger) -> bool:
        """Whether guests can read the document of this ledger now."""
        posting = self._postings.get(ledger.scope.id)
        return posting is not None and posting.document == ledger.document
