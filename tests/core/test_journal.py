"""Who did what: values which are stored, and so must not change their spelling."""

from __future__ import annotations

from forewarn.core.journal import SERVICE, Role, What


def test_what_no_person_asked_for_is_the_services_doing() -> None:
    assert SERVICE.role is Role.SERVICE
    assert (SERVICE.name, SERVICE.address) == ("forewarn", "")


def test_every_kind_of_line_has_its_own_word() -> None:
    """keeps S23."""
    words = [what.value for what in What]

    assert len(set(words)) == len(words)
    assert {"announced", "readable", "approved", "started", "completed", "canceled"} <= set(words)
