"""Webhooks over the API: call in, answer out; and whose webhooks somebody may see."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from forewarn.core.events import EventType
from forewarn.core.journal import Role
from forewarn.core.rights import Principal
from forewarn.service.deliveries import carry
from forewarn.testing.receivers import SimulatedPost, is_signed
from forewarn.testing.worlds import WEB, World
from forewarn.web import calls, routes, webhooks
from forewarn.web.calls import Answer, Call
from forewarn.web.routes import Table
from forewarn.wiring.carrying import Hooks, assemble_hooks

ADA = Principal(id="1", name="ada", role=Role.OPERATOR)
OLGA = Principal(id="2", name="olga", role=Role.OWNER, groups=("rg1", "rg3"))
OTTO = Principal(id="3", name="otto", role=Role.OWNER, groups=("rg2",))
ROSA = Principal(id="4", name="rosa", role=Role.READER)
URL = "https://hooks.example.org/hook"


@dataclass
class Service:
    """Webhooks, and the API to them."""

    post: SimulatedPost = field(default_factory=SimulatedPost)

    def __post_init__(self) -> None:
        self.world = World(WEB)
        self.hooks: Hooks = assemble_hooks(self.world.parts, self.post, "sub")
        self.table = Table(webhooks.routes(self.hooks.parts))

    def ask(self, who: Principal, method: str, target: str = "", /, **body: object) -> Answer:
        sent = json.dumps(body).encode() if body else b""
        call = Call(method=method, path=f"/fabric/v1/webhooks{target}", body=sent, address="::1")
        found = self.table.find(call.path)
        assert found is not None
        route = found.route(method)
        assert route is not None
        call = replace(routes.addressed(call, found), principal=who)
        reason = routes.why_not(route, call)
        return routes.answer(route, call) if reason is None else calls.no_right(reason)

    def done(self, who: Principal, method: str, target: str = "", /, **body: object) -> Any:  # noqa: ANN401 - JSON
        answer = self.ask(who, method, target, **body)
        assert answer.status in {200, 201}, answer.body
        return json.loads(answer.body)

    def add(self, who: Principal, name: str = "pager", /, **filters: object) -> Any:  # noqa: ANN401 - JSON
        return self.done(who, "POST", name=name, url=URL, **filters)

    def settle(self) -> None:
        for _ in range(50):
            self.hooks.courier.turn()
            while not self.hooks.sent.empty():
                delivery = self.hooks.sent.get()
                self.hooks.courier.came_back(delivery, carry(self.post, delivery))


@pytest.fixture
def service() -> Service:
    return Service()


def test_a_webhook_is_added_and_its_secret_shown_once(service: Service) -> None:
    """keeps N10"""
    added = service.add(ADA)

    assert added["secret"].startswith("whsec_")
    shown = service.done(ADA, "GET", f"/{added['webhook']['id']}")
    assert shown == added["webhook"]
    assert "secret" not in json.dumps(service.done(ADA, "GET"))
    service.world.announce(EventType.FREEZE, "web-0")
    service.settle()
    assert service.post.taken
    assert all(is_signed(received, added["secret"]) for received in service.post.taken)


def test_an_owner_has_webhooks_of_its_own_groups_only(service: Service) -> None:
    """keeps N10"""
    for filters in ({}, {"groups": ["rg2"]}, {"groups": ["rg1", "rg2"]}, {"scopes": ["rg2/web"]}):
        answer = service.ask(OLGA, "POST", name="x", url=URL, **filters)
        assert answer.status == 403, filters
    added = service.add(OLGA, groups=["RG1", "rg3"])

    assert added["webhook"]["created_by"] == "olga"
    service.add(OLGA, "one scope", scopes=["rg1/web"])


def test_nobody_sees_the_webhooks_of_others(service: Service) -> None:
    """keeps N10"""
    olgas = service.add(OLGA, groups=["rg1"])["webhook"]["id"]
    adas = service.add(ADA, "all")["webhook"]["id"]

    assert [one["id"] for one in service.done(OLGA, "GET")["webhooks"]] == [olgas]
    assert {one["id"] for one in service.done(ADA, "GET")["webhooks"]} == {olgas, adas}
    assert service.done(OTTO, "GET")["webhooks"] == []
    for who, hidden in ((OTTO, olgas), (OTTO, adas), (OLGA, adas)):
        for method, target in (
            *(("GET", ""), ("DELETE", ""), ("POST", "/test"), ("GET", "/dead-letters")),
            *(("POST", "/dead-letters/1/redeliver"), ("DELETE", "/dead-letters/1")),
        ):
            assert service.ask(who, method, f"/{hidden}{target}").status == 404
        assert service.ask(who, "PATCH", f"/{hidden}", paused=True).status == 404


def test_a_reader_has_no_webhooks(service: Service) -> None:
    assert service.ask(ROSA, "GET").status == 403
    assert service.ask(ROSA, "POST", name="x", url=URL).status == 403


def test_a_webhook_is_paused_resumed_and_removed(service: Service) -> None:
    one = f"/{service.add(ADA)['webhook']['id']}"

    assert service.done(ADA, "PATCH", one, paused=True)["paused"] is True
    assert service.done(ADA, "PATCH", one, paused=False)["paused"] is False
    service.done(ADA, "DELETE", one)

    assert service.ask(ADA, "GET", one).status == 404


def test_a_trial_says_whether_it_was_taken(service: Service) -> None:
    one = f"/{service.add(ADA)['webhook']['id']}"

    sent = service.done(ADA, "POST", f"{one}/test")
    assert service.post.taken[0].id == sent["id"]
    service.post.answers = lambda _target, _received: 500
    refused = service.ask(ADA, "POST", f"{one}/test")

    assert refused.status == 503
    assert b"answered 500" in refused.body


def test_dead_letters_are_listed_delivered_and_discarded(service: Service) -> None:
    """keeps N10"""
    one = f"/{service.add(ADA)['webhook']['id']}"
    service.post.answers = lambda _target, _received: 500
    service.world.announce(EventType.FREEZE, "web-0")
    service.settle()
    assert service.done(ADA, "GET", one)["trouble"] == "answered 500"
    for _ in range(20):
        service.world.clock.advance(timedelta(hours=3))
        service.settle()

    letters = service.done(ADA, "GET", f"{one}/dead-letters")["dead_letters"]
    assert [letter["number"] for letter in letters] == [1, 2]
    assert letters[0]["type"] == "forewarn.event.scheduled"
    assert service.done(ADA, "GET", one)["dead_letters"] == 2
    assert service.ask(ADA, "POST", f"{one}/dead-letters/1/redeliver").status == 503
    service.post.answers = lambda _target, _received: 200
    service.done(ADA, "POST", f"{one}/dead-letters/1/redeliver")
    service.done(ADA, "DELETE", f"{one}/dead-letters/2")

    assert service.done(ADA, "GET", f"{one}/dead-letters")["dead_letters"] == []
    for number in ("1", "x", "1" * 30):
        assert service.ask(ADA, "DELETE", f"{one}/dead-letters/{number}").status == 404


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"url": "https://evil.example/"}, 409),
        ({"url": "http://169.254.169.254/"}, 409),
        ({"url": "nonsense"}, 400),
        ({"form": "xml"}, 400),
        ({"scopes": ["web"]}, 400),
        ({"colour": "red"}, 400),
    ],
)
def test_what_cannot_be_is_refused(
    service: Service, change: dict[str, object], status: int
) -> None:
    asked: dict[str, object] = {"name": "pager", "url": URL, **change}

    assert service.ask(ADA, "POST", **asked).status == status


def test_the_counts_are_those_of_the_courier(service: Service) -> None:
    service.add(ADA)
    service.world.announce(EventType.FREEZE, "web-0")
    service.settle()

    assert service.hooks.counts.delivered == len(service.post.taken) == 2
    assert service.hooks.counts.webhooks == 1
