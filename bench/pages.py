"""The figures as a table for people, and its place in README.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

README: Final = Path(__file__).parent.parent / "README.md"
BEGIN: Final = "<!-- speed: `make bench BENCH=--write-readme` writes this -->\n"
END: Final = "<!-- end of speed -->\n"
WHOLE: Final = "make bench"

_AIMS: Final = (("<= ", "at most "), (">= ", "at least "))


class NotWhole(Exception):
    """Figures of a part, or rough ones, have no place in README.md."""


def markdown(found: Mapping[str, object], meanings: Mapping[str, tuple[str, str]]) -> str:
    """Where it was measured, how, and what came of it. Raises: NotWhole."""
    if found.get("command") != WHOLE:
        raise NotWhole(f"the last figures are of `{found.get('command')}`: run `{WHOLE}` first")
    cores = f"{found['cpu_count']} cores"
    place = f"{found['cpu_model']}, {cores}, Linux {found['kernel']}, Python {found['python']}"
    load = f"{found['load_average_1m']} before, {found['load_average_1m_after']} after"
    lines = [
        f"Measured by `{WHOLE}` on {place}; load average {load}.",
        "",
        "| what | measured | aim |",
        "|---|---:|---:|",
    ]
    lines += [
        f"| {meaning.strip()} | {_spelled(found[name])} | {_aim(aim)} |"
        for name, (meaning, aim) in _told(meanings).items()
        if name in found
    ]
    return "\n".join([*lines, ""])


def placed(page: str, block: str) -> str:
    """The page with this block between its marks; whatever was there is gone."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, "the page has a mark where the block begins"
    assert end, "the page has a mark where the block ends"
    return f"{before}{begin}{block}{end}{after}"


def _told(meanings: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """The meanings, each able to stand alone: "the same" is spelled out."""
    told: dict[str, tuple[str, str]] = {}
    subject = ""
    for name, (meaning, aim) in meanings.items():
        if meaning.startswith("  the same, "):
            rest = meaning.removeprefix("  the same, ")
            # Its unit is said once.
            same = subject.rpartition(": ")[0] if ": " in rest else subject
            told[name] = (f"{same}, {rest}", aim)
        else:
            told[name] = (meaning, aim)
            subject = meaning
    return told


def _spelled(figure: object) -> str:
    """As many digits as anybody reads."""
    if not isinstance(figure, int | float):
        return str(figure)
    digits = 0 if figure >= 100 else 1 if figure >= 10 else 2
    return f"{figure:,.{digits}f}"


def _aim(aim: str) -> str:
    for sign, words in _AIMS:
        aim = aim.replace(sign, words)
    return aim
