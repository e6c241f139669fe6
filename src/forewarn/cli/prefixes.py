"""Event ids as people type them: whole, or as many characters as tell the event from others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from forewarn.cli.client import Client
from forewarn.errors import Malformed, UnknownEvent

PREFIX_LENGTH_MIN: Final = 4

_WHOLE: Final = re.compile(r"\{?[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}\}?", re.IGNORECASE)


def resolve(client: Client, typed: Sequence[str]) -> list[str]:
    """The ids that are meant, all of them or none.

    Raises: Malformed, UnknownEvent, and what the client raises.
    """
    if all(_WHOLE.fullmatch(text) for text in typed):
        return [_whole(text) for text in typed]
    known = [event["event_id"] for event in client.events("all")]
    return list(dict.fromkeys(_meant(text, known) for text in typed))


def _meant(typed: str, known: Sequence[str]) -> str:
    if _WHOLE.fullmatch(typed):
        # However old it is: the service may remember what it no longer lists.
        return _whole(typed)
    if len(typed) < PREFIX_LENGTH_MIN:
        raise Malformed(
            f"{typed!r} is too short: give at least {PREFIX_LENGTH_MIN} characters of the event's id"
        )
    found = [event_id for event_id in known if event_id.upper().startswith(typed.upper())]
    match found:
        case []:
            raise UnknownEvent(typed)
        case [event_id]:
            return event_id
        case _:
            raise Malformed(
                f"several events begin with {typed}: {', '.join(sorted(found))}; give more of the id"
            )


def _whole(typed: str) -> str:
    return typed.strip("{}").upper()
