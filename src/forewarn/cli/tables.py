"""Tables for people: framed and colored on a terminal, plain columns in a pipe.

Rule: in a pipe nothing is shortened or folded, whatever the width; `grep` and `awk` are people too.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from forewarn.errors import Unavailable

if TYPE_CHECKING:
    from rich.table import Table as FramedTable

STYLES: Final[Mapping[str, str]] = {
    "Scheduled": "yellow",
    "Started": "red",
    "Completed": "green",
    "Canceled": "dim",
}


_ENDLESS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text under headings; without headings, the first column names the rows."""

    title: str = ""
    headings: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    # What a terminal shows that is too narrow for the rows above.
    short: Sequence[Sequence[str]] = ()
    # How many columns from the left are never folded.
    unfolded: int = 1


def print_table(table: Table) -> None:
    """Show a table on the standard output."""
    if sys.stdout.isatty():
        with writing():
            _print_framed(table)
    else:
        _write(plain(table))


def print_line(text: str) -> None:
    """Show one line on the standard output, at once."""
    _write(printable(text))


def print_json(content: object) -> None:
    """Show JSON for programs, laid out so that people can read it too."""
    _write(json.dumps(content, indent=2, ensure_ascii=False))


def print_json_line(content: object) -> None:
    """Show JSON on a line of its own, at once."""
    _write(json_line(content))


@contextmanager
def writing() -> Iterator[None]:
    """The door of the standard output: what it does not take is no bug of ours. Raises: Unavailable."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        abandon_output()
        raise Unavailable(
            f"the output could not be written ({error.strerror}): see where it goes"
        ) from error


def abandon_output() -> None:
    """Write no more: Python would try, and complain, once more while it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(text: str) -> None:
    with writing():
        print(text, flush=True)  # noqa: T201 - this is what a command line does


def json_line(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def printable(text: str) -> str:
    """The text without control characters: others wrote it, and a terminal obeys them."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def plain(table: Table) -> str:
    """The table as columns that are two spaces apart."""
    headings = [heading.upper() for heading in table.headings]
    lines = [[printable(cell) for cell in row] for row in table.rows]
    if headings:
        lines.insert(0, headings)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    titled = [printable(table.title)] if table.title else []
    return "\n".join(titled + [_aligned(line, widths) for line in lines])


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _print_framed(table: Table) -> None:
    # Imported here: a command whose output goes into a pipe does without it.
    from rich.console import Console  # noqa: PLC0415

    console = Console()
    framed = _framed(table)
    room = console.options.update(width=_ENDLESS)
    if table.short and console.measure(framed, options=room).maximum > console.width:
        framed = _framed(replace(table, rows=table.short))
        # Lines cost three columns each.
        framed.box, framed.pad_edge = None, False
        framed.padding = (0, 2, 0, 0)
    console.print(framed)


def _framed(table: Table) -> FramedTable:
    from rich.box import ROUNDED  # noqa: PLC0415
    from rich.table import Table as FramedTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    framed = FramedTable(
        title=Text(printable(table.title), "bold") if table.title else None,
        title_justify="left",
        box=ROUNDED if table.headings else None,
        show_header=bool(table.headings),
    )
    width = len(table.headings) or max((len(row) for row in table.rows), default=0)
    # A column without a word in it only takes room from the others.
    kept = [n for n in range(width) if not table.headings or any(row[n] for row in table.rows)]
    for number in kept:
        # What the first column holds is there to be copied.
        framed.add_column(
            table.headings[number] if table.headings else "",
            overflow="fold",
            no_wrap=number < table.unfolded,
            style="bold" if number == 0 and not table.headings else "",
        )
    for row in table.rows:
        cells = [(printable(row[n]), STYLES.get(row[n], "") if n else "") for n in kept]
        framed.add_row(*(Text(cell, style) for cell, style in cells))
    return framed
