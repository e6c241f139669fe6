"""The page on the emulator: every line of shell on it was run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import forewarn

pytestmark = pytest.mark.end_to_end

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing" / "emulator.md"


def test_no_block_reads_the_line_of_an_emulator_before_this_one() -> None:
    text = PAGE.read_text()

    assert text.count("--json > emulator.json") == text.count(
        "rm -f emulator.json\nforewarn emulate"
    )


def test_every_line_of_the_page_works_in_a_shell(tmp_path: Path) -> None:
    command = tmp_path / "forewarn"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m forewarn "$@"\n')
    source = str(Path(forewarn.__file__).parents[1])
    command.chmod(0o755)
    # What an earlier run left, as whoever pastes the page again has it.
    (tmp_path / "emulator.json").write_text('{"machines": {}, "data": "gone"}')
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)

    done = subprocess.run(
        ["/bin/bash", "-e", "-c", "".join(blocks)],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": source},
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr + (tmp_path / "emulator.log").read_text()
    documents = [
        json.loads(text) for text in re.findall(r'\{"DocumentIncarnation.*?\]\}', done.stdout)
    ]
    assert [[e["EventStatus"] for e in one["Events"]] for one in documents] == [
        ["Scheduled"], ["Scheduled"], ["Started"], [],
    ]  # fmt: skip
    assert '"now":"2030-01-01T12:01:00Z"' in done.stdout
    assert not Path(json.loads((tmp_path / "emulator.json").read_text())["data"]).exists()
