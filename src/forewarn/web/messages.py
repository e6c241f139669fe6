"""What is asked and what is answered, as values: no socket, no framework."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

JSON_TYPE: Final = "application/json; charset=utf-8"


class Ending(Enum):
    """What becomes of the connection after an answer."""

    KEEP_ALIVE = "keep-alive"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Request:
    """The head of a request, as it was sent; names of headers are in lower case."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    http_version: str = "1.1"

    def values(self, name: str) -> tuple[str, ...]:
        """What was sent under this name, once for each time that it was sent."""
        return tuple(value for known, value in self.headers if known == name)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, without the headers that every answer has."""

    status: int
    body: bytes = b""
    media_type: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()
