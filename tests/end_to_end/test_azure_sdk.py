"""Azure's own clients, unmodified, against the owners' API on a real socket.

The clock is simulated and runs fast, so that nobody waits for a notice. Over plain HTTP, which the
SDK allows only with a key instead of a credential.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from azure.core.credentials import AccessToken, AzureKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.policies import AzureKeyCredentialPolicy
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.maintenance import MaintenanceManagementClient

from forewarn.core.events import EventStatus, EventType
from forewarn.core.scopes import Enabling
from forewarn.testing.authorities import Tokened
from forewarn.testing.control_planes import SUBSCRIPTION
from forewarn.testing.owners import Owners
from forewarn.testing.sample_fleet import LONE, POOL, SPOT
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

    def approve_all(self) -> None:
        """Let a guest of the availability set approve whatever waits for it."""
        for placed in self.world.desk.events():
            event = placed.event
            if placed.ledger.scope.id == WEB.id and event.status is EventStatus.SCHEDULED:
                self.world.desk.approve_as_guest(self.world.caller("10.0.0.10"), [event.id])


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
    world = World(
        replace(WEB, user_operations_max=10),
        replace(LONE, resource_group="rg1"),
        replace(SPOT, resource_group="rg1"),
        replace(POOL, resource_group="rg1", enabling=Enabling.ALWAYS),
        turn=threading.RLock(),
    )
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


def test_a_restart_returns_when_the_guest_approved_and_the_machine_is_back(azure: Azure) -> None:
    """keeps S18 and N9: unmodified Azure clients restart and redeploy."""
    machines = azure.compute.virtual_machines
    restart = machines.begin_restart("rg1", "web-0")
    (placed,) = azure.world.desk.events()
    assert placed.event.type is EventType.REBOOT
    assert not restart.done()

    azure.approve_all()
    restart.result(SECONDS_MAX)

    assert restart.status() == "Succeeded"
    assert azure.world.event(placed.event.id).status is EventStatus.COMPLETED
    redeploy = machines.begin_redeploy("RG1", "WEB-0")
    azure.approve_all()
    redeploy.result(SECONDS_MAX)


def test_machines_are_seen(azure: Azure) -> None:
    machines = azure.compute.virtual_machines

    assert [vm.name for vm in machines.list("rg1")] == ["lone", "web-0", "web-1", "web-2", "web-3"]
    assert len(list(machines.list_all())) == 5
    shown = machines.get("rg1", "web-0", expand="instanceView")
    assert shown.instance_view is not None
    assert shown.instance_view.statuses is not None
    assert shown.instance_view.statuses[1].code == "PowerState/running"
    assert machines.instance_view("rg1", "web-0").computer_name == "web-0"
    with pytest.raises(ResourceNotFoundError):
        machines.get("rg1", "nobody")


@pytest.mark.parametrize(
    "verb",
    ["restart", "perform_maintenance", "power_off", "start", "deallocate", "reimage", "reapply"],
)
def test_verbs_come_to_their_end(azure: Azure, verb: str) -> None:
    getattr(azure.compute.virtual_machines, f"begin_{verb}")("rg1", "lone").result(SECONDS_MAX)


def test_machines_are_made_changed_and_deleted(azure: Azure) -> None:
    machines: Any = azure.compute.virtual_machines
    body = {"location": "local", "properties": {"hardwareProfile": {"vmSize": "Standard_D2"}}}

    made = machines.begin_create_or_update("rg1", "new", body).result(SECONDS_MAX)
    changed = machines.begin_update("rg1", "new", {"tags": {"a": "b"}}).result(SECONDS_MAX)
    machines.begin_delete("rg1", "new").result(SECONDS_MAX)

    assert made.hardware_profile.vm_size == changed.hardware_profile.vm_size == "Standard_D2"
    assert changed.tags == {"a": "b"}
    with pytest.raises(ResourceNotFoundError):
        machines.get("rg1", "new")


def test_availability_sets_are_made_and_deleted(azure: Azure) -> None:
    sets: Any = azure.compute.availability_sets
    body = {"location": "local", "properties": {"platformUpdateDomainCount": 5}}

    made = sets.create_or_update("rg1", "avs", body)

    assert made.platform_update_domain_count == 5
    assert [one.name for one in sets.list("rg1")] == ["avs", "web"]
    sets.delete("rg1", "avs")
    assert refused(lambda: sets.delete("rg1", "web")) == (409, "OperationNotAllowed")


def test_scale_sets_grow_shrink_and_go(azure: Azure) -> None:
    """keeps S21 and N9: instances are deleted with notice."""
    sets: Any = azure.compute.virtual_machine_scale_sets
    instances: Any = azure.compute.virtual_machine_scale_set_vms
    notice = {"terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT5M"}}
    profile = {"virtualMachineProfile": {"scheduledEventsProfile": notice}}
    body = {
        "location": "local",
        "sku": {"name": "Standard_D2", "capacity": 3},
        "properties": {"upgradePolicy": {"mode": "Manual"}, **profile},
    }

    made = sets.begin_create_or_update("rg1", "new", body).result(SECONDS_MAX)
    assert made.sku.capacity == 3
    set_up = made.virtual_machine_profile.scheduled_events_profile
    assert set_up.terminate_notification_profile.not_before_timeout == "PT5M"
    sets.begin_restart("rg1", "new").result(SECONDS_MAX)
    instances.begin_redeploy("rg1", "new", "1").result(SECONDS_MAX)
    smaller = sets.begin_update("rg1", "new", {"sku": {"capacity": 2}}).result(SECONDS_MAX)
    assert smaller.sku.capacity == 2
    sets.begin_delete_instances("rg1", "new", {"instanceIds": ["1"]}).result(SECONDS_MAX)
    assert [one.instance_id for one in instances.list("rg1", "new")] == ["0"]
    sets.begin_delete("rg1", "new").result(SECONDS_MAX)
    assert [one.name for one in sets.list("rg1")] == ["pool", "spot"]


def test_evictions_are_simulated(azure: Azure) -> None:
    """keeps S21 and N9."""
    instances: Any = azure.compute.virtual_machine_scale_set_vms
    assert instances.simulate_eviction("rg1", "spot", "0") is None

    machines = azure.compute.virtual_machines
    assert refused(lambda: machines.simulate_eviction("rg1", "web-0")) == (
        409,
        "OperationNotAllowed",
    )


def test_the_eleventh_restart_is_refused(azure: Azure) -> None:
    """keeps S19: in words that the SDK shows."""
    machines = azure.compute.virtual_machines
    for _ in range(10):
        machines.begin_restart("rg1", "web-0", polling=False)

    with pytest.raises(HttpResponseError, match="allows 10 user operations") as caught:
        machines.begin_restart("rg1", "web-0", polling=False)

    assert caught.value.error is not None
    assert caught.value.error.code == "OperationNotAllowed"


def test_a_failure_is_raised_with_its_code(azure: Azure) -> None:
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
