"""What owners send and we do not understand: kept, merged, and never a secret."""

from __future__ import annotations

import json

import pytest

from forewarn.errors import Malformed
from forewarn.wire import arm_kept
from forewarn.wire.arm_kept import DEPTH_MAX, KEPT_BYTES_MAX


def test_an_empty_body_is_an_empty_object() -> None:
    assert arm_kept.load_object(b" \n") == {}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "no JSON object"),
        (b'{"a":' * DEPTH_MAX + b"[]" + b"}" * DEPTH_MAX, "nested more than"),
    ],
)
def test_what_is_no_object_is_refused(body: bytes, complaint: str) -> None:
    with pytest.raises(Malformed, match=complaint):
        arm_kept.load_object(body)


def test_a_body_may_be_as_deep_as_the_limit() -> None:
    body = b'{"a":' * (DEPTH_MAX - 1) + b"[1]" + b"}" * (DEPTH_MAX - 1)

    assert arm_kept.load_object(body)


def test_members_are_laid_over_each_other() -> None:
    below = {"a": {"x": 1, "y": 2}, "b": [1], "c": 3, "e": 5}
    above = {"a": {"y": None, "z": 3}, "b": [2], "c": {"d": 4}, "e": None, "f": None}

    assert arm_kept.overlaid(below, above) == {
        "a": {"x": 1, "z": 3},
        "b": [2],
        "c": {"d": 4},
    }


def test_what_is_sent_later_is_merged() -> None:
    first = arm_kept.keep("", {"properties": {"a": 1, "b": {"c": 2}}}, ())

    second = arm_kept.keep(first, {"properties": {"b": {"d": 3}}, "plan": "x"}, ())

    assert json.loads(second) == {"properties": {"a": 1, "b": {"c": 2, "d": 3}}, "plan": "x"}


def test_tags_are_replaced_as_a_whole() -> None:
    first = arm_kept.keep("", {"tags": {"a": "1", "b": "2"}}, ())

    assert json.loads(arm_kept.keep(first, {"tags": {"c": "3"}}, ())) == {"tags": {"c": "3"}}
    assert arm_kept.keep(first, {"plan": None}, ()) == first


def test_what_is_ours_is_not_kept_as_the_owners() -> None:
    sent = {"id": "x", "properties": {"profile": {"size": 1}, "state": "y", "mine": 1}, "sku": 3}
    ours = (("id",), ("properties", "profile", "size"), ("properties", "state"), ("sku", "name"))

    assert json.loads(arm_kept.keep("", sent, ours)) == {"properties": {"mine": 1}, "sku": 3}
    assert arm_kept.keep("", {"id": "x", "properties": {"profile": {"size": 1}}}, ours) == ""


def test_secrets_are_never_kept() -> None:
    sent = {
        "properties": {
            "osProfile": {"adminPassword": "p", "AdminUsername": "u", "customData": "c"},
            "extensions": [{"protectedSettings": {"key": "k"}, "settings": 1}, "text"],
            "userData": "s",
        }
    }

    text = arm_kept.keep("", sent, ())

    assert json.loads(text) == {
        "properties": {
            "osProfile": {"AdminUsername": "u"},
            "extensions": [{"settings": 1}, "text"],
        }
    }


def test_nobody_fills_the_ledgers_with_members() -> None:
    with pytest.raises(Malformed, match="more than 32768 bytes"):
        arm_kept.keep("", {"a": "x" * KEPT_BYTES_MAX}, ())


def test_nothing_kept_is_nothing() -> None:
    assert arm_kept.kept_members("") == {}
    assert arm_kept.keep("", {}, ()) == ""
