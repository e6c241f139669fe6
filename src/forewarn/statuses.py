"""How commands of ours end: an exit status for each family of errors, and for what is no error of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from forewarn.errors import (
    Conflict,
    ForewarnError,
    Malformed,
    Refused,
    Unavailable,
    Unfinished,
    Unknown,
    Unsuccessful,
)

# The most special first: Unknown is also Refused.
STATUS_OF: Final[Mapping[type[ForewarnError], int]] = {
    Malformed: 2,
    Unknown: 4,
    Refused: 3,
    Conflict: 5,
    Unavailable: 6,
    Unsuccessful: 7,
    Unfinished: 8,
}
INTERRUPTED: Final = 130
READER_GONE: Final = 141


def status_of(error: ForewarnError) -> int:
    """The exit status of a command that this error ended."""
    return next(status for family, status in STATUS_OF.items() if isinstance(error, family))
