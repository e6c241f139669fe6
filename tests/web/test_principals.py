"""Who may call, as operators change it: request in, reply out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forewarn.core.journal import Role
from forewarn.core.rights import Principal, Right
from forewarn.service.logins import Granted
from forewarn.testing.worlds import World
from forewarn.web import principals, routes
from forewarn.web.calls import Call
from forewarn.web.principals import ROOT
from forewarn.web.routes import Table
from forewarn.wiring.directories import DataDirectory
from forewarn.wiring.trust import Doorkeeper, TrustSettings, keep_door

ANN = Principal(id="ann", name="ann", role=Role.OPERATOR)

Ask = Callable[..., tuple[int, Any]]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def door(world: World, tmp_path: Path) -> Doorkeeper:
    return keep_door(world.parts, DataDirectory(tmp_path), TrustSettings(), "none")


@pytest.fixture
def paused() -> list[str]:
    """Whose webhooks were paused."""
    return []


@pytest.fixture
def ask(door: Doorkeeper, paused: list[str]) -> Ask:
    table = Table(principals.routes(door.principals(lambda name, _actor: paused.append(name))))

    def asked(method: str, path: str, body: object = None, query: str = "") -> tuple[int, Any]:
        found = table.find(path)
        assert found is not None, path
        route = found.route(method)
        assert route is not None, method
        assert route.right is Right.OPERATE
        call = Call(
            method=method,
            path=path,
            query=query,
            body=b"" if body is None else json.dumps(body).encode(),
            principal=ANN,
            address="10.0.0.1",
        )
        answer = routes.answer(route, routes.addressed(call, found))
        return answer.status, json.loads(answer.body)

    return asked


def can_log_in(door: Doorkeeper, client_id: str, secret: str) -> bool:
    return isinstance(door.logins.login(client_id, secret, "10.0.0.9"), Granted)


def test_the_life_of_a_principal(
    ask: Ask, door: Doorkeeper, world: World, paused: list[str]
) -> None:
    body = {"name": "shop", "role": "owner", "groups": ["Shop"]}
    status, added = ask("POST", ROOT, body)
    principal = added["principal"]
    assert (status, principal["groups"], principal["revoked_at"]) == (201, ["shop"], None)
    assert can_log_in(door, principal["id"], added["client_secret"])
    assert ask("GET", f"{ROOT}/shop") == (200, principal)
    status, listed = ask("GET", ROOT)
    assert [one["name"] for one in listed["principals"]] == ["operator", "shop"]

    status, rotated = ask("POST", f"{ROOT}/shop/rotate", {"keep_old_seconds": 60})
    assert status == 200
    assert rotated["principal"]["old_secret_until"] is not None
    assert rotated["tenant_id"] == added["tenant_id"]
    assert can_log_in(door, principal["id"], added["client_secret"])
    assert can_log_in(door, principal["id"], rotated["client_secret"])

    status, revoked = ask("POST", f"{ROOT}/{principal['id']}/revoke")
    assert (status, revoked["revoked_at"]) == (200, "2030-01-01T12:00:00Z")
    assert not can_log_in(door, principal["id"], rotated["client_secret"])
    assert paused == ["shop"]
    named = [(entry.what.value, entry.actor.name) for entry in world.journal()]
    assert ("principal added", "ann") in named
    assert ("secret rotated", "ann") in named
    assert ("principal revoked", "ann") in named


@pytest.mark.parametrize(
    "body",
    [
        None,
        {"name": "x"},
        {"name": "x", "role": "king"},
        {"name": "x", "role": "owner"},
        {"name": "x y", "role": "reader"},
        {"name": "x", "role": "reader", "secret": "mine"},
    ],
)
def test_what_cannot_be_added_is_malformed(body: object, ask: Ask) -> None:
    status, told = ask("POST", ROOT, body)

    assert (status, told["error"]["code"]) == (400, "Malformed")


def test_refusals_have_their_status(ask: Ask) -> None:
    assert ask("GET", f"{ROOT}/nobody")[0] == 404
    assert ask("POST", f"{ROOT}/nobody/revoke")[0] == 404
    assert ask("POST", f"{ROOT}/operator/revoke")[0] == 409
    assert ask("POST", f"{ROOT}/operator/revoke", {"x": 1})[0] == 400
    assert ask("POST", f"{ROOT}/operator/rotate", {"keep_old_seconds": -1})[0] == 400
    assert ask("GET", ROOT, None, "x=1")[0] == 400
