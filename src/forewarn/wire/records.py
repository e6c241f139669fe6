"""How ledgers and journal entries are spelled in a store: versioned JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from forewarn.core.journal import Entry
from forewarn.core.ledgers import Ledger
from forewarn.core.names import Revision, ScopeId
from forewarn.core.values import replace
from forewarn.wire import pages

LEDGER_PREFIX: Final = "ledger/"
# Raised when an older forewarn could no longer understand what is written.
FORMAT: Final = 2
_FORMATS: Final = (1, FORMAT)


@dataclass(frozen=True, slots=True)
class _Page:
    format: int
    ledger: Ledger


_page = msgspec.json.Decoder(_Page)
_entry = msgspec.json.Decoder(Entry)
_encoder = msgspec.json.Encoder()


def key(scope: ScopeId) -> str:
    """Where a scope's ledger is kept."""
    return LEDGER_PREFIX + scope


def scope_of(key: str) -> ScopeId | None:
    """The scope whose ledger is kept under a key; None for any other record."""
    if not key.startswith(LEDGER_PREFIX):
        return None
    return ScopeId(key.removeprefix(LEDGER_PREFIX))


def dump_ledger(ledger: Ledger) -> bytes:
    """A ledger's bytes. Its revision is the store's to know."""
    return _encoder.encode(_Page(FORMAT, replace(ledger, revision=Revision(0))))


def load_ledger(value: bytes, revision: int) -> Ledger:
    """A ledger from its bytes. Raises: Refused if a newer forewarn wrote it, Damaged."""
    page = pages.read(_page, value, "a ledger", *_FORMATS)
    return replace(page.ledger, revision=Revision(revision))


def dump_entry(entry: Entry) -> bytes:
    """A journal entry's bytes."""
    return _encoder.encode(entry)


def load_entry(value: bytes) -> Entry:
    """A journal entry from its bytes. Raises: Damaged."""
    return pages.decoded(_entry, value, "a journal entry")
