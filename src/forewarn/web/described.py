"""What a route takes and gives, as data beside it: the operators' document is made of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Something that may be said beside the path; it never must."""

    name: str
    about: str
    # A type that msgspec knows, with its limits.
    kind: object = str


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What can be asked by one route, and every answer to it that is not the same everywhere."""

    # What programs call it: `listEvents`.
    name: str
    summary: str
    # The form of a body; None where there is none.
    asks: type | None = None
    # What comes back when it is done: a form in JSON, or another kind of content by its name.
    answers: Mapping[HTTPStatus, type | str]
    query: tuple[Parameter, ...] = ()
    headers: tuple[Parameter, ...] = ()
    # The ways to say no that do not follow from the route itself.
    refusals: frozenset[HTTPStatus] = field(default_factory=frozenset)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of what a query may have."""
        return tuple(parameter.name for parameter in self.query)
