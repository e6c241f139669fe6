"""How long-running operations are spelled in a store: versioned JSON, as ledgers are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from forewarn.core.names import OperationId
from forewarn.core.operations import Operation
from forewarn.wire import pages

OPERATION_PREFIX: Final = "operation/"
# Raised when an older forewarn could no longer understand what is written.
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class _Sheet:
    format: int
    operation: Operation


_sheet = msgspec.json.Decoder(_Sheet)
_encoder = msgspec.json.Encoder()


def key(operation: OperationId) -> str:
    """Where an operation is kept."""
    return OPERATION_PREFIX + operation


def dump(operation: Operation) -> bytes:
    """An operation's bytes."""
    return _encoder.encode(_Sheet(FORMAT, operation))


def load(value: bytes) -> Operation:
    """An operation from its bytes. Raises: Refused if a newer forewarn wrote it, Damaged."""
    return pages.read(_sheet, value, "an operation", FORMAT).operation
