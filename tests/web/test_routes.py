"""The table of routes: what a path leads to, and whom it lets in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forewarn.core.journal import Role
from forewarn.core.rights import Principal, Right
from forewarn.web import routes
from forewarn.web.calls import Answer, Call
from forewarn.web.routes import Route, Table


def _done(_call: Call) -> Answer:
    return Answer(status=200)


def _route(path: str, right: Right = Right.READ, method: str = "GET") -> Route:
    return Route(method=method, path=path, right=right, handle=_done)


TABLE = Table(
    [
        _route("/groups/{group}/machines/{machine}"),
        _route("/groups/{group}/machines/all"),
        _route("/groups/{group}/machines/all", method="POST", right=Right.OWN),
        _route("/reload", Right.OPERATE, "POST"),
        _route("/open", Right.ANYBODY),
    ]
)
EVERYTHING = Principal(id="1", name="ada", role=Role.OPERATOR)
OWNER = Principal(id="2", name="olga", role=Role.OWNER, groups=("rg1",))
READER = Principal(id="3", name="rosa", role=Role.READER)
READER_OF_ONE = Principal(id="4", name="rita", role=Role.READER, groups=("rg1",))


@pytest.mark.parametrize("path", ["/Groups/RG1//machines/Web-0", "groups/RG1/MACHINES/Web-0/"])
def test_paths_ignore_case_and_doubled_slashes_and_names_keep_theirs(path: str) -> None:
    found = TABLE.find(path)

    assert found is not None
    assert found.names == {"group": "RG1", "machine": "Web-0"}


def test_a_word_is_meant_before_a_name() -> None:
    found = TABLE.find("/groups/rg1/machines/ALL")

    assert found is not None
    assert (found.names, set(found.routes)) == ({"group": "rg1"}, {"GET", "POST"})
    assert found.route("HEAD") is found.route("GET")


@pytest.mark.parametrize("path", ["", "/", "/groups", "/groups/rg1/machines", "/shut"])
def test_where_nothing_is_nothing_is_found(path: str) -> None:
    assert TABLE.find(path) is None


def test_two_routes_of_one_name_are_a_mistake() -> None:
    with pytest.raises(AssertionError, match="two routes"):
        Table([_route("/a/{x}"), _route("/A/{x}")])


@pytest.mark.parametrize(
    ("method", "path", "admitted"),
    [
        ("GET", "/open", {EVERYTHING, OWNER, READER, READER_OF_ONE, None}),
        ("GET", "/groups/RG1/machines/web-0", {EVERYTHING, OWNER, READER, READER_OF_ONE}),
        ("GET", "/groups/rg2/machines/web-0", {EVERYTHING, READER}),
        ("POST", "/groups/rg1/machines/all", {EVERYTHING, OWNER}),
        ("POST", "/groups/rg2/machines/all", {EVERYTHING}),
        ("POST", "/reload", {EVERYTHING}),
    ],
)
def test_a_right_is_one_within_groups(
    method: str, path: str, admitted: set[Principal | None]
) -> None:
    found = TABLE.find(path)
    assert found is not None
    route = found.route(method)
    assert route is not None
    call = routes.addressed(Call(method=method, path=path), found)

    everybody = (EVERYTHING, OWNER, READER, READER_OF_ONE, *([None] if None in admitted else []))
    let_in = {p for p in everybody if routes.why_not(route, replace(call, principal=p)) is None}

    assert let_in == admitted
