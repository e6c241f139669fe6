"""What a recipe's page has one write and type, so that tests do just that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "docs" / "recipes"
BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The first line of a block that is a file says which, below the one that says what runs it.
FILE_NAME: Final = re.compile(r"(?:#!.*\n)?# (/\S+)\n")


class Page:
    """One recipe."""

    def __init__(self, name: str) -> None:
        self.text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        self._blocks: list[tuple[str, str]] = BLOCK.findall(self.text)

    def file(self, path: str, *, number: int = 1) -> str:
        """What the page has one write into a file; where it has several ways, the one of this number."""
        found = [text for _, text in self._blocks if _file_name(text) == path]
        assert len(found) >= number, f"the page has {len(found)} blocks for {path}"
        return found[number - 1]

    @property
    def lines(self) -> list[str]:
        """The blocks that one types, in their order."""
        return [text for kind, text in self._blocks if kind == "sh" and not _file_name(text)]


def _file_name(text: str) -> str:
    found = FILE_NAME.match(text)
    return "" if found is None else found[1]
