"""How operations are kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forewarn.core.names import EventId, OperationId, ScopeId
from forewarn.core.operations import Ending, Operation, OperationStatus
from forewarn.errors import Damaged, Refused
from forewarn.testing.worlds import NOON
from forewarn.wire import operations, records

RESTART = Operation(
    id=OperationId("0e6c4c1e-0000-4000-8000-000000000001"),
    verb="restart",
    resource="/subscriptions/s/resourceGroups/rg1/providers/Microsoft.Compute/virtualMachines/a",
    group="rg1",
    scope=ScopeId("rg1/web"),
    event_ids=(EventId("E1"),),
    principal="olga",
    started_at=NOON,
)
FAILED = replace(RESTART, ending=Ending(OperationStatus.FAILED, NOON, "OperationFailed", "why"))


@pytest.mark.parametrize("operation", [RESTART, FAILED])
def test_what_is_kept_comes_back(operation: Operation) -> None:
    assert operations.load(operations.dump(operation)) == operation


def test_the_spelling_does_not_change_by_accident() -> None:
    assert operations.dump(FAILED) == (
        b'{"format":1,"operation":{"id":"0e6c4c1e-0000-4000-8000-000000000001","verb":"restart",'
        b'"resource":"/subscriptions/s/resourceGroups/rg1/providers/Microsoft.Compute/'
        b'virtualMachines/a","group":"rg1","scope":"rg1/web","event_ids":["E1"],'
        b'"principal":"olga","started_at":"2030-01-01T12:00:00Z","ending":{"status":"Failed",'
        b'"at":"2030-01-01T12:00:00Z","code":"OperationFailed","message":"why"}}}'
    )


def test_an_operation_is_no_ledger() -> None:
    assert operations.key(RESTART.id).startswith(operations.OPERATION_PREFIX)
    assert records.scope_of(operations.key(RESTART.id)) is None


def test_what_a_newer_version_wrote_is_not_misread() -> None:
    with pytest.raises(Refused, match="format 2"):
        operations.load(b'{"format":2,"operation":{}}')


@pytest.mark.parametrize("value", [b"{", b'{"format":1}', b'{"format":1,"operation":{"id":1}}'])
def test_damage_is_told(value: bytes) -> None:
    with pytest.raises(Damaged, match="an operation is damaged"):
        operations.load(value)
