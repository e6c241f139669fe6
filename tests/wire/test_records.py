"""Ledgers and journal entries as a store keeps them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core.events import Event
from forewarn.core.journal import Actor, Entry, Role, What
from forewarn.core.ledgers import Ledger
from forewarn.core.names import Incarnation, Revision, ScopeId
from forewarn.errors import Damaged, Refused
from forewarn.testing import strategies
from forewarn.testing.strategies import EPOCH
from forewarn.wire import records

STORED = Path(__file__).parent / "stored"


@given(strategies.ledgers(), st.integers(1, 2**40))
def test_a_ledger_is_read_back_as_it_was(ledger: Ledger, revision: int) -> None:
    stored = records.load_ledger(records.dump_ledger(ledger), revision)

    assert stored == replace(ledger, revision=Revision(revision))
    assert stored.document == ledger.document


@given(strategies.ledgers(), st.integers(1, 2**40))
def test_a_ledgers_bytes_do_not_depend_on_where_it_stands(ledger: Ledger, revision: int) -> None:
    elsewhere = replace(ledger, revision=Revision(revision))

    assert records.dump_ledger(elsewhere) == records.dump_ledger(ledger)


@given(st.none() | strategies.events(), st.sampled_from(Role), st.sampled_from(What), st.text())
def test_an_entry_is_read_back_as_it_was(
    event: Event | None, role: Role, what: What, note: str
) -> None:
    entry = Entry(
        at=EPOCH,
        scope=ScopeId("rg1/web"),
        what=what,
        actor=Actor(role, "web-0", "10.0.0.4"),
        event=event,
        note=note,
        incarnation=Incarnation(7),
    )

    assert records.load_entry(records.dump_entry(entry)) == entry


def test_a_ledger_written_by_a_newer_version_is_refused_with_the_remedy() -> None:
    newer = json.dumps({"format": records.FORMAT + 1, "pages": []}).encode()

    with pytest.raises(Refused, match=r"format 3, this forewarn reads up to 2: run the version"):
        records.load_ledger(newer, 1)


@pytest.mark.parametrize("value", [b"", b"\xa5" * 100, b'{"format":1', b'{"format":1,"ledger":{}}'])
def test_a_ledger_that_cannot_be_read_is_damaged(value: bytes) -> None:
    with pytest.raises(Damaged, match="a ledger is damaged: stop the service and restore a backup"):
        records.load_ledger(value, 1)


def test_a_ledger_that_says_what_no_ledger_can_is_damaged() -> None:
    (path,) = sorted(STORED.glob("ledger-*.json"))[:1]
    value = re.sub(rb'"machines": \[\s*"[^]]*\]', b'"machines":[]', path.read_bytes())
    assert value != path.read_bytes()

    with pytest.raises(Damaged, match="an event without machines"):
        records.load_ledger(value, 1)


def test_a_journal_entry_that_cannot_be_read_is_damaged() -> None:
    with pytest.raises(Damaged, match="a journal entry is damaged"):
        records.load_entry(b"{")


def test_a_key_tells_its_scope() -> None:
    scope = ScopeId("rg1/web")

    assert records.key(scope) == "ledger/rg1/web"
    assert records.scope_of(records.key(scope)) == scope
    assert records.scope_of("rollout/1") is None


@pytest.mark.parametrize("path", sorted(STORED.glob("ledger-*.json")), ids=lambda path: path.name)
def test_ledgers_of_earlier_versions_can_be_read_for_ever(path: Path) -> None:
    """A file is added whenever the format grows; none is ever changed."""
    written = path.read_bytes()

    ledger = records.load_ledger(written, 3)

    assert ledger.revision == 3
    assert ledger.scope.machines
    assert ledger.events


def test_there_is_something_to_be_read_for_ever() -> None:
    assert list(STORED.glob("ledger-*.json"))
