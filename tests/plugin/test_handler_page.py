"""The page on testing a handler: its files are written, and its tests pass, as they stand."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import forewarn
from forewarn.core.events import ANNOUNCED_TYPES, EventType
from forewarn.core.periods import TYPICAL_DURATION
from forewarn.pytest_plugin import OPTIONS
from forewarn.testing.emulated_events import Event
from forewarn.testing.scheduled_events import ScheduledEvents

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs" / "testing-your-handler.md").read_text(encoding="utf-8")
FILES: Final = dict(
    re.findall(r"^```python\n(?:# (\S+\.py)\n)(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
)
SHELL: Final = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
# What the machine of somebody who begins has, or gets; trying it for real needs packages from elsewhere.
TOOLS: Final = {
    "python3": '[ "$*" = "-m venv .venv" ] && mkdir -p .venv/bin && : > .venv/bin/activate',
    "pip": '[ "$*" = "install forewarn[testing]" ]',
    "pytest": f'exec "{sys.executable}" -m pytest -p forewarn.pytest_plugin '
    "-p pytest_asyncio.plugin -p no:cacheprovider -W error "
    '-o asyncio_default_fixture_loop_scope=function "$@"',
}


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """An empty directory, and the tools that the page has one type."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, words in TOOLS.items():
        programs.joinpath(name).write_text(f"#!/bin/sh\n{words}\n")
        programs.joinpath(name).chmod(0o755)
    desk = tmp_path / "desk"
    desk.mkdir()
    return desk


def typed(desk: Path, names: list[str]) -> subprocess.CompletedProcess[str]:
    """Write these files of the page, and type what it has one type."""
    for name in names:
        desk.joinpath(name).write_text(FILES[name])
    source = str(Path(forewarn.__file__).parents[1])
    path = os.pathsep.join([source, *filter(None, sys.path)])
    return subprocess.run(
        ["/bin/bash", "-e", "-c", "".join(SHELL)],
        cwd=desk, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PATH": f"{desk.parent / 'programs'}:{os.environ['PATH']}",
             "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip


def test_the_first_five_minutes_end_with_three_tests_that_pass(desk: Path) -> None:
    done = typed(desk, ["handler.py", "test_handler.py"])

    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_every_example_passes(desk: Path) -> None:
    done = typed(desk, list(FILES))

    assert done.returncode == 0, done.stdout + done.stderr
    assert PAGE.count("```python") == len(FILES), "each block says of which file it is"
    functions = [
        node.name
        for text in FILES.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    expected = sum(name.startswith("test_") for name in functions)
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    skipped = re.search(r"(\d+) skipped", done.stdout)
    assert int(passed[1]) + (0 if skipped is None else int(skipped[1])) == expected


def test_a_handler_that_forgets_to_approve_is_caught(desk: Path) -> None:
    done = typed(desk, ["handler.py", "test_handler.py"])
    assert done.returncode == 0

    broken = FILES["handler.py"].replace('ask(base, {"StartRequests"', '({"StartRequests"')
    assert broken != FILES["handler.py"]
    desk.joinpath("handler.py").write_text(broken)
    again = subprocess.run(
        [desk.parent / "programs" / "pytest"], cwd=desk, capture_output=True, text=True,
        check=False, env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])},
    )  # fmt: skip

    assert again.returncode == 1
    assert "Reboot of web-0 is Scheduled, due in 15m>" in again.stdout


@pytest.mark.parametrize(
    "name",
    [
        *OPTIONS,
        *(name for name in vars(ScheduledEvents) if not name.startswith("_")),
        *(name for name in vars(Event) if not name.startswith("_")),
    ],
)
def test_the_page_knows_every_word(name: str) -> None:
    assert re.search(rf"`[^`]*\b{name}\b[^`]*`", PAGE), f"docs/testing-your-handler.md: {name}"


@pytest.mark.parametrize("kind", ANNOUNCED_TYPES)
def test_the_page_says_how_long_events_stay_started(kind: EventType) -> None:
    took = TYPICAL_DURATION[kind].total_seconds()
    minutes, seconds = divmod(int(took), 60)
    unit = "minute" if minutes else "second"
    count = minutes or seconds
    told = f"{count} {unit}" if count == 1 else f"{count} {unit}s"

    assert re.search(
        rf"^\| `{kind.value.lower()}\(\*vms\)` \| [^|]+ \| {told} \|", PAGE, re.MULTILINE
    )


def test_the_page_says_what_else_to_install() -> None:
    assert "`pip install pytest-asyncio`" in PAGE
    assert "`pip install pytest-xdist`" in PAGE


def test_the_readme_leads_here() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("## Test a handler")[2].partition("\n## ")[0]

    assert "(docs/testing-your-handler.md)" in section
    assert "`pip install 'forewarn[testing]'`" in section
    bullets = re.findall(r"^- \*\*([^*]+)\*\*", readme, re.MULTILINE)
    assert len(bullets) == len(set(bullets)), "each is told what it can do once"
