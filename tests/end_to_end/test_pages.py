"""The lines of the pages about Azure's clients, run as they stand beside the sample fleet.

Lines for az are run where there is an az on PATH; its own story is told by `make test-az`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Final

import pytest

from forewarn.testing.processes import ServiceProcess

pytestmark = pytest.mark.end_to_end

ROOT: Final = Path(__file__).resolve().parents[2]
AZ_LINE: Final = re.compile(r"^(forewarn az-setup|az ).*\n", re.MULTILINE)
SECONDS_MAX: Final = 300


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """A directory in which the sample fleet is served, as `make run` does."""
    sample = files("forewarn.cli").joinpath("sample.toml").read_text(encoding="utf-8")
    with ServiceProcess(tmp_path / ".forewarn", sample):
        yield tmp_path


def lines(page: str) -> str:
    """What a page has one type."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert blocks, f"{page} has no lines to run"
    return blocks if shutil.which("az") else AZ_LINE.sub("", blocks)


def shell(clone: Path) -> dict[str, str]:
    """The environment of somebody who has just made the clone."""
    programs = clone / ".venv" / "bin"
    programs.mkdir(parents=True)
    # Another Python than ours, az's own for one, must not look into our packages.
    path = os.pathsep.join(sys.path)
    for name, words in (("forewarn", "-m forewarn"), ("python3", "")):
        file = programs / name
        file.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" {words} "$@"\n')
        file.chmod(0o755)
    mine = ("FOREWARN_", "AZURE_", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(mine)}
    home = str(clone / "home")
    return {**kept, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": home}


@pytest.mark.parametrize("page", ["README.md", "docs/operating/azure-clients.md"])
def test_what_a_page_says_can_be_typed(clone: Path, page: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{lines(page)}"],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        cwd=clone,
        env=shell(clone),
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "web-1" in done.stdout
