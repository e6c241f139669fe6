"""The operators' API, held to its own document by schemathesis, over a socket and a real store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi import checks as promised

from forewarn.clocks import SimulatedClock
from forewarn.core.events import EventType
from forewarn.stores.sqlite import SqliteStore
from forewarn.testing.control_planes import ControlPlane
from forewarn.testing.sample_fleet import ALL
from forewarn.testing.worlds import NOON, World
from forewarn.web import openapi

AnyCase = Case[Any]
AnyOperation = APIOperation[Any, Any, Any, Any]

EXAMPLES: Final = 12
STREAM: Final = "/fabric/v1/changes"
TOKEN: Final = {"Authorization": "Bearer ada"}
CHECKS: Final[list[CheckFunction]] = [
    not_a_server_error,
    promised.status_code_conformance,
    promised.content_type_conformance,
    promised.response_headers_conformance,
    promised.response_schema_conformance,
    promised.negative_data_rejection,
    promised.unsupported_method,
    promised.allow_header_conformance,
]
# The same examples every time, and quick ones: what fails is short enough as it is.
TRYING: Final = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    clock = SimulatedClock(NOON)
    file = tmp_path_factory.mktemp("store") / "forewarn.db"
    with closing(SqliteStore(file, clock)) as store:
        world = World(*ALL, clock=clock, store=store)
        with ControlPlane(world) as plane:
            for name in ("operator", "shop"):
                asked = {"name": name, "role": "operator"}
                assert plane.ask("POST", "/fabric/v1/principals", asked).status == 201
            yield plane


@pytest.fixture(scope="module")
def schema(plane: ControlPlane) -> BaseSchema:
    return schemathesis.openapi.from_url(f"{plane.base}{openapi.PATH}")


def operations(schema: BaseSchema) -> list[AnyOperation]:
    found = list(schema.get_all_operations())
    assert found
    return [one.ok() for one in found if isinstance(one, Ok)]


def real(plane: ControlPlane, case: AnyCase, data: st.DataObject) -> None:
    """Put the names of what there is into a case: chance alone would never hit upon one."""
    world = plane.world
    if not any(placed.event.is_open for placed in world.desk.events()):
        world.announce(EventType.REBOOT, "web-0")
    ids = [placed.event.id for placed in world.desk.events()]
    names: dict[str, st.SearchStrategy[Any]] = {
        "event": st.sampled_from(ids),
        "host": st.sampled_from(["host-0", "HOST-1"]),
        "scope": st.sampled_from(["rg1/web", "batch"]),
        "group": st.sampled_from(["rg1", "RG2"]),
        "machine": st.sampled_from(["web-0", "rg2/batch/batch_0"]),
        "machines": st.just(["web-1"]),
        "hosts": st.just(["host-2"]),
        "after": st.sampled_from(["", "1", str(world.store.head())]),
        "principal": st.sampled_from(["operator", "shop"]),
        "role": st.sampled_from(["reader", "owner", "operator"]),
        "groups": st.sampled_from([[], ["rg1"]]),
        "webhook": st.sampled_from([plane.webhook("rg1"), "none"]),
        "letter": st.sampled_from(["1", "2"]),
        "url": st.just("https://hooks.example.org/hook"),
        "path": st.just("/tmp/of-no-service.backup"),
    }
    for place in (case.path_parameters, case.query, case.body):
        if isinstance(place, dict):
            place.update({name: data.draw(names[name]) for name in place if name in names})


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_every_answer_is_one_that_the_document_tells_of(
    plane: ControlPlane, schema: BaseSchema, mode: GenerationMode
) -> None:
    """No 5xx, no undocumented answer, and each as its schema says, whatever is asked."""
    answered: set[int] = set()
    with requests.Session() as session:
        for operation in operations(schema.exclude(path=STREAM)):

            @TRYING
            @given(st.data(), operation.as_strategy(mode))
            def try_it(data: st.DataObject, case: AnyCase) -> None:
                if mode is GenerationMode.POSITIVE and data.draw(st.booleans()):
                    real(plane, case, data)
                # Whoever may wait does, and there is no news.
                if isinstance(case.query.get("wait"), int):
                    case.query["wait"] = min(case.query["wait"], 0)
                answer = case.call_and_validate(
                    base_url=plane.base, session=session, headers=TOKEN, checks=CHECKS
                )
                answered.add(answer.status_code)
                plane.world.settle()

            try_it()
    expected = {200, 201, 400, 404, 409} if mode is GenerationMode.POSITIVE else {400}
    assert expected <= answered, "the interesting answers were given"


def test_the_stream_gives_only_answers_that_the_document_tells_of(
    plane: ControlPlane, schema: BaseSchema
) -> None:
    """Apart, as it does not end by itself."""
    (operation,) = operations(schema.include(path=STREAM))
    told = set(plane.ask("GET", openapi.PATH).json["paths"][STREAM]["get"]["responses"])
    answered: set[str] = set()
    with requests.Session() as session:

        @TRYING
        @given(st.data(), operation.as_strategy())
        def try_it(data: st.DataObject, case: AnyCase) -> None:
            if data.draw(st.booleans()):
                real(plane, case, data)
            asked = case.as_transport_kwargs(base_url=plane.base, headers=TOKEN)
            with session.request(**asked, stream=True, timeout=10) as answer:
                answered.add(str(answer.status_code))

        try_it()

    assert {"200", "400"} <= answered <= told


def test_without_a_token_nothing_but_the_document_is_told(
    plane: ControlPlane, schema: BaseSchema
) -> None:
    for operation in operations(schema):
        path = re.sub(r"\{\w+\}", "x", operation.path)

        answer = requests.request(operation.method, f"{plane.base}{path}", timeout=10)

        assert answer.status_code == (200 if path == openapi.PATH else 401)
