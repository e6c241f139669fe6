"""What events and runs are called on the disk."""

from __future__ import annotations

import re
from typing import Final

from forewarn.agent.hooks import Phase

_PLAIN: Final = re.compile(r"[A-Za-z0-9-]{1,100}")


def file_name(event_id: str) -> str:
    """An event's name as a file's. Ids are UUIDs; but it is not us who write the document."""
    if _PLAIN.fullmatch(event_id):
        return event_id
    # OpenSSL comes along, which would make every agent larger by a fifth.
    from hashlib import sha256  # noqa: PLC0415

    # No plain one has this sign, and no two of these are alike.
    return f"_{sha256(event_id.encode(errors='surrogatepass')).hexdigest()}"


def run_id(event_id: str, phase: Phase, number: int, attempt: int) -> str:
    """What a run is called; its event comes first."""
    return f"{file_name(event_id)}/{phase.value}-{number}-{attempt}"
