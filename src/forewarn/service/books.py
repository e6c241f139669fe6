"""The ledgers as they are stored: load, decide, commit, tell.

The only way to change a ledger. A decision is a function of ledgers; it is taken again on fresh
ones whenever somebody else committed first, so it must have no effect of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from enum import Enum
from typing import Final

from forewarn.core import ledgers
from forewarn.core.journal import Entry
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import Revision, ScopeId
from forewarn.core.values import replace
from forewarn.errors import Conflict, Malformed, OutcomeUnknown, Refused, Unavailable, Unknown
from forewarn.ports.ids import Ids
from forewarn.ports.store import CommitId, Record, Store, Write
from forewarn.wire import records

CONFLICTS_MAX: Final = 100
REPEATS_MAX: Final = 5
PAGE: Final = 1000

Ledgers = Mapping[ScopeId, Ledger]
Latest = Callable[[ScopeId], Ledger | None]
# Records to write in the same commit, asked for after each decision.
Beside = Callable[[], Sequence[Write]]
Lane = Callable[[Sequence[ScopeId]], AbstractContextManager[object]]
# A scope, and what is to be decided on its ledger.
Amendment = tuple[ScopeId, Callable[[Ledger], Decision]]
# A ledger as it is now, or what `amend` would have raised.
Amended = Ledger | Exception


class Writers(Enum):
    """How many processes commit to a store."""

    # The store is held by this process, so what it was told of is what is stored.
    ONE = "one"
    SEVERAL = "several"


class Books:
    """Loads and amends ledgers, and tells its readers of every ledger it committed."""

    def __init__(
        self,
        store: Store,
        ids: Ids,
        turn: AbstractContextManager[object] | None = None,
        lane: Lane | None = None,
        latest: Latest | None = None,
        writers: Writers = Writers.SEVERAL,
    ) -> None:
        self._store = store
        self._ids = ids
        # Where several threads commit, a lock: readers are told by one of them at a time.
        self._turn = nullcontext() if turn is None else turn
        # There too, locks by scope: threads of one process queue rather than race. What keeps
        # decisions apart is the compare-and-swap, and it alone does so between processes.
        self._lane = _free_lane if lane is None else lane
        # The newest ledgers this process was told of, to decide on without asking the store.
        self._latest = _none_latest if latest is None else latest
        self._writers = writers
        self._readers: list[Callable[[Ledger], None]] = []

    def tell(self, reader: Callable[[Ledger], None]) -> None:
        """Have this reader called with every committed ledger, in the committing thread.

        Two commits of one scope may be told in the wrong order: look at the revision.
        """
        self._readers.append(reader)

    def load(self, scope: ScopeId) -> Ledger:
        """The scope's ledger. Raises: Unknown, Unavailable."""
        return self._load((scope,))[scope]

    def all(self) -> Iterator[Ledger]:
        """Every ledger, page by page, in the order of the scopes' ids. Raises: Unavailable."""
        after = ""
        while True:
            page = self._store.scan(records.LEDGER_PREFIX, after, PAGE)
            for record in page:
                yield _read(record)
            if len(page) < PAGE:
                return
            after = page[-1].key

    def refresh(self, keys: Sequence[str]) -> None:
        """Tell the readers of ledgers that somebody else committed. Raises: Unavailable."""
        for record in self._store.get(keys).values():
            self.told(_read(record))

    def amend(self, scope: ScopeId, decide: Callable[[Ledger], Decision]) -> Ledger:
        """Decide on one ledger and commit. Raises: what `decide` does, Unknown, Unavailable."""
        return self.amend_together((scope,), lambda found: (decide(found[scope]),))[scope]

    def amend_together(
        self,
        scopes: Sequence[ScopeId],
        decide: Callable[[Ledgers], Sequence[Decision]],
        beside: Beside | None = None,
    ) -> Ledgers:
        """Decide on several ledgers and commit all of it, or nothing. Returns all as they are now.

        What is to be written beside them is written with them, or not at all.

        Raises: what `decide` does, Unknown, Conflict after many attempts, Unavailable.
        """
        with self._lane(scopes):
            amended = self._amend_remembered(scopes, decide, beside)
            if amended is not None:
                return amended
        for _ in range(CONFLICTS_MAX):
            with suppress(Conflict), self._lane(scopes):
                found = self._load(scopes)
                return {**found, **(self._commit(found, decide(found), beside) or {})}
        raise Conflict([records.key(scope) for scope in scopes])

    def amend_each(self, asked: Sequence[Amendment]) -> list[Amended]:
        """Decide on several ledgers, each for itself, and commit all that is decided in one go.

        What is refused, or overtaken by somebody else, is nobody else's affair: each has an
        outcome of its own. Only trouble with the store is shared by those who went together.
        """
        outcomes: dict[int, Amended] = {}
        # One decision a scope: whoever comes second decides on what the first has brought about.
        first: dict[ScopeId, int] = {}
        for place, (scope, _) in enumerate(asked):
            first.setdefault(scope, place)
        together = {scope: asked[place][1] for scope, place in first.items()}
        with self._lane(tuple(together)):
            amended = self._amend_at_once(together)
        for place, (scope, decide) in enumerate(asked):
            found = amended.get(scope) if first[scope] == place else None
            outcomes[place] = self._amend_alone(scope, decide) if found is None else found
        return list(outcomes.values())

    def _amend_at_once(
        self, asked: Mapping[ScopeId, Callable[[Ledger], Decision]]
    ) -> Mapping[ScopeId, Amended]:
        """Decide on the ledgers as this process knows them, and commit once; see below.

        Whoever has no outcome here is to go alone.
        """
        remembered: dict[ScopeId, Ledger] = {}
        decisions: list[Decision] = []
        settled: dict[ScopeId, Amended] = {}
        for scope, decide in asked.items():
            ledger = self._latest(scope)
            if ledger is None:
                continue
            # Whatever it is, a bug included, it is raised again where it goes alone.
            with suppress(Exception):
                decision = decide(ledger)
                if decision.entries or decision.ledger != ledger:
                    remembered[scope] = ledger
                    decisions.append(decision)
                elif self._writers is Writers.ONE:
                    settled[scope] = ledger
        try:
            return {**settled, **remembered, **(self._commit(remembered, decisions) or {})}
        except Conflict:
            return settled
        except Unavailable as error:
            return {**settled, **dict.fromkeys(remembered, error)}

    def _amend_alone(self, scope: ScopeId, decide: Callable[[Ledger], Decision]) -> Amended:
        try:
            return self.amend(scope, decide)
        except Exception as error:  # noqa: BLE001 - even a bug is raised where it was asked for
            return error

    def _amend_remembered(
        self,
        scopes: Sequence[ScopeId],
        decide: Callable[[Ledgers], Sequence[Decision]],
        beside: Beside | None,
    ) -> Ledgers | None:
        """Decide on the ledgers as this process knows them: a commit proves that they are current.

        None where nothing was committed. A refusal, or that nothing need change, may be due to
        what others committed meanwhile, so those are decided on the store's own ledgers.
        """
        remembered = {scope: ledger for scope in scopes if (ledger := self._latest(scope))}
        if len(remembered) < len(scopes):
            return None
        with suppress(Malformed, Refused, Conflict):
            committed = self._commit(remembered, decide(remembered), beside)
            return None if committed is None else {**remembered, **committed}
        return None

    def open(self, decisions: Sequence[Decision]) -> None:
        """Commit ledgers of scopes that were never stored. Raises: Conflict, Unavailable."""
        blank = {decision.ledger.scope.id: decision.ledger for decision in decisions}
        self._commit(blank, decisions, new=True)

    def journalize(self, entry: Entry) -> None:
        """Write a line that concerns no single ledger. Raises: Unavailable."""
        self._repeat(self._ids.commit_id(), (), (records.dump_entry(entry),))

    def _load(self, scopes: Sequence[ScopeId]) -> dict[ScopeId, Ledger]:
        found = self._store.get([records.key(scope) for scope in scopes])
        loaded: dict[ScopeId, Ledger] = {}
        for scope in scopes:
            record = found[records.key(scope)]
            if record.value is None:
                raise Unknown(f"no scope {scope}; `forewarn fleet` lists them")
            loaded[scope] = _read(record)
        return loaded

    def _commit(
        self,
        before: Ledgers,
        decisions: Sequence[Decision],
        beside: Beside | None = None,
        *,
        new: bool = False,
    ) -> dict[ScopeId, Ledger] | None:
        """Commit what was decided; None if that is nothing at all."""
        writes: list[Write] = [] if beside is None else [*beside()]
        entries: list[bytes] = []
        amended: list[Ledger] = []
        for decision in decisions:
            scope = decision.ledger.scope.id
            old = before[scope]
            sealed = ledgers.seal(old, decision)
            entries += map(records.dump_entry, sealed.entries)
            if new or sealed.ledger != old:
                key = records.key(scope)
                writes.append(Write(key, old.revision, records.dump_ledger(sealed.ledger)))
                amended.append(sealed.ledger)
        if not writes and not entries:
            return None
        versions = self._repeat(self._ids.commit_id(), tuple(writes), tuple(entries))
        committed = {
            ledger.scope.id: replace(
                ledger, revision=Revision(versions[records.key(ledger.scope.id)])
            )
            for ledger in amended
        }
        for ledger in committed.values():
            self.told(ledger)
        return committed

    def _repeat(
        self, commit_id: CommitId, writes: tuple[Write, ...], entries: tuple[bytes, ...]
    ) -> Mapping[str, int]:
        """Commit; while its outcome is unknown, again under the same id, which is harmless."""
        for _ in range(REPEATS_MAX):
            with suppress(OutcomeUnknown):
                return self._store.commit(commit_id, writes, entries)
        return self._store.commit(commit_id, writes, entries)

    def told(self, ledger: Ledger) -> None:
        """Pass a committed ledger on to all readers."""
        with self._turn:
            for reader in self._readers:
                reader(ledger)


def _read(record: Record) -> Ledger:
    assert record.value is not None, "a ledger is never deleted"
    return records.load_ledger(record.value, record.version)


def _free_lane(_: Sequence[ScopeId]) -> AbstractContextManager[object]:
    return nullcontext()


def _none_latest(_: ScopeId) -> Ledger | None:
    return None
