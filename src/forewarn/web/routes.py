"""Which path leads to which handler, and what right it takes.

The table is data: whatever answers is in it, with its right, and nothing else is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from forewarn.core import rights
from forewarn.core.rights import Right
from forewarn.errors import ForewarnError
from forewarn.web import calls
from forewarn.web.calls import Answer, Call
from forewarn.web.described import Described

Handler = Callable[[Call], Answer]
# What goes wrong on purpose, as an answer.
Refusal = Callable[[ForewarnError], Answer]

# The part of a path by which a resource group is named.
GROUP: Final = "group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One thing that can be asked. A part of the path in braces matches anything, by that name."""

    method: str
    path: str
    right: Right
    handle: Handler
    # How this face of the service says no.
    refused: Refusal = calls.refused
    # Answered even while every thread is busy.
    at_once: bool = False
    # What it takes and gives; everything under /fabric/v1 says so.
    told: Described | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What a path leads to, by method, and what it names."""

    routes: Mapping[str, Route]
    names: Mapping[str, str]

    def route(self, method: str) -> Route | None:
        return self.routes.get("GET" if method == "HEAD" else method)


class Table:
    """All routes. Paths ignore case and doubled slashes, as Azure's do."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._paths: dict[tuple[str, ...], dict[str, Route]] = {}
        for route in self.routes:
            by_method = self._paths.setdefault(_pattern(route.path), {})
            assert route.method not in by_method, f"two routes for {route.method} {route.path}"
            by_method[route.method] = route
        self._by_length: dict[int, list[tuple[str, ...]]] = {}
        # Words before braces: what is spelled out is meant.
        for pattern in sorted(self._paths, key=lambda parts: [_is_open(part) for part in parts]):
            self._by_length.setdefault(len(pattern), []).append(pattern)

    def find(self, path: str) -> Found | None:
        """What is at a path."""
        parts = [part for part in path.split("/") if part]
        for pattern in self._by_length.get(len(parts), ()):
            names = _matched(pattern, parts)
            if names is not None:
                return Found(self._paths[pattern], names)
        return None


def no_path(call: Call) -> Answer:
    """The answer where nothing is."""
    return calls.error(HTTPStatus.NOT_FOUND, "Unknown", f"nothing is at {call.path}")


def no_method(call: Call, found: Found) -> Answer:
    """The answer to a method that a path does not have."""
    allowed = ", ".join(found.routes)
    return calls.error(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "Refused",
        f"{call.path} takes {allowed}, not {call.method}",
        ("Allow", allowed),
    )


def why_not(route: Route, call: Call) -> str | None:
    """Why whoever calls may not ask this; None for whoever may."""
    if route.right is Right.ANYBODY:
        return None
    principal = call.principal
    assert principal is not None, "whoever shows no valid token does not come so far"
    if not rights.may(principal, route.right):
        role, right = principal.role.value, route.right.value
        return f"{principal.name} has the role {role}: this takes the right to {right}"
    group = call.names.get(GROUP)
    if group is not None and not rights.sees(principal, group):
        return f"{principal.name} has no right to the resource group {group}"
    return None


def answer(route: Route, call: Call) -> Answer:
    """Answer a call whose caller was admitted. What is not a ForewarnError is a bug."""
    try:
        if route.told is not None:
            call = replace(call, asked=calls.parameters(call, *route.told.parameters))
        return route.handle(call)
    except ForewarnError as refusal:
        return route.refused(refusal)


def addressed(call: Call, found: Found) -> Call:
    """The call, with what its path names."""
    return replace(call, names=found.names)


def _pattern(path: str) -> tuple[str, ...]:
    return tuple(part if _is_open(part) else part.lower() for part in path.split("/") if part)


def _is_open(part: str) -> bool:
    return part.startswith("{")


def _matched(pattern: tuple[str, ...], parts: list[str]) -> dict[str, str] | None:
    names: dict[str, str] = {}
    for wanted, part in zip(pattern, parts, strict=True):
        if _is_open(wanted):
            names[wanted[1:-1]] = part
        elif wanted != part.lower():
            return None
    return names
