"""Discovery and login: request in, reply out."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from forewarn.core.rights import Right
from forewarn.errors import Unavailable
from forewarn.service import suspicion
from forewarn.testing.worlds import World
from forewarn.web import login, routes
from forewarn.web.calls import Answer, Call
from forewarn.web.routes import Table
from forewarn.wire.oauth import FORM_TYPE
from forewarn.wiring.directories import Credentials, DataDirectory
from forewarn.wiring.trust import Doorkeeper, TrustSettings, keep_door

BASE = "https://localhost:8443"


@dataclass
class House:
    world: World
    door: Doorkeeper
    table: Table
    first: Credentials

    def ask(
        self,
        method: str,
        path: str,
        query: str = "",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        found = self.table.find(path)
        assert found is not None, path
        route = found.route(method)
        assert route is not None, method
        assert route.right is Right.ANYBODY
        call = Call(
            method=method,
            path=path,
            query=query,
            body=body,
            base=BASE,
            address="10.0.0.1",
            headers=headers or {},
        )
        return routes.answer(route, routes.addressed(call, found))

    def log_in(self, secret: str, path: str = "/adfs/oauth2/v2.0/token") -> Answer:
        body = (
            f"grant_type=client_credentials&client_id={self.first.client_id}&client_secret={secret}"
        )
        return self.ask("POST", path, "", body.encode(), {"content-type": FORM_TYPE})


@pytest.fixture
def house(tmp_path: Path) -> House:
    world = World()
    data = DataDirectory(tmp_path)
    door = keep_door(world.parts, data, TrustSettings(), "none")
    first = data.credentials()
    assert first is not None
    return House(world, door, Table(login.routes(door.logins)), first)


def told(answer: Answer) -> Any:  # noqa: ANN401 - JSON is anything
    return json.loads(answer.body)


def test_the_cloud_describes_itself_by_the_address_it_was_asked_at(house: House) -> None:
    new = told(house.ask("GET", "/metadata/endpoints", "api-version=2022-09-01"))
    old = told(house.ask("GET", "//metadata/endpoints", "api-version=2019-05-01"))

    assert new["authentication"]["loginEndpoint"] == f"{BASE}/adfs"
    assert old == [new]
    assert told(house.ask("GET", "/metadata/endpoints")) == new


@pytest.mark.parametrize(
    ("path", "tenant"),
    [
        ("/adfs/.well-known/openid-configuration", "adfs"),
        ("/common/v2.0/.well-known/openid-configuration", "common"),
        ("/adfs/v2.0/.well-known/openid-configuration", "adfs"),
        ("/adfs/contoso/v2.0/.well-known/openid-configuration", "adfs"),
    ],
)
def test_every_tenant_has_its_endpoints(path: str, tenant: str, house: House) -> None:
    found = told(house.ask("GET", path))

    assert found["token_endpoint"] == f"{BASE}/{tenant}/oauth2/v2.0/token"
    keys = house.ask("GET", found["jwks_uri"].removeprefix(BASE))
    assert told(keys) == {"keys": [dict(house.door.tokens.public_keys()[0])]}


@pytest.mark.parametrize("path", ["/adfs/oauth2/v2.0/token", "/any-tenant/oauth2/token"])
def test_the_right_secret_is_given_a_token(path: str, house: House) -> None:
    answer = house.log_in(house.first.client_secret, path)

    assert answer.status == 200
    found = told(answer)
    assert (found["token_type"], found["expires_in"]) == ("Bearer", 3600)
    assert found["resource"] == BASE
    principal = house.door.logins.principal(found["access_token"])
    assert principal is not None
    assert principal.id == house.first.client_id


def test_a_header_will_do_as_well(house: House) -> None:
    pair = f"{house.first.client_id}:{house.first.client_secret}".encode()
    headers = {
        "content-type": FORM_TYPE,
        "authorization": f"Basic {base64.b64encode(pair).decode()}",
    }

    answer = house.ask(
        "POST", "/adfs/oauth2/token", "", b"grant_type=client_credentials&resource=urn%3Ax", headers
    )

    assert (answer.status, told(answer)["resource"]) == (200, "urn:x")


def test_a_wrong_secret_is_told_so_and_then_to_slow_down(house: House) -> None:
    for _ in range(suspicion.TRIES_OF_ONE):
        answer = house.log_in("wr0ng")
        assert (answer.status, told(answer)["error"]) == (401, "invalid_client")
        assert ("WWW-Authenticate", 'Basic realm="forewarn"') in answer.headers
        assert "wr0ng" not in answer.body.decode()

    answer = house.log_in(house.first.client_secret)

    assert (answer.status, told(answer)["error"]) == (429, "slow_down")
    assert ("Retry-After", "1") in answer.headers


def test_what_is_not_understood_is_told_in_the_words_of_the_standard(house: House) -> None:
    answer = house.ask("POST", "/adfs/oauth2/token", "", b"{}", {"content-type": "text/json"})

    assert (answer.status, told(answer)["error"]) == (400, "invalid_request")


def test_where_nobody_can_log_in_now_it_is_told_when(house: House) -> None:
    found = house.table.find("/adfs/oauth2/token")
    assert found is not None

    answer = found.routes["POST"].refused(Unavailable("too many"))

    assert (answer.status, told(answer)["error"]) == (503, "temporarily_unavailable")
    assert ("Retry-After", "1") in answer.headers
