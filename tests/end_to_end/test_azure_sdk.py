"""What Azure's own clients do besides the stories of tests/azure_clients: pages, lists, ends.

The clock is simulated and runs fast, so that nobody waits for a notice. Over plain HTTP, which the
SDK allows only with a key instead of a credential.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from azure.core.credentials import AccessToken, AzureKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.core.pipeline.policies import AzureKeyCredentialPolicy
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.maintenance import MaintenanceManagementClient

from forewarn.testing.authorities import Tokened
from forewarn.testing.control_planes import SUBSCRIPTION
from forewarn.testing.owners import Owners
from forewarn.testing.worlds import WEB, World
from forewarn.web.app import ControlServer, build_app

pytestmark = pytest.mark.end_to_end

TOKEN = "s3cret"
SECONDS_MAX = 10


class NoCredential:
    """Never asked: a key is shown instead."""

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:  # noqa: ANN401 - not ours
        raise AssertionError("the key is the credential")


@dataclass
class Azure:
    """The clients, and the world at the other end."""

    world: World
    compute: ComputeManagementClient
    maintenance: MaintenanceManagementClient


class Hands:
    """Turn the clock, in a thread of their own, until they are stopped."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._turn)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(SECONDS_MAX)

    def _turn(self) -> None:
        while not self._stop.wait(0.05):
            self._world.advance(timedelta(seconds=10))


def serve(owners: Owners, stack: ExitStack) -> str:
    """Serve the owners' API on a socket; returns its address."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen()
    server = ControlServer(build_app(owners.table, Tokened(TOKEN)), bound)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    stack.callback(thread.join, SECONDS_MAX)
    stack.callback(server.stop)
    return f"http://127.0.0.1:{bound.getsockname()[1]}"


def key() -> Any:  # noqa: ANN401 - not ours
    return AzureKeyCredentialPolicy(AzureKeyCredential(TOKEN), "Authorization", prefix="Bearer")


@pytest.fixture
def azure() -> Iterator[Azure]:
    world = World(WEB, turn=threading.RLock())
    with ExitStack() as stack:
        base = serve(Owners(world=world), stack)
        clients: list[Any] = [
            stack.enter_context(
                closing(
                    make(
                        NoCredential(),
                        SUBSCRIPTION,
                        base_url=base,
                        authentication_policy=key(),
                        retry_total=0,
                    )
                )
            )
            for make in (_compute, _maintenance)
        ]
        hands = Hands(world)
        stack.callback(hands.stop)
        hands.start()
        yield Azure(world, *clients)


def _compute(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - not ours
    return ComputeManagementClient(*args, **options)


def _maintenance(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - not ours
    return MaintenanceManagementClient(*args, **options)


def refused(work: Callable[[], object]) -> tuple[int | None, str | None]:
    """The status and code of a refusal, as the SDK tells them."""
    with pytest.raises(HttpResponseError) as caught:
        work()
    error = caught.value.error
    return caught.value.status_code, None if error is None else error.code


def test_an_operation_that_was_called_off_is_raised(azure: Azure) -> None:
    restart = azure.compute.virtual_machines.begin_restart("rg1", "web-0")
    (placed,) = azure.world.desk.events()
    azure.world.desk.cancel(placed.event.id, azure.world.journal()[0].actor)

    with pytest.raises(HttpResponseError):
        restart.result(SECONDS_MAX)

    assert restart.status() == "Canceled"


def test_events_are_acknowledged_from_outside(azure: Azure) -> None:
    """keeps N9 and N10."""
    events: Any = azure.maintenance.scheduled_events
    first, second = (
        azure.compute.virtual_machines.begin_restart("rg1", f"web-{number}") for number in (0, 1)
    )
    ids = [placed.event.id for placed in azure.world.desk.events()]

    assert events.acknowledge("rg1", "virtualMachines", "web-0", ids[0]).value is not None
    first.result(SECONDS_MAX)
    assert events.acknowledge_list("rg1", "availabilitySets", "web", {"value": ids}) is not None
    second.result(SECONDS_MAX)

    nobodys = "00000000-0000-0000-0000-000000000000"
    unknown = lambda: events.acknowledge("rg1", "virtualMachines", "web-0", nobodys)  # noqa: E731
    assert refused(unknown) == (404, "ScheduledEventNotFound")


def test_long_lists_are_followed_page_by_page(azure: Azure) -> None:
    sets: Any = azure.compute.virtual_machine_scale_sets
    body = {"location": "local", "sku": {"name": "Standard_D2", "capacity": 101}}
    sets.begin_create_or_update("rg1", "many", body).result(SECONDS_MAX)

    instances = azure.compute.virtual_machine_scale_set_vms.list("rg1", "many")

    assert [one.instance_id for one in instances] == [str(number) for number in range(101)]
