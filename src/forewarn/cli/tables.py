"""Tables for people: framed and colored on a terminal, plain columns in a pipe.

Rule: in a pipe nothing is shortened or folded, whatever the width; `grep` and `awk` are people too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

STYLES: Final[Mapping[str, str]] = {
    "Scheduled": "yellow",
    "Started": "red",
    "Completed": "green",
    "Canceled": "dim",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text under headings; without headings, the first column names the rows."""

    title: str = ""
    headings: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def print_table(table: Table) -> None:
    """Show a table on the standard output."""
    if sys.stdout.isatty():
        _print_framed(table)
    else:
        print(plain(table))  # noqa: T201 - this is what a command line does


def print_line(text: str) -> None:
    """Show one line on the standard output, at once."""
    print(printable(text), flush=True)  # noqa: T201 - this is what a command line does


def print_json(content: object) -> None:
    """Show JSON for programs, laid out so that people can read it too."""
    print(json.dumps(content, indent=2, ensure_ascii=False))  # noqa: T201 - ditto


def print_json_line(content: object) -> None:
    """Show JSON on a line of its own, at once."""
    print(json_line(content), flush=True)  # noqa: T201 - ditto


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
    from rich.box import ROUNDED  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table as FramedTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    framed = FramedTable(
        title=Text(printable(table.title), "bold") if table.title else None,
        title_justify="left",
        box=ROUNDED if table.headings else None,
        show_header=bool(table.headings),
    )
    width = len(table.headings) or max((len(row) for row in table.rows), default=0)
    for number, heading in enumerate(table.headings or [""] * width):
        # What the first column holds is there to be copied.
        framed.add_column(
            heading,
            overflow="fold",
            no_wrap=number == 0,
            style="bold" if number == 0 and not table.headings else "",
        )
    for row in table.rows:
        framed.add_row(*(Text(printable(cell), STYLES.get(cell, "")) for cell in row))
    Console().print(framed)
