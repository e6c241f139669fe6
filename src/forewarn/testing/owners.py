"""The owners' API without sockets: a world, and whoever calls it, in one handful."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from forewarn.core.journal import Role
from forewarn.core.rights import Principal
from forewarn.core.scopes import Scope
from forewarn.testing.control_planes import SUBSCRIPTION, arm_parts
from forewarn.testing.worlds import World
from forewarn.web import arm, calls, routes
from forewarn.web.calls import Answer, Call
from forewarn.web.routes import Table

BASE: Final = "https://localhost:8170"
VERSION: Final = "2026-04-01"
ADDRESS: Final = "127.0.0.7"
ADA: Final = Principal(id="1", name="ada", role=Role.OPERATOR)
OLGA: Final = Principal(id="2", name="olga", role=Role.OWNER, groups=("rg1", "rg9"))


def compute(group: str) -> str:
    """The path of a group's resources."""
    provider = "providers/Microsoft.Compute"
    return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/{provider}"


class Owners:
    """A service, and somebody who calls it."""

    def __init__(self, *scopes: Scope, world: World | None = None) -> None:
        self.world = world or World(*scopes)
        self.principal = OLGA
        self.parts = arm_parts(self.world)
        self.table = Table(arm.routes(self.parts))

    def answer(self, call: Call) -> Answer:
        """As `web.app` does it, without sockets."""
        found = self.table.find(call.path)
        if found is None:
            return routes.no_path(call)
        route = found.route(call.method)
        if route is None:
            return routes.no_method(call, found)
        call = replace(routes.addressed(call, found), principal=self.principal)
        reason = routes.why_not(route, call)
        return routes.answer(route, call) if reason is None else calls.no_right(reason)

    def ask(
        self, method: str, target: str, body: Mapping[str, object] | bytes | None = None
    ) -> Answer:
        """Ask for a path, or for a whole address; with an api-version, unless one is given."""
        place = urlsplit(target)
        query = place.query if "api-version" in place.query else f"api-version={VERSION}"
        if place.query and "api-version" not in place.query:
            query = f"{place.query}&{query}"
        sent = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        return self.answer(
            Call(
                method=method,
                path=place.path,
                query=query,
                body=sent,
                address=ADDRESS,
                base=BASE,
            )
        )

    def get(self, target: str) -> Any:  # noqa: ANN401 - JSON is anything
        """What is there, which must be something."""
        answer = self.ask("GET", target)
        assert answer.status == 200, answer
        return json.loads(answer.body)

    def put(self, target: str, body: Mapping[str, object], status: int = 200) -> Any:  # noqa: ANN401
        """What is there once this was sent."""
        answer = self.ask("PUT", target, body)
        assert answer.status == status, answer
        return json.loads(answer.body)

    def patch(self, target: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401 - JSON is anything
        """What is there once this was changed."""
        answer = self.ask("PATCH", target, body)
        assert answer.status == 200, answer
        return json.loads(answer.body)

    def begin(
        self, method: str, target: str, body: Mapping[str, object] | None = None
    ) -> dict[str, str]:
        """Ask for something that takes its time; returns the headers that tell of its progress."""
        answer = self.ask(method, target, body)
        assert answer.status == 202, answer
        assert answer.body == b""
        headers = dict(answer.headers)
        assert set(headers) == {"Azure-AsyncOperation", "Location", "Retry-After"}
        assert headers["Retry-After"] == "1"
        return headers

    def status(self, headers: Mapping[str, str]) -> str:
        """How far an operation is."""
        return str(self.get(headers["Azure-AsyncOperation"])["status"])

    def finish(self, headers: Mapping[str, str]) -> str:
        """How an operation ended, at most a day later."""
        for _ in range(24 * 6):
            status = self.status(headers)
            if status != "InProgress":
                return status
            self.world.advance(timedelta(minutes=10))
        raise AssertionError("an operation went on for a day")

    def refused(
        self, method: str, target: str, body: Mapping[str, object] | bytes | None = None
    ) -> tuple[int, str, str]:
        """The status, code and words of a refusal."""
        answer = self.ask(method, target, body)
        assert answer.status >= 400, answer
        error = json.loads(answer.body)["error"]
        return answer.status, error["code"], error["message"]
