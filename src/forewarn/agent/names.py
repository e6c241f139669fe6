"""What events and runs are called on the disk."""

from __future__ import annotations

from typing import Final

from forewarn.agent.hooks import Phase

_LENGTH_MAX: Final = 100


def file_name(event_id: str) -> str:
    """An event's name as a file's. Ids are UUIDs; but it is not us who write the document."""
    return "".join(one if one.isalnum() or one == "-" else "_" for one in event_id)[:_LENGTH_MAX]


def run_id(event_id: str, phase: Phase, number: int, attempt: int) -> str:
    """What a run is called; its event comes first."""
    return f"{file_name(event_id)}/{phase.value}-{number}-{attempt}"
