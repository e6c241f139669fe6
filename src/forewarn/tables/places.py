"""Where the members of a TOML file stand: tomllib tells their values, but not their lines.

The text is known to be valid TOML, so it is enough to tell statements from what lies inside their
values: strings, comments, and whatever is between brackets.
"""

from __future__ import annotations

import re
from typing import Final

# The way to a member from the top: ("scope", 0, "machine", 2, "address").
Place = tuple[str | int, ...]

_PART = r"""(?:"(?:\\.|[^"\\\n])*"|'[^'\n]*'|[A-Za-z0-9_-]+)"""
_KEY = rf"[ \t]*{_PART}(?:[ \t]*\.[ \t]*{_PART})*[ \t]*"
_STATEMENT: Final = re.compile(rf"[ \t]*(?P<open>\[\[?)(?P<table>{_KEY})\]\]?|(?P<key>{_KEY})=")
# What matters between two statements. The order counts: three quotes are not an empty string.
_PIECE: Final = re.compile(
    r'(?P<text>"""(?:\\.|[^\\])*?"{3,5}|'
    r"'''.*?'{3,5}|"
    r'"(?:\\.|[^"\\\n])*"|'
    r"'[^'\n]*')|"
    r"#[^\n]*|(?P<open>[\[{])|(?P<close>[\]}])|(?P<comma>,)|(?P<end>\n)",
    re.DOTALL,
)


class Places:
    """The lines of a valid TOML text, by member."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._lines: dict[Place, int] = {}
        # How many tables each array of tables has so far.
        self._counts: dict[Place, int] = {}
        self._table: Place = ()
        position, line = 0, 1
        while position < len(self._text):
            statement = _STATEMENT.match(self._text, position)
            place = None if statement is None else self._note(statement, line)
            start = position if statement is None else statement.end()
            end = self._skip_value(start, place, line)
            line += self._text.count("\n", position, end)
            position = end

    def line(self, place: Place) -> int:
        """The line of a member, or that of the nearest table around it."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, 1)

    def _note(self, statement: re.Match[str], line: int) -> Place | None:
        """Note the line of a statement; the place of its value, if it has one."""
        if statement["key"] is None:
            self._table = self._header(_parts(statement["table"]), statement["open"])
            self._note_all(self._table, line)
            return None
        place = (*self._table, *_parts(statement["key"]))
        self._note_all(place, line)
        return place

    def _note_all(self, place: Place, line: int) -> None:
        for length in range(1, len(place) + 1):
            self._lines.setdefault(place[:length], line)

    def _header(self, parts: list[str], brackets: str) -> Place:
        place: Place = ()
        for number, part in enumerate(parts, start=1):
            place = (*place, part)
            if brackets == "[[" and number == len(parts):
                self._counts[place] = self._counts.get(place, 0) + 1
            if place in self._counts:
                place = (*place, self._counts[place] - 1)
        return place

    def _skip_value(self, start: int, place: Place | None, line: int) -> int:
        """The end of the statement; on the way, note where the elements of an array stand."""
        depth = index = 0
        is_array = False
        for piece in _PIECE.finditer(self._text, start):
            if piece["end"] and depth == 0:
                return piece.end()
            if depth == 0 and piece["open"]:
                is_array = piece["open"] == "["
            elif depth == 1 and is_array and place and (piece["text"] or piece["open"] == "{"):
                self._lines.setdefault((*place, index), line)
            index += depth == 1 and piece["comma"] is not None
            depth += (piece["open"] is not None) - (piece["close"] is not None)
            line += piece[0].count("\n")
        return len(self._text)


def _parts(key: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_PART, key)]
