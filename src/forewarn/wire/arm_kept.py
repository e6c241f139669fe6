"""What an owner sent, kept as JSON: merged, without what is secret or known better by us.

Members of objects are laid over each other, as merge patches are (RFC 7396): az sends partial
bodies, and whatever one leaves out stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from forewarn.errors import Malformed

KEPT_BYTES_MAX: Final = 32 * 1024
DEPTH_MAX: Final = 32

# Never kept, and so never shown, wherever they stand.
SECRETS: Final = frozenset(
    {
        "adminpassword",
        "customdata",
        "userdata",
        "protectedsettings",
        "secrets",
        "additionalunattendcontent",
    }
)

Path = tuple[str, ...]


def load_object(body: bytes) -> dict[str, object]:
    """The object that a body is; nothing stands for an empty one. Raises: Malformed."""
    if not body.strip():
        return {}
    try:
        found = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the body is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Malformed("the body is no JSON object")
    if not _is_shallow(found, DEPTH_MAX):
        raise Malformed(f"the body is nested more than {DEPTH_MAX} deep")
    return found


def kept_members(text: str) -> dict[str, object]:
    """What was kept."""
    if not text:
        return {}
    members = msgspec.json.decode(text)
    assert isinstance(members, dict), "only objects are kept"
    return members


def overlaid(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """An object with another laid over it, member by member; null takes a member away."""
    merged = dict(below)
    for name, value in above.items():
        known = merged.get(name)
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            merged[name] = overlaid(known if isinstance(known, dict) else {}, value)
        else:
            merged[name] = value
    return merged


def keep(kept: str, sent: Mapping[str, object], ours: Iterable[Path]) -> str:
    """What is to be kept, once this was sent too; never what is ours to say. Raises: Malformed."""
    known = kept_members(kept)
    if "tags" in sent:
        # Tags are replaced as a whole, or there were no way to take one away.
        known.pop("tags", None)
    merged = overlaid(known, _without_secrets(sent))
    for path in ours:
        _take_out(merged, path)
    text = msgspec.json.encode(merged).decode() if merged else ""
    if len(text.encode()) > KEPT_BYTES_MAX:
        raise Malformed(f"a resource has more than {KEPT_BYTES_MAX} bytes of members of its own")
    return text


def _is_shallow(value: object, depth: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_is_shallow(each, depth - 1) for each in inner)


def _without_secrets(members: Mapping[str, object]) -> dict[str, object]:
    return {name: _cleared(value) for name, value in members.items() if name.lower() not in SECRETS}


def _cleared(value: object) -> object:
    if isinstance(value, dict):
        return _without_secrets(value)
    if isinstance(value, list):
        return [_cleared(each) for each in value]
    return value


def _take_out(members: dict[str, object], path: Path) -> None:
    """Drop a member, and the objects around it that are empty then."""
    name, *rest = path
    inner = members.get(name)
    if rest and isinstance(inner, dict):
        _take_out(inner, tuple(rest))
    if not rest or inner == {}:
        members.pop(name, None)
