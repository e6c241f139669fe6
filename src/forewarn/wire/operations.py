"""How long-running operations are spelled in a store: versioned JSON, as ledgers are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from forewarn.core.names import OperationId
from forewarn.core.operations import Operation
from forewarn.errors import Damaged, Refused

OPERATION_PREFIX: Final = "operation/"
# Raised when an older forewarn could no longer understand what is written.
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class _Sheet:
    format: int
    operation: Operation


@dataclass(frozen=True, slots=True)
class _Format:
    format: int


_sheet = msgspec.json.Decoder(_Sheet)
_format = msgspec.json.Decoder(_Format)
_encoder = msgspec.json.Encoder()


def key(operation: OperationId) -> str:
    """Where an operation is kept."""
    return OPERATION_PREFIX + operation


def dump(operation: Operation) -> bytes:
    """An operation's bytes."""
    return _encoder.encode(_Sheet(FORMAT, operation))


def load(value: bytes) -> Operation:
    """An operation from its bytes. Raises: Refused if a newer forewarn wrote it, Damaged."""
    try:
        written = _format.decode(value).format
        if written != FORMAT:
            raise Refused(
                f"an operation is written in format {written}, this forewarn reads {FORMAT}: "
                "run the version that wrote it"
            )
        return _sheet.decode(value).operation
    # What is not JSON, what is not of this form, and bytes that are no text.
    except ValueError as error:
        raise Damaged(
            f"an operation is damaged: stop the service and restore a backup ({error})"
        ) from error
