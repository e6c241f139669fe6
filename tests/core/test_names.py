"""Names of scopes."""

from __future__ import annotations

from forewarn.core.names import scope_id


def test_a_scope_has_one_id_however_its_names_are_capitalized() -> None:
    assert scope_id("RG1", "Web") == scope_id("rg1", "web") == "rg1/web"
