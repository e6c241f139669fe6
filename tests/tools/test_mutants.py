"""Breakages written down are still breakages, and the runner tells caught from survived."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tools.mutants import (
    DATA,
    PAGE,
    ROOT,
    Catalog,
    Laboratory,
    Mutant,
    Outcome,
    Verdict,
    faults,
    load,
    main,
    minimal,
    page,
)

MUTANTS_MIN = 60
KEPT = {
    *("S1", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S11", "S12", "S13", "S14", "S15", "S16"),
    *("S17", "S18", "S19", "S21", "S23", "N4", "N5", "N6", "N9", "N10"),
}

RULE = "def is_due(now: int, not_before: int) -> bool:\n    return now >= not_before\n"
SLEEPY_TEST = "import time\n\n\ndef test_nothing() -> None:\n    time.sleep(60)\n"
TOO_EARLY = Mutant(
    name="too early",
    promises=("S17",),
    file="rules.py",
    old="now >= not_before",
    new="now >= not_before - 1",
    tests=("tests/test_rules.py",),
)


def test_every_mutant_can_be_tried_and_every_promise_kept_has_one() -> None:
    """A text that moved on takes its mutant along: see `make mutants`."""
    catalog = load(ROOT / DATA)

    assert faults(catalog, ROOT) == []
    assert len(catalog.mutants) >= MUTANTS_MIN
    assert set(catalog.promises) >= KEPT


def test_the_page_tells_of_every_mutant() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    missing = [m.name for m in load(ROOT / DATA).mutants if f"| {m.name} |" not in text]

    assert not missing, "run `make mutants WRITE=--write`"


def a_project(folder: Path, test: str) -> Path:
    """A project with one rule, and a test that should know it."""
    (folder / "src" / "forewarn").mkdir(parents=True)
    # A package, not a mere folder: that would give way to the one that is installed.
    (folder / "src" / "forewarn" / "__init__.py").write_text("")
    # Where forewarn is installed, pytest looks for this in whichever comes first.
    (folder / "src" / "forewarn" / "pytest_plugin.py").write_text("")
    (folder / "src" / "forewarn" / "rules.py").write_text(RULE)
    (folder / "tests").mkdir()
    (folder / "tests" / "test_rules.py").write_text(
        f"from forewarn import rules\n\n\ndef test_it() -> None:\n    assert {test}\n"
    )
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (folder / "tools").mkdir()
    (folder / DATA).write_text(
        'promises = ["S17"]\n[[mutant]]\nname = "too early"\npromises = ["S17"]\n'
        'file = "rules.py"\nold = "now >= not_before"\nnew = "now >= not_before - 1"\n'
        'tests = ["tests/test_rules.py"]\n'
    )
    (folder / "docs").mkdir()
    return folder


def test_a_mutant_that_a_test_notices_is_caught(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = a_project(tmp_path, "not rules.is_due(4, 5)")

    status = main(["--write"], root)

    assert status == 0
    assert "1 of 1 mutants were caught" in capsys.readouterr().out
    assert "| too early | `rules.py` | S17 | `test_rules.py test_it` |" in (root / PAGE).read_text()
    assert not (root / ".mutants").exists()
    assert (root / "src" / "forewarn" / "rules.py").read_text() == RULE


def test_a_mutant_that_no_test_notices_survives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = a_project(tmp_path, "rules.is_due(5, 5)")

    assert main([], root) == 1
    assert "SURVIVED: too early" in capsys.readouterr().out


def test_tests_that_fail_without_any_breakage_prove_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = a_project(tmp_path, "rules.is_due(4, 5)")

    assert main([], root) == 2
    assert "fails: tests/test_rules.py::test_it" in capsys.readouterr().out


def test_a_catalog_that_is_unsound_is_not_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = a_project(tmp_path, "rules.is_due(5, 5)")
    (root / "src" / "forewarn" / "rules.py").write_text("")

    assert main([], root) == 2
    assert "too early: its old text is in rules.py 0 times" in capsys.readouterr().out


def test_a_mutant_that_is_no_module_is_broken_and_one_that_hangs_is_hung(tmp_path: Path) -> None:
    root = a_project(tmp_path, "rules.is_due(5, 5)")
    (root / "tests" / "test_sleep.py").write_text(SLEEPY_TEST)
    patient = Laboratory(root, tmp_path / "patient")
    impatient = Laboratory(root, tmp_path / "impatient", seconds_max=1)

    unloadable = patient.try_out(replace(TOO_EARLY, old=RULE, new="1 / 0\n"), 1)
    endless = impatient.try_out(replace(TOO_EARLY, tests=("tests/test_sleep.py",)), 2)

    assert (unloadable.verdict, endless.verdict) == (Verdict.BROKEN, Verdict.HUNG)


@pytest.mark.parametrize(
    ("mutant", "fault"),
    [
        (replace(TOO_EARLY, file="gone.py"), "there is no gone.py"),
        (replace(TOO_EARLY, old="now"), "is in rules.py 2 times"),
        (replace(TOO_EARLY, new="now >="), "is no program"),
        (replace(TOO_EARLY, promises=()), "name a promise"),
        (replace(TOO_EARLY, tests=("tests/gone.py",)), "there is no tests/gone.py"),
        (replace(TOO_EARLY, tests=("tests/tools",)), "reads the sources"),
        (replace(TOO_EARLY, promises=("S16",)), "S17: no mutant breaks it"),
    ],
)
def test_a_mutant_that_cannot_be_tried_is_named_with_the_reason(
    tmp_path: Path, mutant: Mutant, fault: str
) -> None:
    root = a_project(tmp_path, "rules.is_due(5, 5)")

    assert fault in " ".join(faults(Catalog(("S17",), (mutant,)), root))


def test_two_mutants_have_two_names(tmp_path: Path) -> None:
    root = a_project(tmp_path, "rules.is_due(5, 5)")

    assert "the name is used twice" in faults(Catalog((), (TOO_EARLY, TOO_EARLY)), root)[0]


def test_a_file_in_a_folder_that_is_there_is_run_once() -> None:
    assert minimal([("tests/a/b.py", "tests/c.py::d"), ("tests/a",), ("tests/c.py",)]) == [
        "tests/a",
        "tests/c.py",
    ]


def test_the_page_says_what_got_through() -> None:
    text = page([Outcome(TOO_EARLY, Verdict.SURVIVED, 1.0)])

    assert "0 of 1 were caught." in text
    assert "**SURVIVED**" in text
