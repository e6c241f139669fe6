"""How it is spelled in a store that a host is drained: versioned JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from forewarn.core.hosts import Drain
from forewarn.wire import pages

PREFIX: Final = "drain/"
# Raised when an older forewarn could no longer understand what is written.
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class _Page:
    format: int
    drain: Drain


_encoder = msgspec.json.Encoder()
_page = msgspec.json.Decoder(_Page)


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
    return pages.read(_page, value, "what is kept of a drained host", FORMAT).drain
