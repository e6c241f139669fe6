"""What all recipes have in common."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
from tests.recipes.pages import FOLDER, ROOT

from forewarn.agent.settings import parse_settings

PAGES: Final = sorted(set(FOLDER.glob("*.md")) - {FOLDER / "README.md"})
HOOKS: Final = sorted((FOLDER / "hooks").iterdir())
INSTALLED: Final = re.compile(
    r"^install -D -m 755 (\S+) /etc/forewarn/hooks\.d/(\S+)$", re.MULTILINE
)


@pytest.mark.parametrize("file", [*PAGES, *HOOKS], ids=lambda file: file.name)
def test_the_list_has_every_recipe_and_its_hook(file: Path) -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")

    assert f"({file.relative_to(FOLDER)})" in text


@pytest.mark.parametrize("page", [*PAGES, FOLDER / "README.md"], ids=lambda file: file.name)
def test_a_page_leads_to_what_there_is(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))

    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]

    assert not missing


@pytest.mark.parametrize("hook", HOOKS, ids=lambda file: file.name)
def test_a_hook_can_be_run_and_its_page_installs_it_where_it_says(hook: Path) -> None:
    page = hook.with_name(f"{hook.stem}.md").name
    text = hook.read_text(encoding="utf-8")

    installed = INSTALLED.findall((FOLDER / page).read_text(encoding="utf-8"))

    assert os.access(hook, os.X_OK)
    assert f"docs/recipes/{page}" in text
    assert {ROOT / file for file, _ in installed} == {hook}
    phases = {place.partition("/")[0] for _, place in installed}
    assert phases == set(re.findall(r"\bhooks\.d/(\w+)", text.partition("docs/recipes")[0]))


@pytest.mark.parametrize("hook", [h for h in HOOKS if h.suffix == ".sh"], ids=lambda h: h.name)
def test_a_hook_for_the_shell_is_for_any_shell(hook: Path) -> None:
    assert hook.read_text(encoding="utf-8").startswith("#!/bin/sh\n")
    for shell in ("dash", "bash --posix"):
        subprocess.run([*shell.split(), "-n", hook], check=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda file: file.name)
def test_an_agent_takes_the_file_of_each_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    files = re.findall(
        r"^```toml\n(# /etc/forewarn/agent\.toml\n.*?)^```", text, re.MULTILINE | re.DOTALL
    )

    assert files
    for file in files:
        assert parse_settings(file, page.name).rules
