"""The page on scenarios: every line of shell on it was run, and it lists all there are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import forewarn
from forewarn.config.scenario_parsing import EXPECTED, VERBS
from forewarn.config.scenarios import shipped

pytestmark = pytest.mark.end_to_end

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing" / "scenarios.md"


def test_no_block_reads_the_line_of_an_emulator_before_this_one() -> None:
    text = PAGE.read_text()

    assert text.count("--json > emulator.json") == text.count(
        "rm -f emulator.json\nforewarn emulate"
    )


def test_every_line_of_the_page_works_in_a_shell(tmp_path: Path) -> None:
    command = tmp_path / "forewarn"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m forewarn "$@"\n')
    command.chmod(0o755)
    source = str(Path(forewarn.__file__).parents[1])
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOREWARN_")}
    # What an earlier run left, as whoever pastes the page again has it.
    (tmp_path / "emulator.json").write_text('{"machines": {}, "data": "gone"}')
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)

    done = subprocess.run(
        ["/bin/bash", "-e", "-c", "".join(blocks)],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env={**kept, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": source},
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr + (tmp_path / "emulator.log").read_text()
    verdicts = re.findall(r"^(?:NOT )?KEPT: .*", done.stdout, flags=re.MULTILINE)
    assert verdicts == [
        "KEPT: 5 expectations", "KEPT: 2 expectations", "NOT KEPT: 2 failed, 0 kept",
    ]  # fmt: skip
    own = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert own[-1] == {
        "verdict": "kept", "kept": 4, "not_kept": [], "passed_over": 0, "not_played": 0,
    }  # fmt: skip


def test_the_page_has_every_scenario_and_every_kind_of_step() -> None:
    page = PAGE.read_text()

    assert [name for name in shipped() if f"`{name}`" not in page] == []
    assert [verb for verb in VERBS if f"`{verb} = " not in page] == []
    assert [word for word in EXPECTED if f'"{word}"' not in page] == []
