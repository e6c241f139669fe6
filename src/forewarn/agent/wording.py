"""Words for people: lengths of time, failures, and articles. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def length(span: timedelta) -> str:
    """A length of time, in whole seconds, as the agent's file has it: 1h30m."""
    rest = max(round(span.total_seconds()), 0)
    parts: list[str] = []
    for unit, seconds in _UNITS:
        count, rest = divmod(rest, seconds)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def failure(code: int | None) -> str:
    """How a hook failed that exited so; what shells mean by it, where that helps."""
    hint = _SHELL.get(code or 0, "")
    return f"failed with status {code}{hint}"


# A shell says "not found" of a file that is there, if what runs it is not.
_SHELL: Final[Mapping[int, str]] = {
    126: ": it cannot be run, or a command in it",
    127: ": what its first line names is not there, or a command in it",
}


def a(noun: str) -> str:
    """A noun with its article."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}" if noun else "an event"
