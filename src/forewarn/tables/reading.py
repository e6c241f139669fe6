"""Tables of a TOML file, read member by member; what is wrong is gathered, not raised.

A member that is wrong reads as its default: the file is going to be refused anyway, and the rest
of it can still be looked at.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from forewarn.errors import Malformed
from forewarn.tables.durations import DURATION_FORMS, parse_duration
from forewarn.tables.places import Place, Places

SHOWN_MAX: Final = 60

_Choice = TypeVar("_Choice", bound=Enum)


class Fault(NamedTuple):
    """Something wrong at a place, and what to do about it; `other` is where it clashes with."""

    place: Place
    what: str
    remedy: str
    other: Place | None = None


class Faulty(Malformed):
    """A file that cannot be taken: one line for each fault, each with its place and remedy."""


class Faults:
    """What is wrong with one file, so that one look at it mends all."""

    def __init__(self) -> None:
        self._found: list[Fault] = []
        self._places: set[Place] = set()

    def add(self, fault: Fault) -> None:
        self._found.append(fault)
        self._places.add(fault.place)

    def has(self, place: Place) -> bool:
        return place in self._places

    def raise_any(self, name: str, text: str) -> None:
        """Refuse the file if anything was wrong with it, one line for each fault.

        Raises: Faulty.
        """
        if not self._found:
            return
        places = Places(text)
        found = sorted(self._found, key=lambda fault: places.line(fault.place))
        raise Faulty(
            "\n".join(f"{name}:{places.line(one.place)}: {_told(one, places)}" for one in found)
        )


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a file, and where it stands."""

    title: str
    members: Mapping[str, object]
    place: Place
    faults: Faults

    def fault(self, key: str, what: str, remedy: str, other: Place | None = None) -> None:
        self.faults.add(Fault((*self.place, key), what, remedy, other))

    def is_sound(self, *keys: str) -> bool:
        """Whether nothing was wrong with these members so far."""
        return not any(self.faults.has((*self.place, key)) for key in keys)

    def refuse_unknown(self, homes: Mapping[str, Collection[str]]) -> None:
        """Refuse members that no table of this title has. `homes` are all titles' members."""
        known = homes[self.title]
        for key in self.members:
            if key not in known:
                self.fault(key, f"{self.title} has no member {key!r}", _remedy(key, known, homes))

    def text(self, key: str, default: str = "") -> str:
        value = self.members.get(key, default)
        if not isinstance(value, str):
            self.fault(key, f"{key} = {shown(value)} is not text", f'write {key} = "…"')
            return default
        return value

    def flag(self, key: str, *, default: bool = False) -> bool:
        value = self.members.get(key, default)
        if not isinstance(value, bool):
            self.fault(
                key, f"{key} = {shown(value)} is neither true nor false", "write it without quotes"
            )
            return default
        return value

    def whole(self, key: str, least: int, most: int) -> int | None:
        """A whole number within bounds; None if it is not given."""
        value = self.members.get(key)
        if value is None:
            return None
        # To Python, true is a number.
        if isinstance(value, bool) or not isinstance(value, int):
            self.fault(
                key, f"{key} = {shown(value)} is not a whole number", f"write {key} = {least}"
            )
        elif not least <= value <= most:
            self.fault(key, f"{key} = {value} is out of bounds", f"give {least} to {most}")
        else:
            return value
        return None

    def duration(self, key: str) -> timedelta | None:
        """A duration; None if it is not given."""
        value = self.members.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            what = f"{key} = {shown(value)} is not a duration"
            self.fault(key, what, f"write it like {DURATION_FORMS}, with quotes")
            return None
        try:
            return parse_duration(value)
        except Malformed as error:
            what, _, remedy = str(error).rpartition(": ")
            self.fault(key, f"{key} = {what}", remedy)
            return None

    def choice(self, key: str, default: _Choice) -> _Choice:
        """One value of the default's enumeration."""
        return self._chosen(key, self.members.get(key, default.value), type(default)) or default

    def choices(self, key: str, kind: type[_Choice]) -> tuple[_Choice, ...]:
        """Any number of values of an enumeration, each once."""
        value = self.members.get(key, [])
        if not isinstance(value, list):
            remedy = f"write {key} = [{shown(next(iter(kind)).value)}]"
            self.fault(key, f"{key} = {shown(value)} is not a list", remedy)
            return ()
        chosen = [self._chosen(key, element, kind) for element in value]
        return tuple(dict.fromkeys(one for one in chosen if one is not None))

    def strings(self, key: str) -> list[tuple[Place, str]]:
        """Texts, given as one or as a list of them, each with its place."""
        value = self.members.get(key, [])
        found: list[tuple[Place, str]] = []
        for index, element in enumerate(value if isinstance(value, list) else [value]):
            place = (*self.place, key, index)
            if isinstance(element, str):
                found.append((place, element))
            else:
                what = f"{key} has {shown(element)}, which is not text"
                self.faults.add(Fault(place, what, f'write {key} = "…" or {key} = ["…", "…"]'))
        return found

    def pairs(self, key: str) -> tuple[tuple[str, str], ...]:
        """A table from text to text."""
        value = self.members.get(key, {})
        if not isinstance(value, dict):
            remedy = f'write {key} = {{ role = "web" }}'
            self.fault(key, f"{key} = {shown(value)} is not a table", remedy)
            return ()
        table = Table(key, value, (*self.place, key), self.faults)
        return tuple((name, table.text(name)) for name in value)

    def table(self, key: str, title: str) -> Table:
        """The one table of that key; an empty one if it is not given."""
        value = self.members.get(key, {})
        if not isinstance(value, dict):
            self.fault(key, f"{key} is not a table", f"write {title} on a line of its own")
            value = {}
        return Table(title, value, (*self.place, key), self.faults)

    def tables(self, key: str, title: str) -> list[Table]:
        """The tables of an array of tables; none if it is not given."""
        value = self.members.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            remedy = f"begin each of them with {title} on a line of its own"
            self.fault(key, f"{key} is not an array of tables", remedy)
            return []
        return [
            Table(title, one, (*self.place, key, number), self.faults)
            for number, one in enumerate(value)
        ]

    def _chosen(self, key: str, value: object, kind: type[_Choice]) -> _Choice | None:
        values = [str(one.value) for one in kind]
        if value in values:
            return kind(value)
        near = get_close_matches(value, values, n=1) if isinstance(value, str) else []
        remedy = f"did you mean {shown(near[0])}?" if near else f"give {_listed(values)}"
        self.fault(key, f"{key} has no value {shown(value)}", remedy)
        return None


def parse_toml(text: str, name: str) -> Mapping[str, object]:
    """The members of a text, which errors call by the given name. Raises: Malformed."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).removesuffix(")").rpartition(" (at ")
        found = re.match(r"line (\d+)", where)
        line = text.count("\n") + 1 if found is None else int(found[1])
        raise Faulty(f"{name}:{line}: not TOML: {what}: mend it at {where}") from error
    except (RecursionError, ValueError) as error:
        # What tomllib lets through: brackets without end, and numbers of thousands of digits.
        raise Faulty(f"{name}:1: not TOML: {error}: mend it") from error


def shown(value: object) -> str:
    """A value as the file may have it, short enough for a message."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 3]}..."


def _listed(values: list[str]) -> str:
    *some, last = [shown(value) for value in values]
    return f"{', '.join(some)} or {last}"


def _remedy(key: str, known: Collection[str], homes: Mapping[str, Collection[str]]) -> str:
    elsewhere = [title for title, members in homes.items() if key in members]
    if elsewhere:
        return f"it belongs under {' or '.join(elsewhere)}"
    near = get_close_matches(key.lower(), known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"remove it, or use {', '.join(sorted(known))}"


def _told(fault: Fault, places: Places) -> str:
    where = "" if fault.other is None else f" (line {places.line(fault.other)})"
    return f"{fault.what}{where}: {fault.remedy}"
