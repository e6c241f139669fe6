"""The operators' API as an OpenAPI 3.1 document, made of the routes and of nothing else.

Whatever is under /fabric/v1 is in it, whichever face answers: each route says what it takes and
gives in its `told`. How it may be refused follows from the route itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from forewarn import __version__
from forewarn.core.rights import Right
from forewarn.web import routes
from forewarn.web.calls import Answer
from forewarn.web.described import Described, Parameter
from forewarn.web.routes import Route
from forewarn.wire.control_forms import ErrorForm

PREFIX: Final = "/fabric/v1/"
PATH: Final = "/fabric/v1/openapi.json"
JSON: Final = "application/json"

_SCHEMAS: Final = "#/components/schemas/{name}"
_NAMES: Final = re.compile(r"\{(\w+)\}")

# What a part of a path stands for.
_ABOUT: Final[Mapping[str, str]] = {
    "event": "An event's id, with or without braces, in any case.",
    "host": "A host's name.",
    routes.GROUP: "A resource group.",
    "letter": "The number of a dead letter.",
    "principal": "A principal's id, or its name.",
    "webhook": "A webhook's id.",
}

_REFUSALS: Final[Mapping[HTTPStatus, str]] = {
    HTTPStatus.BAD_REQUEST: "It cannot be understood.",
    HTTPStatus.UNAUTHORIZED: "No valid token was shown.",
    HTTPStatus.FORBIDDEN: "The caller has no right to this.",
    HTTPStatus.NOT_FOUND: "Nothing is called that.",
    HTTPStatus.REQUEST_TIMEOUT: "The body did not arrive in time.",
    HTTPStatus.CONFLICT: "It was understood and is not allowed.",
    HTTPStatus.GONE: "The journal does not reach back to that cursor.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.TOO_MANY_REQUESTS: "Too much at one time.",
    HTTPStatus.SERVICE_UNAVAILABLE: "Try again in a moment.",
}

_TOLD: Final = Described(
    name="showDocument",
    summary="Show this document.",
    answers={HTTPStatus.OK: dict},
)


def with_document(faces: Iterable[Route]) -> tuple[Route, ...]:
    """These routes, and the one that serves the document of them all."""
    served: list[bytes] = []
    route = Route(
        method="GET",
        path=PATH,
        # Nothing in it is secret, and tools read it before they have a token.
        right=Right.ANYBODY,
        handle=lambda _call: Answer(status=HTTPStatus.OK, body=served[0]),
        told=_TOLD,
    )
    everything = (*faces, route)
    served.append(msgspec.json.encode(document(everything)))
    return everything


def document(everything: Iterable[Route]) -> dict[str, Any]:
    """The document of all routes under /fabric/v1."""
    described = [route for route in everything if route.path.startswith(PREFIX)]
    kinds = [kind for route in described for kind in _kinds(_told(route))]
    found, schemas = msgspec.json.schema_components(kinds, ref_template=_SCHEMAS)
    schema_of = {id(kind): schema for kind, schema in zip(kinds, found, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for route in described:
        operation = _Operation(route, _told(route), schema_of)
        paths.setdefault(route.path, {})[route.method.lower()] = operation.spelled()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "forewarn: the operators' API",
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _told(route: Route) -> Described:
    assert route.told is not None, (
        f"{route.method} {route.path} says nothing of itself: see Route.told"
    )
    return route.told


def _kinds(told: Described) -> list[object]:
    forms: list[object] = [kind for kind in told.answers.values() if not isinstance(kind, str)]
    if told.asks is not None:
        forms.append(told.asks)
    return [ErrorForm, *forms, *(one.kind for one in (*told.query, *told.headers))]


class _Operation:
    """One route, on its way into the document."""

    def __init__(self, route: Route, told: Described, schema_of: Mapping[int, object]) -> None:
        self._route = route
        self._told = told
        self._schema_of = schema_of

    def spelled(self) -> dict[str, Any]:
        right = self._route.right
        takes = "Anybody may." if right is Right.ANYBODY else f"Takes the right to {right.value}."
        operation: dict[str, Any] = {
            "operationId": self._told.name,
            "summary": self._told.summary,
            "description": takes,
            "tags": [self._route.path.removeprefix(PREFIX).split("/")[0]],
            "parameters": self._parameters(),
            "responses": self._responses(),
            "security": [] if right is Right.ANYBODY else [{"token": []}],
        }
        if self._told.asks is not None:
            operation["requestBody"] = {
                "required": any(
                    member.required for member in msgspec.structs.fields(self._told.asks)
                ),
                "content": self._content(self._told.asks),
            }
        return operation

    def _parameters(self) -> list[dict[str, Any]]:
        in_path = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": _ABOUT.get(name, f"The {name}."),
                "schema": {"type": "string", "minLength": 1},
            }
            for name in _NAMES.findall(self._route.path)
        ]
        in_query = [self._parameter(parameter, "query") for parameter in self._told.query]
        in_header = [self._parameter(parameter, "header") for parameter in self._told.headers]
        return in_path + in_query + in_header

    def _parameter(self, parameter: Parameter, place: str) -> dict[str, Any]:
        return {
            "name": parameter.name,
            "in": place,
            "description": parameter.about,
            "schema": self._schema_of[id(parameter.kind)],
        }

    def _responses(self) -> dict[str, Any]:
        done = {
            str(int(status)): {"description": status.phrase, "content": self._content(kind)}
            for status, kind in self._told.answers.items()
        }
        refused = {
            str(int(status)): {
                "description": _REFUSALS[status],
                "content": self._content(ErrorForm),
            }
            for status in sorted(self._refusals())
        }
        return done | refused

    def _content(self, kind: type | str) -> dict[str, Any]:
        if isinstance(kind, str):
            return {kind: {"schema": {"type": "string"}}}
        return {JSON: {"schema": self._schema_of[id(kind)]}}

    def _refusals(self) -> frozenset[HTTPStatus]:
        found = self._told.refusals | {HTTPStatus.BAD_REQUEST, HTTPStatus.SERVICE_UNAVAILABLE}
        if self._route.right is not Right.ANYBODY:
            found |= {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
        if _NAMES.search(self._route.path):
            found |= {HTTPStatus.NOT_FOUND}
        if self._route.method != "GET":
            found |= {HTTPStatus.CONFLICT}
        if self._told.asks is not None:
            found |= {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE}
        return found
