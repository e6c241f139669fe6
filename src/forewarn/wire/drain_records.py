"""How it is spelled in a store that a host is drained: versioned JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from forewarn.core.hosts import Drain
from forewarn.errors import Damaged, Refused

PREFIX: Final = "drain/"
# Raised when an older forewarn could no longer understand what is written.
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class _Page:
    format: int
    drain: Drain


@dataclass(frozen=True, slots=True)
class _Format:
    format: int


_encoder = msgspec.json.Encoder()
_page = msgspec.json.Decoder(_Page)
_format = msgspec.json.Decoder(_Format)


def key(host: str) -> str:
    """Where it is kept that a host is drained, whichever way its name is capitalized."""
    return PREFIX + host.lower()


def host_of(found: str) -> str:
    """The host that a key is about, in lower case."""
    return found.removeprefix(PREFIX)


def dump(drain: Drain) -> bytes:
    return _encoder.encode(_Page(FORMAT, drain))


def load(value: bytes) -> Drain:
    """A drain from its bytes. Raises: Refused if a newer forewarn wrote it, Damaged."""
    try:
        written = _format.decode(value).format
        if written == FORMAT:
            return _page.decode(value).drain
    except ValueError as error:
        raise Damaged(
            f"what is kept of a drained host is damaged: stop the service and restore a backup "
            f"({error})"
        ) from error
    raise Refused(
        f"what is kept of a drained host is written in format {written}, this forewarn reads "
        f"{FORMAT}: run the version that wrote it"
    )
