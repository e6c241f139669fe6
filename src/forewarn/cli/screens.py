"""Where progress is shown: a live line on a terminal, a line for each step elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from forewarn.cli.errands import Errand, phrase, phrase_of_nothing
from forewarn.cli.tables import STYLES, print_line, printable

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text


class Screen(Protocol):
    """Where progress is shown."""

    def show(self, errands: Sequence[Errand], now: datetime) -> None:
        """Show how far these are."""
        ...


class _Quiet:
    def show(self, errands: Sequence[Errand], now: datetime) -> None:
        """Say nothing: a program reads the end of it only."""


class _Lines:
    """A line whenever something became different, for logs and pipes."""

    def __init__(self) -> None:
        self._seen: set[tuple[object, ...]] = set()

    def show(self, errands: Sequence[Errand], now: datetime) -> None:
        for errand in errands:
            for event in errand.events:
                step = (
                    *(event["event_id"], event["status"], event["approved"] is not None),
                    *(event["hold"], event["not_before"]),
                )
                self._say(step, phrase(event, now))
            if not errand.events:
                self._say((errand.label,), phrase_of_nothing(errand))

    def _say(self, step: tuple[object, ...], text: str) -> None:
        if step not in self._seen:
            self._seen.add(step)
            print_line(text)


@dataclass(frozen=True, slots=True)
class _Terminal:
    """Lines that change where they stand."""

    live: Live

    def show(self, errands: Sequence[Errand], now: datetime) -> None:
        self.live.update(_drawn(errands, now), refresh=True)


@contextmanager
def screen(*, is_quiet: bool) -> Iterator[Screen]:
    if is_quiet:
        yield _Quiet()
    elif not sys.stdout.isatty():
        yield _Lines()
    else:
        # Imported here: a command whose output goes into a pipe does without it.
        from rich.live import Live  # noqa: PLC0415

        with Live(auto_refresh=False) as live:
            yield _Terminal(live)


def _drawn(errands: Sequence[Errand], now: datetime) -> Text:
    from rich.text import Text  # noqa: PLC0415

    lines = [
        Text(printable(phrase(event, now)), STYLES.get(event["status"], ""))
        for errand in errands
        for event in errand.events
    ]
    lines += [Text(phrase_of_nothing(errand)) for errand in errands if not errand.events]
    return Text("\n").join(lines)
