"""The page of guarantees promises nothing without a test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")


def test_every_guarantee_names_a_test_that_exists() -> None:
    promises = re.findall(r"^- .*(?:\n  .*)*", PAGE, flags=re.MULTILINE)
    assert promises

    for promise in promises:
        named = re.findall(r"`(tests/\S+)::(\w+)`", promise)
        assert named, f"docs/guarantees.md: name the test of {promise!r}"
        for file, name in named:
            found = re.search(rf"def {name}\(", (ROOT / file).read_text(encoding="utf-8"))
            assert found, f"docs/guarantees.md: there is no {name} in {file}"
