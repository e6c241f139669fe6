"""Where new names come from: chance, or a seed that makes them repeatable."""

from __future__ import annotations

import random
import threading
import uuid

from forewarn.core.names import EventId
from forewarn.ports.store import CommitId


class RandomIds:
    """Names from the system's source of chance."""

    def event_id(self) -> EventId:
        return EventId(str(uuid.uuid4()).upper())

    def commit_id(self) -> CommitId:
        return CommitId(uuid.uuid4().hex)


class SeededIds:
    """The same names in the same order for the same seed, for tests and simulations."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self._lock = threading.Lock()

    def event_id(self) -> EventId:
        return EventId(str(self._uuid()).upper())

    def commit_id(self) -> CommitId:
        return CommitId(self._uuid().hex)

    def _uuid(self) -> uuid.UUID:
        with self._lock:
            return uuid.UUID(int=self._random.getrandbits(128), version=4)


class SeededEventIds(RandomIds):
    """Event ids from a seed; commit ids from chance, as nobody can tell how many threads will make.

    What threads gather into one commit is a matter of luck, and must not show in events.
    """

    def __init__(self, seed: int) -> None:
        self._seeded = SeededIds(seed)

    def event_id(self) -> EventId:
        return self._seeded.event_id()
