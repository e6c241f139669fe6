"""The refusals whose exact form somebody relies on."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from forewarn.wire import refusals


def test_a_missing_header_is_answered_as_it_was_recorded() -> None:
    """Keeps S4 and S6: the spaces and the odd dot are genuine."""
    refusal = refusals.NO_METADATA_HEADER

    assert refusal.status == 400
    assert refusal.body == b'{ "error": "Bad request: . Required metadata header not specified" }'


def test_a_missing_version_is_answered_with_the_newest_ones() -> None:
    """Keeps S3: clients read the list, and ask again with its first element."""
    refusal = refusals.BAD_VERSION

    assert refusal.status == 400
    assert json.loads(refusal.body) == {
        "error": "Bad request. api-version is invalid or was not specified in the request. "
        "For more information refer to aka.ms/azureimds",
        "newest-versions": ["2025-04-07", "2024-07-17", "2024-03-15"],
    }


def test_an_unknown_version_of_events_is_not_found() -> None:
    """Keeps S3: a client that probes for newer versions takes only 404 for a no."""
    assert refusals.UNKNOWN_VERSION.status == 404
    assert refusals.UNKNOWN_VERSION.body == b'{ "error": "Not found. Invalid version requested" }'


def test_a_refused_method_names_the_allowed_ones() -> None:
    assert refusals.method_not_allowed("GET", "POST").headers == (("Allow", "GET, POST"),)
    assert refusals.method_not_allowed("GET").headers == (("Allow", "GET"),)


def test_who_should_come_back_is_told_when() -> None:
    assert refusals.STORE_AWAY.headers == (("Retry-After", "1"),)
    assert refusals.THROTTLED.headers == (("Retry-After", "1"),)


def test_a_stranger_is_told_its_address_and_what_to_do() -> None:
    error = json.loads(refusals.stranger("fd00::66").body)["error"]

    assert "fd00::66" in error
    assert "ask the operator" in error


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_whatever_was_sent_the_body_is_short_ascii_json(sent: str) -> None:
    for refusal in (refusals.unknown_event(sent), refusals.repeated_parameter(sent)):
        assert refusal.body.isascii()
        assert b"\n" not in refusal.body
        assert len(json.loads(refusal.body)["error"]) < 300
