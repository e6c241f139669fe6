"""The page on the client: its files are written, and its tests pass, as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Final

import pytest

import forewarn
from forewarn.client import Change, Client, Event, Kind
from forewarn.client.asynchronous import AsyncClient
from forewarn.client.patience import WITHIN, Pace

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
FILES: Final = dict(
    re.findall(r"^```python\n(?:# (\S+\.py)\n)(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
)


def test_every_example_passes(tmp_path: Path) -> None:
    for name, text in FILES.items():
        tmp_path.joinpath(name).write_text(text)
    source = str(Path(forewarn.__file__).parents[1])

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider",
         "-p", "forewarn.pytest_plugin"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([source, *filter(None, sys.path)]),
             "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{PAGE.count('def test_')} passed" in done.stdout
    assert PAGE.count("```python") == len(FILES), "each block says of which file it is"


@pytest.mark.parametrize(
    "name",
    [
        *(f"Kind.{kind.name}" for kind in Kind),
        *(f"change.{field.name}" for field in fields(Change)),
        *(field.name for field in fields(Event)),
        *(name for name in vars(Client) if not name.startswith("_")),
        *(name for name in vars(AsyncClient) if not name.startswith("_")),
    ],
)
def test_the_page_knows_every_word(name: str) -> None:
    assert re.search(rf"`[^`\n]*\b{re.escape(name)}\b[^`\n]*`", PAGE), f"docs/client.md: {name}"


def test_the_page_has_the_numbers_of_the_code() -> None:
    pace = Pace()

    assert f"for {pace.wait.seconds} seconds at a time" in PAGE
    assert f"`wait={pace.trial.seconds}`" in PAGE
    assert f"waits for {pace.answer.seconds} seconds" in PAGE
    assert f"twice as long up to {pace.first_answer.seconds}" in PAGE
    assert f"waits for {pace.first_answer.seconds} seconds" in PAGE
    assert WITHIN.seconds == 150
    assert "2½ minutes" in PAGE


def test_what_is_to_be_copied_is_enough(tmp_path: Path) -> None:
    assert "Copy `src/forewarn/__init__.py`, `errors.py` and `client/` into" in PAGE
    house = Path(forewarn.__file__).parent
    copied = tmp_path / "forewarn"
    copied.mkdir()
    copied.joinpath("client").mkdir()
    for file in (house / "__init__.py", house / "errors.py", *(house / "client").glob("*.py")):
        copied.joinpath(file.relative_to(house)).write_bytes(file.read_bytes())

    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import forewarn.client.asynchronous"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
