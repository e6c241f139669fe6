"""The operators' document: made of the routes, so that it cannot be out of date."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import pytest

from forewarn import __version__
from forewarn.core.rights import Right
from forewarn.testing.control_planes import ControlPlane, Extras, faces
from forewarn.testing.worlds import World
from forewarn.web import openapi
from forewarn.web.calls import Answer
from forewarn.web.described import Described
from forewarn.web.routes import Route

ROUTES = faces(World(), Extras()).table().routes
OPERATORS = [route for route in ROUTES if route.path.startswith(openapi.PREFIX)]
DOCUMENT = openapi.document(ROUTES)


def operation(method: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][path][method.lower()]
    return found


@pytest.mark.parametrize("route", OPERATORS, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_of_the_operators_says_what_it_takes_and_gives(route: Route) -> None:
    assert route.told is not None, "write a Described beside it, as web/hosts.py does"
    told = operation(route.method, route.path)

    assert told["operationId"] == route.told.name
    assert told["security"] == ([] if route.right is Right.ANYBODY else [{"token": []}])
    assert ("requestBody" in told) == (route.method in {"POST", "PATCH"})


def test_no_two_operations_have_one_name() -> None:
    names = [route.told.name for route in OPERATORS if route.told is not None]

    assert len(names) == len(set(names))


def test_nothing_else_is_in_the_document() -> None:
    assert set(DOCUMENT["paths"]) == {route.path for route in OPERATORS}
    assert DOCUMENT["info"]["version"] == __version__


def test_how_a_route_says_no_follows_from_the_route() -> None:
    postpone = operation("POST", "/fabric/v1/events/{event}/postpone")

    told = set(postpone["responses"])
    assert told == {"200", "400", "401", "403", "404", "408", "409", "413", "503"}
    assert postpone["description"] == "Takes the right to own."
    assert postpone["requestBody"]["required"] is False
    assert set(operation("GET", openapi.PATH)["responses"]) == {"200", "400", "503"}


def test_parameters_have_their_limits() -> None:
    told = {one["name"]: one for one in operation("GET", "/fabric/v1/journal")["parameters"]}

    assert told["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 1000}
    assert told["since"]["schema"] == {"type": "string", "format": "date-time"}
    (event,) = operation("GET", "/fabric/v1/events/{event}")["parameters"]
    assert (event["name"], event["in"], event["required"]) == ("event", "path", True)


def test_a_route_that_says_nothing_of_itself_is_a_mistake() -> None:
    silent = Route(
        method="GET",
        path="/fabric/v1/silent",
        right=Right.READ,
        handle=lambda _call: Answer(status=HTTPStatus.OK),
    )

    with pytest.raises(AssertionError, match="GET /fabric/v1/silent says nothing of itself"):
        openapi.with_document([silent])


def test_another_face_is_in_the_document_as_soon_as_it_is_in_the_table() -> None:
    told = Described(name="nap", summary="Sleep a little.", answers={HTTPStatus.OK: str})
    route = Route(
        method="GET",
        path="/fabric/v1/naps/{nap}",
        right=Right.READ,
        handle=lambda _call: Answer(status=HTTPStatus.OK),
        told=told,
    )

    made = openapi.document([route])["paths"][route.path]["get"]

    assert (made["operationId"], made["tags"]) == ("nap", ["naps"])
    assert made["parameters"][0]["description"] == "The nap."


def test_the_document_is_told_to_anybody() -> None:
    with ControlPlane(World()) as plane:
        reply = plane.ask("GET", openapi.PATH, token="")

    assert (reply.status, reply.json["openapi"]) == (200, "3.1.0")
    assert reply.json == json.loads(json.dumps(DOCUMENT))
