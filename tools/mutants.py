"""Breaks the rules one by one, and sees whether the suite notices: `make mutants`.

Each mutant in mutants.toml is one deliberate breakage: an exact text in one file, and the text put
in its place. It is written down before the run, with the tests that are to catch it. A mutant lives
in a scratch copy of the project, alone, and is caught if one of those tests fails. A test that
fails without any breakage would catch everything, so the tests are first run on an unbroken copy.

A mutant that survives is a hole in the suite: write the test, or, if nobody could ever tell the
difference, a better mutant.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DATA: Final = Path("tools/mutants.toml")
PAGE: Final = Path("docs/mutants.md")
SCRATCH: Final = Path(".mutants")
PACKAGE: Final = Path("src/forewarn")
# What a test needs of the project, all of it copied.
COPIED: Final = ("src", "tests", "pyproject.toml")
# For a mutant that names no tests: what is quick and sees most of the rules.
DEFAULT_TESTS: Final = ("tests/service", "tests/core", "tests/identities", "tests/web")
# These read the sources, so that they would catch every mutant and prove nothing.
READERS_OF_SOURCES: Final = ("tests/tools", "tests/test_tidy.py")
SECONDS_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class Mutant:
    """One deliberate breakage, and who is to notice it."""

    name: str
    promises: tuple[str, ...]
    # Below src/forewarn.
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """The mutants, and the promises of which each must have one."""

    promises: tuple[str, ...]
    mutants: tuple[Mutant, ...]


class Verdict(Enum):
    """What came of a mutant; only the first is good news."""

    CAUGHT = "caught"
    SURVIVED = "SURVIVED"
    # The tests did not run to a verdict: the mutant is no program, or a selection is empty.
    BROKEN = "BROKEN"
    # Whether a test would have failed, nobody knows.
    HUNG = "HUNG"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one mutant, and which test said so first."""

    mutant: Mutant
    verdict: Verdict
    seconds: float
    test: str = ""


def load(path: Path) -> Catalog:
    """The mutants as they are written down."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    mutants = tuple(
        Mutant(
            name=entry["name"],
            promises=tuple(entry["promises"]),
            file=entry["file"],
            old=entry["old"],
            new=entry["new"],
            tests=tuple(entry.get("tests", ())) or DEFAULT_TESTS,
        )
        for entry in content["mutant"]
    )
    return Catalog(tuple(content["promises"]), mutants)


def faults(catalog: Catalog, root: Path) -> list[str]:
    """Why this catalog cannot be tried on this project, a line each."""
    found = [fault for mutant in catalog.mutants for fault in _faults_of(mutant, root)]
    names = [mutant.name for mutant in catalog.mutants]
    found += [f"{name}: the name is used twice" for name in set(names) if names.count(name) > 1]
    broken = {promise for mutant in catalog.mutants for promise in mutant.promises}
    found += [f"{row}: no mutant breaks it" for row in catalog.promises if row not in broken]
    return sorted(found)


def _faults_of(mutant: Mutant, root: Path) -> list[str]:
    path = root / PACKAGE / mutant.file
    if not path.is_file():
        return [f"{mutant.name}: there is no {mutant.file}"]
    text = path.read_text(encoding="utf-8")
    found: list[str] = []
    times = text.count(mutant.old)
    if times != 1:
        found.append(f"{mutant.name}: its old text is in {mutant.file} {times} times, not once")
    elif not _is_program(mutated(mutant, text)):
        found.append(f"{mutant.name}: with its new text, {mutant.file} is no program")
    if not mutant.promises:
        found.append(f"{mutant.name}: name a promise that it breaks")
    for test in mutant.tests:
        if not (root / test.partition("::")[0]).exists():
            found.append(f"{mutant.name}: there is no {test}")
        if test.startswith(READERS_OF_SOURCES):
            found.append(f"{mutant.name}: {test} reads the sources, and would catch anything")
    return found


def _is_program(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def mutated(mutant: Mutant, text: str) -> str:
    """The text of the mutant's file, broken."""
    return text.replace(mutant.old, mutant.new)


class Laboratory:
    """Copies of a project in a scratch directory, one for each mutant, gone once it was tried."""

    def __init__(self, root: Path, scratch: Path, *, seconds_max: float = SECONDS_MAX) -> None:
        # One for each run: two at a time do not take each other's ground away.
        self._scratch = scratch / str(os.getpid())
        self._seconds_max = seconds_max
        self._template = self._scratch / "unbroken"
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._template.mkdir(parents=True)
        for name in COPIED:
            _copy(root / name, self._template / name)

    def close(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)
        # The last one to leave.
        with suppress(OSError):
            self._scratch.parent.rmdir()

    def unbroken(self, tests: Sequence[str]) -> tuple[Verdict, str]:
        """Run tests without any breakage; they should find nothing to say."""
        verdict, test = self._run(self._template, tests, "unbroken")
        return verdict, test

    def try_out(self, mutant: Mutant, number: int) -> Outcome:
        """Break a fresh copy and run the tests that should notice."""
        begun = time.monotonic()
        name = f"mutant-{number}"
        copy = self._scratch / name
        # With the compiled files, which are good for every source but the broken one.
        shutil.copytree(self._template, copy)
        broken = copy / PACKAGE / mutant.file
        for compiled in broken.parent.glob(f"__pycache__/{broken.stem}.*.pyc"):
            compiled.unlink()
        broken.write_text(mutated(mutant, broken.read_text(encoding="utf-8")), encoding="utf-8")
        try:
            verdict, test = self._run(copy, mutant.tests, name)
        finally:
            shutil.rmtree(copy, ignore_errors=True)
        return Outcome(mutant, verdict, time.monotonic() - begun, test)

    def _run(self, copy: Path, tests: Sequence[str], name: str) -> tuple[Verdict, str]:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", f"--rootdir={copy}"]
        # The order of the files, so that the same test is the first to notice each time.
        command += ["-p", "no:randomly", "-p", "no:cacheprovider"]
        temporary = self._scratch / "tmp" / f"{name}-{time.monotonic_ns()}"
        temporary.parent.mkdir(exist_ok=True)
        command += [f"--basetemp={temporary}", *tests]
        # Neither told how to run, nor measured: the copies will be gone.
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("FOREWARN_", "COVERAGE_"))}
        environment = {
            **kept,
            # Before whatever is installed: an editable install leads back to the unbroken files.
            "PYTHONPATH": str(copy / "src"),
            "HYPOTHESIS_PROFILE": "mutants",
            # What depends on the order of a set is the same in each run.
            "PYTHONHASHSEED": "0",
        }
        with subprocess.Popen(
            command,
            cwd=copy,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # With all that the tests started, should it have to be ended.
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=self._seconds_max)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return Verdict.HUNG, ""
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
        return _verdict(process.returncode, output)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        # What was compiled elsewhere may be stale, and names other paths.
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy2(source, target)


def _verdict(status: int, output: str) -> tuple[Verdict, str]:
    lines = output.splitlines()
    said = next((line for line in lines if line.startswith(("FAILED ", "ERROR "))), "")
    test = said.partition(" ")[2].partition(" - ")[0]
    if status == 0:
        return Verdict.SURVIVED, ""
    # pytest's 1: the tests ran, and some failed.
    if status == 1 and said:
        return Verdict.CAUGHT, test
    return Verdict.BROKEN, test or (lines[-1] if lines else "")


def minimal(selections: Iterable[Sequence[str]]) -> list[str]:
    """All tests of these selections, each once: what is in a folder that is there is left out."""
    wanted = sorted({test for selection in selections for test in selection})
    return [
        test
        for test in wanted
        if not any(test.startswith((f"{other}/", f"{other}::")) for other in wanted)
    ]


def prove_unbroken(laboratory: Laboratory, mutants: Sequence[Mutant], jobs: int) -> list[str]:
    """Run all tests in question on the unbroken project; returns what fails there."""
    tests = minimal(mutant.tests for mutant in mutants)
    shares = [share for share in (tests[job::jobs] for job in range(jobs)) if share]
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(laboratory.unbroken, shares))
    return [
        f"{verdict.value if verdict is not Verdict.CAUGHT else 'fails'}: {test}"
        for verdict, test in results
        if verdict is not Verdict.SURVIVED
    ]


def try_all(
    laboratory: Laboratory,
    mutants: Sequence[Mutant],
    jobs: int,
    tell: Callable[[int, Outcome], None],
) -> tuple[Outcome, ...]:
    """Try every mutant, some at a time; outcomes in the order of the mutants."""
    outcomes: dict[int, Outcome] = {}
    with ThreadPoolExecutor(jobs) as pool:
        running = {
            pool.submit(laboratory.try_out, mutant, number): number
            for number, mutant in enumerate(mutants)
        }
        try:
            for done in as_completed(running):
                outcomes[running[done]] = done.result()
                tell(len(outcomes), done.result())
        except BaseException:
            # Interrupted: what is under way comes to its end, and nothing else is begun.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return tuple(outcomes[number] for number in range(len(mutants)))


def page(outcomes: Sequence[Outcome]) -> str:
    """What caught what, as a page of the documentation."""
    caught = sum(outcome.verdict is Verdict.CAUGHT for outcome in outcomes)
    lines = [
        "# Rules broken on purpose",
        "",
        "Whether a suite of tests would notice a broken promise is best learned by breaking it. Each",
        "line below is one deliberate breakage of a rule, written down in `tools/mutants.toml` with the",
        "tests that are to notice it, and the test that noticed it first. `make mutants` tries all of",
        "them again, and fails if one gets through; `tools/mutants.py --write` makes this page.",
        "",
        f"{caught} of {len(outcomes)} were caught.",
        "",
        "| what was broken | where | promises | caught by |",
        "|---|---|---|---|",
    ]
    lines += map(_line, outcomes)
    return "\n".join([*lines, ""])


def _line(outcome: Outcome) -> str:
    mutant = outcome.mutant
    # Without its parameters, which would not fit into a column.
    said = outcome.test.partition("[")[0].removeprefix("tests/").replace("::", " ")
    by = f"`{said}`" if outcome.verdict is Verdict.CAUGHT else f"**{outcome.verdict.value}**"
    return f"| {mutant.name} | `{mutant.file}` | {', '.join(mutant.promises)} | {by} |"


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Break the rules one by one; the tests must notice."
    )
    cores = len(os.sched_getaffinity(0))
    parser.add_argument(
        "--jobs", type=int, default=cores, help=f"mutants tried at one time ({cores})"
    )
    parser.add_argument("--only", default="", help="only mutants with this in their name or file")
    parser.add_argument("--write", action="store_true", help=f"write what caught what to {PAGE}")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Try the mutants, and say how it went. 0: all were caught; 1: not all; 2: nothing is proven."""
    arguments = _arguments(words)
    catalog = load(root / DATA)
    unsound = faults(catalog, root)
    if unsound:
        print("\n".join(unsound))
        return 2
    begun = time.monotonic()
    chosen = [m for m in catalog.mutants if arguments.only in m.name or arguments.only in m.file]
    laboratory = Laboratory(root, root / SCRATCH)
    try:
        failing = prove_unbroken(laboratory, chosen, arguments.jobs)
        if failing:
            print("without any breakage:", *failing, sep="\n")
            return 2

        def tell(count: int, outcome: Outcome) -> None:
            told = f"{outcome.verdict.value:8} {outcome.mutant.name} ({outcome.seconds:.1f} s)"
            print(f"[{count:3}/{len(chosen)}] {told} {outcome.test}", flush=True)

        outcomes = try_all(laboratory, chosen, arguments.jobs, tell)
    finally:
        laboratory.close()
    if arguments.write and len(chosen) == len(catalog.mutants):
        (root / PAGE).write_text(page(outcomes), encoding="utf-8")
    missed = [outcome for outcome in outcomes if outcome.verdict is not Verdict.CAUGHT]
    took = f"{time.monotonic() - begun:.0f} s"
    print(f"{len(outcomes) - len(missed)} of {len(outcomes)} mutants were caught in {took}")
    for outcome in missed:
        print(f"  {outcome.verdict.value}: {outcome.mutant.name} ({outcome.mutant.file})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
