"""What a test says to an emulated world, as what is meant by it.

What cannot be meant is refused with what to write instead: a test is where one tries things.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TypedDict

from forewarn.config.sketches import Sketch
from forewarn.core.events import EventSource, EventType
from forewarn.core.wishes import Wish
from forewarn.errors import Malformed
from forewarn.wire import control as wire

# A length of time; a bare number is one of seconds.
Span = timedelta | float
Words = Sequence[str | os.PathLike[str]]


class Details(TypedDict, total=False):
    """What may be said of an event; what is not is as Azure does it."""

    # "Platform" or "User".
    source: str
    # How long the VMs will be interrupted.
    duration: Span
    description: str
    # How long ahead it is announced; the minimum, if nothing is said.
    notice: Span


def sketch(
    *,
    vms: Sequence[str],
    spots: Sequence[str],
    availability_sets: Sequence[str],
    scale_sets: Sequence[str],
) -> Sketch:
    """The VMs that are meant. Raises: Malformed."""
    sets = {"availability_sets": availability_sets, "scale_sets": scale_sets}
    for word, names in {"vms": vms, "spots": spots, **sets}.items():
        if isinstance(names, str):
            # Else each letter would be a VM.
            raise Malformed(f'{word} is a list: write {word}=["{names}"]')
        _refuse_others(word, names)
    return Sketch(machines=vms, spots=spots, **sets)


def _refuse_others(word: str, names: object) -> None:
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise Malformed(f'{word} is a list of names, such as {word}=["web:1"], and not {names!r}')


def seed(number: object) -> int | None:
    """Raises: Malformed."""
    if number is None or (isinstance(number, int) and not isinstance(number, bool)):
        return number
    raise Malformed(f"a seed is a whole number, such as seed=7, and not {number!r}")


def vm(name: object) -> str:
    """The name of one VM. Raises: Malformed."""
    if not isinstance(name, str):
        raise Malformed(
            f'a VM is called by its name, such as "web-0", and several one by one: {name!r}'
        )
    return name


def wish(kind: EventType, vms: tuple[str, ...], details: Details) -> Wish:
    """What is announced. Raises: Malformed."""
    usual = (EventSource.USER if kind is EventType.TERMINATE else EventSource.PLATFORM).value
    return Wish(
        type=kind,
        machines=vms,
        source=wire.named(EventSource, "source", details.get("source", usual)),
        duration=span("duration", details.get("duration")),
        description=details.get("description"),
        notice=span("notice", details.get("notice")),
    )


def span(word: str, length: object) -> timedelta | None:
    """Raises: Malformed."""
    if length is None or isinstance(length, timedelta):
        return length
    if isinstance(length, int | float) and not isinstance(length, bool):
        return timedelta(seconds=length)
    raise Malformed(f"{word} is a number of seconds, or a timedelta, and not {length!r}")


def instant(said: object) -> datetime:
    """Raises: Malformed."""
    if not isinstance(said, datetime):
        raise Malformed(
            f"an instant is a datetime, such as event.not_before, and not {said!r}; "
            "advance(minutes=15) takes a length of time"
        )
    if said.tzinfo is None:
        raise Malformed("an instant has a time zone: give it tzinfo=UTC")
    return said.astimezone(UTC)


def command(words: Words) -> list[str]:
    """A program and its arguments. Raises: Malformed."""
    if isinstance(words, str):
        raise Malformed(f"a command is a list of words: write {words.split()}")
    said = [os.fspath(word) for word in words]
    if not said:
        raise Malformed("no command is given: name a program")
    return said
