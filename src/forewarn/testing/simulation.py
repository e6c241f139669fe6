"""The simulation: the real service through thousands of stories full of faults, told from seeds.

    python -m forewarn.testing.simulation 1234            one seed, again
    python -m forewarn.testing.simulation 1 --seconds 60  seeds from 1 on, for a minute
    python -m forewarn.testing.simulation                 new seeds until Ctrl-C

A seed always tells the same story. One that breaks a promise is told as short as it can be.
"""

from __future__ import annotations

import argparse
import secrets
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import timedelta
from enum import Enum
from itertools import count
from pathlib import Path
from typing import Final

from forewarn.core.scopes import Scope
from forewarn.testing.acts import Beat
from forewarn.testing.player import Player
from forewarn.testing.scripts import Script, write
from forewarn.testing.stage import Cast

REPLAYS_MAX: Final = 600
PROGRESS_SECONDS: Final = 5
FAILURES_MAX: Final = 5
FRESH_SEEDS: Final = 10**9
FAULTS: Final = ("Amnesia", "Die", "Garble", "Intrude", "Jump", "Part", "Sleep", "Spoil", "Behave")


@dataclass(frozen=True, slots=True)
class Failure:
    """A story in which a promise was broken, or the service crashed."""

    script: Script
    error: Exception

    @property
    def reason(self) -> str:
        """What broke, in one line; the same for the same flaw."""
        lines = str(self.error).splitlines()
        return f"{type(self.error).__name__}: {lines[0] if lines else ''}"

    def __str__(self) -> str:
        trace = "".join(traceback.format_exception(self.error)[-3:]).rstrip()
        return "\n".join(
            (
                f"seed {self.script.seed} at commit {commit()}: {self.reason}",
                f"again: python -m forewarn.testing.simulation {self.script.seed}",
                f"the shortest story: {self.script.services} service(s) over "
                + ", ".join(scope.id for scope in self.script.fleet),
                *(f"  {number}. {_told(beat)}" for number, beat in enumerate(self.script.beats, 1)),
                trace,
            )
        )


@dataclass(slots=True)
class Tally:
    """What a run came to."""

    seeds: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def __str__(self) -> str:
        faults = sum(self.counts[name] for name in FAULTS)
        return (
            f"{self.seeds} seeds, {self.counts['beats']} acts, {self.counts['turns']} turns, "
            f"{self.counts['commits']} commits, {faults} faults, {self.counts['deaths']} deaths, "
            f"{len(self.failures)} failures"
        )


def play(script: Script, cast: Cast | None = None, counts: Counter[str] | None = None) -> None:
    """Play a script. Raises: AssertionError if a promise was broken, or whatever crashed."""
    player = Player(script, cast or Cast())
    try:
        player.play()
    finally:
        if counts is not None:
            counts.update(player.stage.counts)
            counts["beats"] += len(script.beats)
            counts["commits"] += len(player.seen.documents)


def attempt(
    script: Script, cast: Cast | None = None, counts: Counter[str] | None = None
) -> Failure | None:
    """Play a script; what came of it if it went wrong."""
    try:
        play(script, cast, counts)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what we came for
        return Failure(script, error)
    return None


def shorten(failure: Failure, cast: Cast | None = None) -> Failure:
    """The same failure in as few beats as can be found by leaving some out."""
    best = failure
    left = REPLAYS_MAX

    def fails(script: Script) -> bool:
        nonlocal best, left
        left -= 1
        found = attempt(script, cast) if left >= 0 else None
        if found is None or found.reason != failure.reason:
            return False
        best = found
        return True

    _leave_out(failure.script, fails)
    for at in range(len(best.script.beats)):
        beats = list(best.script.beats)
        for workers in ((), beats[at].workers[:1]):
            beats[at] = replace(beats[at], workers=workers)
            if len(workers) < len(best.script.beats[at].workers):
                fails(replace(best.script, beats=tuple(beats)))
    return best


def _leave_out(script: Script, fails: Callable[[Script], bool]) -> None:
    """Delta debugging: leave out ever smaller pieces for as long as it goes on failing."""
    beats = script.beats
    size = max(len(beats) // 2, 1)
    while beats:
        at = 0
        has_shrunk = False
        while at < len(beats):
            shorter = beats[:at] + beats[at + size :]
            if fails(replace(script, beats=shorter)):
                beats, has_shrunk = shorter, True
            else:
                at += size
        if size == 1 and not has_shrunk:
            return
        size = max(size // 2, 1)


def run(seeds: Iterable[int], goes_on: Callable[[Tally], bool], cast: Cast | None = None) -> Tally:
    """Tell the stories of these seeds for as long as it goes on, which is asked after each."""
    tally = Tally()
    for seed in seeds:
        failure = attempt(write(seed), cast, tally.counts)
        tally.seeds += 1
        if failure is not None:
            tally.failures.append(shorten(failure, cast))
        if not goes_on(tally):
            break
    return tally


def commit() -> str:
    """The commit that this code is of, as far as one can tell."""
    folder = Path(__file__).resolve().parent
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return told.stdout.strip()


def _told(beat: Beat) -> str:
    then = f", {beat.gap.total_seconds():g} s" if beat.gap else ""
    workers = f", then work: {', '.join(map(str, beat.workers))}" if beat.workers else ""
    return f"{_plain(beat.act)}{then}{workers}"


def _plain(value: object) -> str:
    """A value in few words: no types where they are clear, and nothing that goes without saying."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, timedelta):
        return f"-({-value})" if value < timedelta() else str(value)
    if isinstance(value, Scope):
        return f"{value.id}: {', '.join(m.name for m in value.machines) or 'nobody'}"
    if isinstance(value, tuple):
        return f"[{'; '.join(map(_plain, value))}]"
    if is_dataclass(value):
        said = [(f.name, getattr(value, f.name)) for f in fields(value)]
        parts = (f"{name}={_plain(part)}" for name, part in said if part is not None and part != ())
        return f"{type(value).__name__}({', '.join(parts)})"
    return str(value)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m forewarn.testing.simulation")
    parser.add_argument("seed", type=int, nargs="?", help="the first seed; alone: only this one")
    parser.add_argument("--seconds", type=float, help="for how long; 0: until Ctrl-C")
    chosen = parser.parse_args(arguments)
    first = secrets.randbelow(FRESH_SEEDS) if chosen.seed is None else chosen.seed
    if chosen.seed is not None and chosen.seconds is None:
        tally = run([first], lambda _: True)
        _say(str(tally))
        for failure in tally.failures:
            _say(str(failure))
        return 1 if tally.failures else 0
    return _run_for(first, chosen.seconds or 0)


def _run_for(first: int, seconds: float) -> int:
    began = told_at = time.monotonic()
    seen = 0
    final = Tally()

    def goes_on(tally: Tally) -> bool:
        nonlocal told_at, seen, final
        final = tally
        for failure in tally.failures[seen:]:
            _say(str(failure))
        seen = len(tally.failures)
        now = time.monotonic()
        if now - told_at >= PROGRESS_SECONDS:
            told_at = now
            _say(f"{now - began:.0f} s, {tally}")
        return (not seconds or now - began < seconds) and seen < FAILURES_MAX

    try:
        final = run(count(first), goes_on)
    except KeyboardInterrupt:
        _say("")
    _say(f"seeds from {first} on, commit {commit()}: {final}")
    return 1 if final.failures else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
