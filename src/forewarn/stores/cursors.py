"""Cursors of the stores that number their commits 1, 2, 3, … without a gap."""

from __future__ import annotations

from typing import Final

from forewarn.errors import Malformed, Pruned
from forewarn.ports.store import Cursor

BEGINNING: Final = Cursor("")

# Cursors come back from clients; a longer number would not fit into a 64-bit position.
_DIGITS_MAX: Final = 18


def cursor_at(position: int) -> Cursor:
    """The cursor of the commit at a position; position 0 stands before the first one."""
    return Cursor(str(position)) if position else BEGINNING


def position_of(cursor: Cursor) -> int:
    """The position that a cursor stands for.

    Raises: Malformed.
    """
    if cursor == BEGINNING:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= _DIGITS_MAX):
        raise Malformed(f"{cursor[:50]!r} is not a cursor of the journal: give one that it told")
    return int(cursor)


def resume(cursor: Cursor, *, oldest: int, newest: int) -> int:
    """The position after which a feed goes on, given which commits are kept.

    A cursor beyond the newest commit is from another history, as after a restored backup:
    following it would skip commits, so it is told the same as one that was pruned.

    Raises: Malformed, Pruned.
    """
    position = position_of(cursor)
    if cursor != BEGINNING and not oldest - 1 <= position <= newest:
        raise Pruned(
            f"the journal does not reach cursor {cursor}: older entries were pruned, or it is "
            "another service's; leave --since out to read all there is"
        )
    return position
