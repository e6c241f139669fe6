"""Where new names come from."""

from __future__ import annotations

from typing import Protocol

from forewarn.core.names import EventId
from forewarn.ports.store import CommitId


class Ids(Protocol):
    """Makes names that nobody has used before. Safe to call from any thread."""

    def event_id(self) -> EventId:
        """A new event's name: an upper-case GUID, as Azure writes them."""
        ...

    def commit_id(self) -> CommitId:
        """A new commit's name."""
        ...
