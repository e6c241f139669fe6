"""azure-mgmt-compute and azure-mgmt-maintenance, unmodified: every operation that they are promised.

Keeps N9.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.polling import LROPoller
from azure.identity import ClientSecretCredential
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.maintenance import MaintenanceManagementClient

from forewarn.testing.clouds import FLEET, SUBSCRIPTION, WILLING, WillingGuests
from forewarn.testing.processes import ServiceProcess

pytestmark = pytest.mark.end_to_end

SECONDS_MAX = 60

# Its types know models and files, not the plain dictionaries that it takes as well.
AnyClient = Any


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    data = tmp_path_factory.mktemp("azure")
    # The same port in each of its lives, as it has where it is not just tried out.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        control = f"127.0.0.1:{free.getsockname()[1]}"
    with ServiceProcess(data, FLEET, "--impacts-take", "1s", "--control", control) as process:
        yield process


@pytest.fixture
def compute(service: ServiceProcess) -> Iterator[AnyClient]:
    with compute_client(service) as client:
        yield client


def compute_client(service: ServiceProcess) -> ComputeManagementClient:
    return ComputeManagementClient(
        credential(service),
        SUBSCRIPTION,
        base_url=service.control,
        connection_verify=str(ca(service)),
    )


def credential(service: ServiceProcess) -> ClientSecretCredential:
    operator = service.operator
    return ClientSecretCredential(
        "adfs",
        operator["client_id"],
        operator["client_secret"],
        authority=service.control,
        connection_verify=str(ca(service)),
    )


def ca(service: ServiceProcess) -> Path:
    return service.data / "ca.pem"


def wait(poller: LROPoller[Any]) -> Any:  # noqa: ANN401 - whatever the SDK returns
    """The result of a long-running operation, which must come."""
    poller.wait(SECONDS_MAX)
    assert poller.done(), "it is over in time"
    return poller.result()


def test_machines_are_listed_and_shown(compute: AnyClient) -> None:
    names = {machine.name for machine in compute.virtual_machines.list("rg1")}
    everywhere = {machine.name for machine in compute.virtual_machines.list_all()}

    assert {"web-0", "web-1", "lone", "cheap", "many-10"} <= names
    assert everywhere - names == {"elsewhere", "doomed"}
    assert "ss1_0" not in everywhere
    machine = compute.virtual_machines.get("RG1", "WEB-0", expand="instanceView")
    assert (machine.name, machine.type) == ("web-0", "Microsoft.Compute/virtualMachines")
    assert machine.availability_set is not None
    assert machine.availability_set.id.lower().endswith("/availabilitysets/web")
    view = compute.virtual_machines.instance_view("rg1", "web-0")
    assert [status.code for status in view.statuses or ()][-1] == "PowerState/running"


def test_what_is_not_there_is_not_found(compute: AnyClient) -> None:
    with pytest.raises(ResourceNotFoundError) as raised:
        compute.virtual_machines.get("rg1", "nobody")

    assert raised.value.error is not None
    assert raised.value.error.code == "ResourceNotFound"


@pytest.mark.parametrize(("verb", "event"), [("restart", "Reboot"), ("redeploy", "Redeploy")])
def test_a_verb_is_over_when_the_guest_approved_and_the_machine_is_back(
    service: ServiceProcess, compute: AnyClient, verb: str, event: str
) -> None:
    """Keeps S18: restarting schedules a Reboot, redeploying a Redeploy."""
    poller = getattr(compute.virtual_machines, f"begin_{verb}")("rg1", "web-0")
    (announced,) = service.document("127.0.1.10")["Events"]

    assert not poller.done()
    assert (announced["EventType"], announced["EventSource"]) == (event, "User")
    with WillingGuests(service, "127.0.1.11"):
        assert wait(poller) is None
    assert service.document("127.0.1.10")["Events"] == []


def test_a_scope_that_never_asked_is_restarted_at_once(
    service: ServiceProcess, compute: AnyClient
) -> None:
    """Keeps S13: while it is disabled, operations run at once without an event."""
    wait(compute.virtual_machines.begin_restart("rg1", "lone"))

    ended = service.json("events", "--all")["events"]
    (event,) = [event for event in ended if event["resources"] == ["lone"]]
    assert (event["announced"], event["status"]) == (False, "Completed")


def test_the_eleventh_user_operation_is_refused(compute: AnyClient) -> None:
    """Keeps S19."""
    for number in range(10):
        compute.virtual_machines.begin_restart("rg1", f"many-{number}", polling=False)

    with pytest.raises(HttpResponseError) as raised:
        compute.virtual_machines.begin_restart("rg1", "many-10")

    assert raised.value.status_code == 409
    assert raised.value.error is not None
    assert raised.value.error.code == "OperationNotAllowed"
    assert "10 user operations" in str(raised.value.error.message)


def test_an_operation_carries_the_failure_of_its_event(
    service: ServiceProcess, compute: AnyClient
) -> None:
    poller = compute.virtual_machines.begin_redeploy("rg2", "doomed")
    (event,) = service.document("127.0.1.51")["Events"]

    service.run("cancel", event["EventId"])

    with pytest.raises(HttpResponseError, match="canceled"):
        wait(poller)


def test_machines_are_stopped_started_deallocated_reimaged_and_reapplied(
    compute: AnyClient,
) -> None:
    machines = compute.virtual_machines

    def power() -> str:
        view = machines.instance_view("rg1", "web-1")
        return [str(status.code) for status in view.statuses or ()][-1]

    wait(machines.begin_power_off("rg1", "web-1"))
    assert power() == "PowerState/stopped"
    wait(machines.begin_start("rg1", "web-1"))
    assert power() == "PowerState/running"
    wait(machines.begin_deallocate("rg1", "web-1"))
    assert power() == "PowerState/deallocated"
    wait(machines.begin_start("rg1", "web-1"))
    wait(machines.begin_reimage("rg1", "web-1"))
    wait(machines.begin_reapply("rg1", "web-1"))
    assert power() == "PowerState/running"


def test_maintenance_is_performed_when_its_owner_says_so(
    service: ServiceProcess, compute: AnyClient
) -> None:
    service.announce("Reboot", "web-0", "--duration", "1s")

    wait(compute.virtual_machines.begin_perform_maintenance("rg1", "web-0"))

    assert service.document("127.0.1.10")["Events"] == []
    wait(compute.virtual_machines.begin_perform_maintenance("rg1", "web-0"))


def test_an_eviction_is_simulated_on_spot_machines_only(
    service: ServiceProcess, compute: AnyClient
) -> None:
    """Keeps S21: spot eviction makes Preempt."""
    compute.virtual_machines.simulate_eviction("rg1", "cheap")

    (event,) = service.document("127.0.1.30")["Events"]
    assert (event["EventType"], event["EventSource"]) == ("Preempt", "Platform")
    with pytest.raises(HttpResponseError, match="OperationNotAllowed"):
        compute.virtual_machines.simulate_eviction("rg1", "web-0")


def test_machines_and_sets_are_made_changed_and_deleted(
    service: ServiceProcess, compute: AnyClient
) -> None:
    sets = compute.availability_sets
    made_set = sets.create_or_update(
        "rg1",
        "made",
        {
            "location": "local",
            "properties": {"platformFaultDomainCount": 2, "platformUpdateDomainCount": 5},
            "sku": {"name": "Aligned"},
        },
    )
    assert made_set.platform_update_domain_count == 5

    made = wait(
        compute.virtual_machines.begin_create_or_update(
            "rg1",
            "made-0",
            {
                "location": "local",
                "tags": {"team": "a"},
                "properties": {
                    "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
                    "availabilitySet": {"id": made_set.id},
                    "forewarn": {"addresses": ["127.0.1.60"]},
                },
            },
        )
    )
    assert made is not None
    assert service.document("127.0.1.60")["Events"] == []

    wait(compute.virtual_machines.begin_update("rg1", "made-0", {"tags": {"team": "b"}}))
    shown = compute.virtual_machines.get("rg1", "made-0")
    assert (shown.tags, shown.hardware_profile and shown.hardware_profile.vm_size) == (
        {"team": "b"},
        "Standard_D2s_v5",
    )
    assert "made" in {found.name for found in sets.list("rg1")}
    wait(compute.virtual_machines.begin_delete("rg1", "made-0"))
    with pytest.raises(ResourceNotFoundError):
        compute.virtual_machines.get("rg1", "made-0")
    sets.delete("rg1", "made")
    with pytest.raises(ResourceNotFoundError):
        sets.get("rg1", "made")


def test_a_policy_lets_user_operations_start_at_once(
    service: ServiceProcess, compute: AnyClient
) -> None:
    """Keeps N10: automatic approval policies."""
    approve = {"automaticallyApprove": True}
    policy = {"userInitiatedReboot": approve, "userInitiatedRedeploy": approve}
    body = {"location": "local", "properties": {"scheduledEventsPolicy": policy}}

    wait(compute.virtual_machines.begin_create_or_update("rg2", "elsewhere", body))
    wait(compute.virtual_machines.begin_restart("rg2", "elsewhere"))

    assert service.document("127.0.1.50")["Events"] == []


def test_scale_sets_and_their_instances(service: ServiceProcess, compute: AnyClient) -> None:
    """Keeps S21: deleting an instance makes Terminate, where that is notified."""
    sets, instances = compute.virtual_machine_scale_sets, compute.virtual_machine_scale_set_vms
    with WillingGuests(service, *WILLING) as guests:
        wait(sets.begin_restart("rg1", "ss1", {"instanceIds": ["1"]}))
        wait(sets.begin_redeploy("rg1", "ss1"))
        wait(sets.begin_perform_maintenance("rg1", "ss1"))
        wait(instances.begin_restart("rg1", "ss1", "0"))
        wait(instances.begin_redeploy("rg1", "ss1", "0"))
        wait(instances.begin_perform_maintenance("rg1", "ss1", "0"))
        wait(sets.begin_delete_instances("rg1", "ss1", {"instanceIds": ["2"]}))

    assert guests.read["127.0.1.40"] == {"Reboot", "Redeploy", "Terminate"}
    assert {"spots", "ss1"} <= {found.name for found in sets.list("rg1")}
    assert [vm.instance_id for vm in instances.list("rg1", "ss1")] == ["0", "1"]
    view = instances.get_instance_view("rg1", "ss1", "0")
    assert [status.code for status in view.statuses or ()][-1] == "PowerState/running"


def test_a_scale_set_is_made_scaled_in_and_deleted(
    service: ServiceProcess, compute: AnyClient
) -> None:
    sets, instances = compute.virtual_machine_scale_sets, compute.virtual_machine_scale_set_vms
    notified = {"terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT5M"}}
    profile = {"virtualMachineProfile": {"scheduledEventsProfile": notified}}
    made = {
        "location": "local",
        "sku": {"name": "Standard_D2s_v5", "capacity": 3},
        "properties": {"upgradePolicy": {"mode": "Manual"}, **profile},
    }

    wait(sets.begin_create_or_update("rg1", "ss2", made))
    assert [vm.name for vm in instances.list("rg1", "ss2")] == ["ss2_0", "ss2_1", "ss2_2"]
    shown = sets.get("rg1", "ss2")
    assert shown.virtual_machine_profile is not None
    wait(sets.begin_update("rg1", "ss2", {"properties": profile}))
    wait(instances.begin_delete("rg1", "ss2", "2"))
    wait(sets.begin_delete("rg1", "ss2"))

    assert "ss2" not in {found.name for found in sets.list("rg1")}
    assert service.is_running


def test_an_approval_from_outside_is_as_good_as_the_guests(
    service: ServiceProcess, compute: AnyClient
) -> None:
    """Keeps N10: approval from outside the VM."""
    poller = compute.virtual_machines.begin_restart("rg1", "web-0")
    (event,) = service.document("127.0.1.10")["Events"]

    with MaintenanceManagementClient(
        credential(service),
        SUBSCRIPTION,
        base_url=service.control,
        connection_verify=str(ca(service)),
    ) as maintenance:
        answer = maintenance.scheduled_events.acknowledge(
            "rg1", "virtualMachines", "web-0", event["EventId"]
        )

    assert "approved" in str(answer.value)
    wait(poller)


def test_an_operation_survives_the_death_of_the_service(
    service: ServiceProcess, compute: AnyClient
) -> None:
    poller = compute.virtual_machines.begin_restart("rg1", "web-0")

    service.restart()

    with WillingGuests(service, "127.0.1.10"):
        wait(poller)
