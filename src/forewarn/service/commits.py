"""Records that are no ledgers: commits whose outcome is known in the end, scans of all pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from forewarn.errors import OutcomeUnknown
from forewarn.ports.store import CommitId, Record, Store, Write

REPEATS_MAX: Final = 5
PAGE: Final = 1000


def commit(
    store: Store, commit_id: CommitId, writes: tuple[Write, ...], entries: tuple[bytes, ...]
) -> Mapping[str, int]:
    """Commit; while its outcome is unknown, again under the same id, which is harmless.

    Raises: Conflict, Unavailable.
    """
    for _ in range(REPEATS_MAX):
        with suppress(OutcomeUnknown):
            return store.commit(commit_id, writes, entries)
    return store.commit(commit_id, writes, entries)


def scanned(store: Store, prefix: str, page: int = PAGE) -> Iterator[Record]:
    """Every record under a prefix, page by page, in the order of their keys. Raises: Unavailable."""
    after = ""
    while True:
        found = store.scan(prefix, after, page)
        yield from found
        if len(found) < page:
            return
        after = found[-1].key
