"""The recipes for other languages: each block of the page is a whole program, and was run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

import forewarn

pytestmark = pytest.mark.end_to_end

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "testing" / "other-languages.md"
# A first `go test` compiles the standard library.
SECONDS_MAX: Final = 300
STORIES: Final = 3


def node_major() -> int:
    """The node on PATH, or 0."""
    if shutil.which("node") is None:
        return 0
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    return int(said.stdout.removeprefix("v").split(".")[0])


def recipe(language: str, folder: Path) -> Path:
    """The program that the page has in this language, saved as its first lines say."""
    (text,) = re.findall(
        rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    name = re.search(r"^(?://|#) (\S+), run with: ", text, re.MULTILINE)
    assert name is not None, f"the {language} recipe does not say what it is called"
    file = folder / name[1]
    file.write_text(text, encoding="utf-8")
    return file


def run(folder: Path, command: Sequence[str], *, forewarn_is: str = "") -> tuple[int, str]:
    """The status and the output of a command for which `forewarn` is on PATH."""
    programs = folder / "programs"
    programs.mkdir()
    program = programs / "forewarn"
    program.write_text(forewarn_is or f'#!/bin/sh\nexec "{sys.executable}" -m forewarn "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        env={
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(Path(forewarn.__file__).parents[1]),
            # What the emulator, or the shell, leaves behind would be found there.
            "TMPDIR": str(left_behind(folder)),
        },
    )
    return done.returncode, done.stdout


def left_behind(folder: Path) -> Path:
    path = folder / "left-behind"
    path.mkdir(exist_ok=True)
    return path


@pytest.mark.skipif(node_major() < 20, reason="no node >= 20 here")
def test_the_recipe_in_javascript_passes(tmp_path: Path) -> None:
    recipe("js", tmp_path)

    status, said = run(tmp_path, ["node", "--test", "--test-reporter=tap"])

    assert status == 0, said
    assert f"# pass {STORIES}" in said
    assert not list(left_behind(tmp_path).iterdir())


@pytest.mark.skipif(node_major() < 20, reason="no node >= 20 here")
def test_the_recipe_in_javascript_fails_where_the_emulator_does(tmp_path: Path) -> None:
    recipe("js", tmp_path)

    status, said = run(
        tmp_path, ["node", "--test", "--test-reporter=tap"], forewarn_is="#!/bin/sh\nexit 3\n"
    )

    assert (status, "the emulator did not start" in said) == (1, True), said


def test_the_recipe_in_shell_passes(tmp_path: Path) -> None:
    file = recipe("sh", tmp_path)

    status, said = run(tmp_path, ["sh", file.name])

    assert status == 0, said
    assert [line[:4] for line in said.splitlines()] == ["ok: "] * STORIES
    assert not list(left_behind(tmp_path).iterdir())


def test_the_recipe_in_shell_fails_where_the_emulator_does(tmp_path: Path) -> None:
    file = recipe("sh", tmp_path)

    broken = "#!/bin/sh\necho not today >&2\nexit 3\n"
    status, said = run(tmp_path, ["sh", file.name], forewarn_is=broken)

    assert (status, said) == (1, "not today\n")
    assert not list(left_behind(tmp_path).iterdir())


# Not skipped: a compiler of Go is no part of what the tests may ask of a machine.
if shutil.which("go") is not None:

    def test_the_recipe_in_go_passes(tmp_path: Path) -> None:
        recipe("go", tmp_path)
        (tmp_path / "go.mod").write_text("module example.com/handler\n\ngo 1.21\n")

        status, said = run(tmp_path, ["go", "test", "-v", "./..."])

        assert status == 0, said
        assert said.count("\n--- PASS: ") == STORIES
        assert not list(left_behind(tmp_path).iterdir())
