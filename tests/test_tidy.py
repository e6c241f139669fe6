"""House rules no off-the-shelf linter knows. Each failure says what to do."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
CONFTEST_LINES_MAX = 60

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ROOT / "src" / "forewarn"


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def found(pattern: str, *, under: str = ".") -> list[Path]:
    return sorted((ROOT / under).rglob(pattern))


MODULES = found("*.py", under="src")
TESTS = [path for path in found("*.py", under="tests") if path != Path(__file__).resolve()]
PAGES = sorted(
    chain(
        ROOT.glob("*.md"),
        found("*.md", under="docs"),
        found("*.md", under="tests"),
        found("*.md", under="packaging"),
    )
)
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
ROOMS = sorted(
    path
    for path in HOUSE.iterdir()
    if (path.is_dir() and path.name != "__pycache__")
    or (path.suffix == ".py" and not path.name.startswith("__"))
)

VAGUE = {"utils", "util", "helpers", "common", "base", "misc", "manager"}
SYNCHRONOUS = ("core", "wire", "ports", "service", "stores", "fabrics", "identities")
# Those who may look at the environment: the settings, and the client and the agent that run in a guest.
ENVIRONMENT_READERS = {
    HOUSE / "config" / "surroundings.py",
    HOUSE / "client" / "discovery.py",
    HOUSE / "agent" / "main.py",
}


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path), filename=str(path))


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_says_what_it_is_for_and_fits_in_one_sitting(path: Path) -> None:
    lines = len(text_of(path).splitlines())

    assert ast.get_docstring(tree_of(path)), f"{named(path)}: say in one sentence what lives here"
    assert lines <= MODULE_LINES_MAX, f"{named(path)} has {lines} lines: split it along a noun"


@pytest.mark.parametrize("path", MODULES + TESTS, ids=named)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            assert lines <= FUNCTION_LINES_MAX, f"{named(path)}: {node.name} has {lines} lines"


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_is_named_for_a_noun(path: Path) -> None:
    assert path.stem not in VAGUE, f"{named(path)}: find the noun (see GLOSSARY.md)"
    assert path.parent.name not in VAGUE, f"{named(path)}: find the noun (see GLOSSARY.md)"


@pytest.mark.parametrize("folder", [room for room in ROOMS if room.is_dir()], ids=named)
def test_a_room_states_its_law_at_the_door(folder: Path) -> None:
    door = folder / "__init__.py"

    assert door.is_file(), f"{named(folder)}: a room has an __init__.py that states its law"
    assert ast.get_docstring(tree_of(door)), f"{named(door)}: state the law of this room"


@pytest.mark.parametrize("room", ROOMS, ids=named)
def test_the_architecture_page_names_every_room(room: Path) -> None:
    page = text_of(ROOT / "ARCHITECTURE.md")
    mention = re.compile(rf"`(src/)?(forewarn[./])?{re.escape(room.stem)}(/|\.py)?`")

    assert mention.search(page), f"ARCHITECTURE.md: a paragraph for `{room.name}`"


@pytest.mark.parametrize(
    "path", [path for room in SYNCHRONOUS for path in (HOUSE / room).rglob("*.py")], ids=named
)
def test_below_the_edges_nothing_waits(path: Path) -> None:
    waiting = [
        node.lineno
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith | ast.Await)
    ]

    assert not waiting, f"{named(path)}:{waiting}: see docs/decisions/0001-one-colour.md"


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_only_the_settings_read_the_environment(path: Path) -> None:
    reads = [
        node.lineno
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"})
        or (isinstance(node, ast.alias) and node.name in {"environ", "getenv"})
    ]

    assert not reads or path in ENVIRONMENT_READERS, f"{named(path)}:{reads}: take an argument"


@pytest.mark.parametrize("path", MODULES + TESTS, ids=named)
def test_code_that_escapes_the_coverage_floor_says_why(path: Path) -> None:
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        _, pragma, reason = line.partition("# pragma: no ")
        words = reason.split(maxsplit=1)
        assert not pragma or len(words) > 1, f"{named(path)}:{number}: write the reason beside it"


@pytest.mark.parametrize("path", TESTS, ids=named)
def test_tests_use_real_parts(path: Path) -> None:
    patched = re.search(
        r"\b(monkeypatch|mocker|pytest_mock|unittest\.mock|from unittest import mock)\b",
        text_of(path),
    )

    assert not patched, f"{named(path)}: whoever needs a patch has found a missing port"


@pytest.mark.parametrize("path", found("conftest.py", under="tests"), ids=named)
def test_a_conftest_is_no_longer_than_a_screen(path: Path) -> None:
    lines = len(text_of(path).splitlines())

    assert lines <= CONFTEST_LINES_MAX, f"{named(path)}: test parts belong in forewarn.testing"


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_a_page_has_exactly_one_title(path: Path) -> None:
    prose = re.sub(r"^ *```.*?^ *```", "", text_of(path), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^# .+", prose, flags=re.MULTILINE)

    assert len(titles) == 1, f"{named(path)}: one title, not {titles}"


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(path.name[:4]) for path in DECISIONS]

    assert numbers == list(range(1, len(DECISIONS) + 1)), "docs/decisions: the next free number"


@pytest.mark.parametrize("path", DECISIONS, ids=named)
def test_a_decision_has_its_four_parts(path: Path) -> None:
    parts = re.findall(r"^## (.+)", text_of(path), flags=re.MULTILINE)

    assert parts == ["Context", "Decision", "Consequences", "Rejected"], named(path)


def test_assertions_are_alive() -> None:
    """Assertions state what we know, in production too: forewarn is never run with -O."""
    assert __debug__


@pytest.mark.parametrize("path", found("*.txt", under="requirements"), ids=named)
def test_pinned_versions_come_from_nowhere_in_particular(path: Path) -> None:
    """Which index serves the packages is each builder's own affair."""
    for line in text_of(path).splitlines():
        pinned = re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!_-]+( ;.*)?|#.*|", line)
        assert pinned, f"{named(path)}: only name==version, not {line!r}"
        assert "://" not in line, f"{named(path)}: no addresses, not {line!r}"
