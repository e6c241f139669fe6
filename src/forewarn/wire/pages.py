"""What records have in common: JSON that says in which format it is written, before all else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import msgspec

from forewarn.errors import Damaged, Refused

_DecodedT = TypeVar("_DecodedT")


@dataclass(frozen=True, slots=True)
class _Format:
    format: int


_format = msgspec.json.Decoder(_Format)


def read(
    decoder: msgspec.json.Decoder[_DecodedT], value: bytes, what: str, *formats: int
) -> _DecodedT:
    """A record of one of these formats, oldest first. Raises: Refused if of a newer one, Damaged."""
    written = decoded(_format, value, what).format
    if written not in formats:
        newest = f"up to {formats[-1]}" if len(formats) > 1 else f"{formats[-1]}"
        raise Refused(
            f"{what} is written in format {written}, this forewarn reads {newest}: "
            "run the version that wrote it"
        )
    return decoded(decoder, value, what)


def decoded(decoder: msgspec.json.Decoder[_DecodedT], value: bytes, what: str) -> _DecodedT:
    """What some bytes say. Raises: Damaged."""
    try:
        return decoder.decode(value)
    # What is not JSON, what is not of this form, bytes that are no text, and what no record can be.
    except (ValueError, AssertionError) as error:
        raise Damaged(
            f"{what} is damaged: stop the service and restore a backup ({error})"
        ) from error
