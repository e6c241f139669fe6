"""Reports: how the agent is, as one value that those who tell others read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from forewarn.agent.cases import Case
from forewarn.agent.rules import Readiness, Verdict
from forewarn.client.documents import Document


@dataclass(frozen=True, slots=True)
class Report:
    """The agent at one moment."""

    # When it was last at work.
    at: datetime
    # None until the VM has said who it is.
    name: str | None = None
    # None until it was read.
    document: Document | None = None
    # What is in hand, each with what keeps it from being approved, or does not.
    cases: tuple[tuple[Case, Verdict], ...] = ()
    # Why the document cannot be read at the moment, or nothing be written down.
    trouble: str | None = None

    @property
    def is_pending(self) -> bool:
        """Whether an event is before this VM."""
        return any(not case.is_over for case, _ in self.cases)

    @property
    def is_drained(self) -> bool:
        """Whether this VM has made ready for an event, and that was not undone yet."""
        return any(case.readiness is Readiness.READY for case, _ in self.cases)

    def is_ready_for(self, event_id: str) -> bool:
        """Whether this VM has made ready for that event."""
        return any(
            case.event.id == event_id.upper()
            and case.readiness in (Readiness.READY, Readiness.WITHOUT)
            for case, _ in self.cases
        )
