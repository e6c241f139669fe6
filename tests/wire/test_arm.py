"""Resources as Azure's clients read them: golden forms."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.events import EventSource, EventType
from forewarn.core.ledgers import Ledger
from forewarn.core.names import EventId, HostName, MachineName, OperationId, ScopeId
from forewarn.core.operations import Ending, Operation, OperationStatus
from forewarn.core.scopes import Machine, OwnerPolicies, Presence, Scope, ScopeKind
from forewarn.core.wishes import IfNotTold, Wish
from forewarn.testing.sample_fleet import POOL, SPOT
from forewarn.testing.worlds import NOON, OPERATOR, WEB, World
from forewarn.wire import arm, arm_frames, instance
from forewarn.wire.arm import Names

SUB = "11111111-1111-1111-1111-111111111111"
NAMES = Names(SUB)
COMPUTE = f"/subscriptions/{SUB}/resourceGroups/rg1/providers/Microsoft.Compute"
POLICY = {
    "userInitiatedReboot": {"automaticallyApprove": False},
    "userInitiatedRedeploy": {"automaticallyApprove": False},
    "allInstancesDown": {"automaticallyApprove": True},
}
RUNNING = [
    {
        "code": "ProvisioningState/succeeded",
        "level": "Info",
        "displayStatus": "Provisioning succeeded",
    },
    {"code": "PowerState/running", "level": "Info", "displayStatus": "VM running"},
]


def set_of_one(**members: object) -> Ledger:
    """An availability set in rg1 with one machine."""
    machine = Machine(name=MachineName("web-0"), vm_id="v", **members)  # type: ignore[arg-type] # by name
    scope = replace(WEB, machines=(machine,), terminate_notice=None)
    return Ledger(scope=scope)


def machine_form(ledger: Ledger, *, with_view: bool = False) -> arm.Json:
    return arm.virtual_machine(NAMES, ledger, ledger.scope.machines[0], with_view=with_view)


def leaving(scope: Scope, *machines: str) -> Ledger:
    """A ledger, some of whose machines are about to be deleted."""
    world = World(scope)
    wish = Wish(
        type=EventType.TERMINATE,
        source=EventSource.USER,
        machines=machines,
        if_not_told=IfNotTold.RUN_UNANNOUNCED,
    )
    world.desk.announce(wish, (), OPERATOR)
    return world.parts.books.load(scope.id)


# -- machines ---------------------------------------------------------------------------------


def test_a_machine_in_an_availability_set() -> None:
    ledger = set_of_one(
        size="Standard_D2s_v5",
        zone="2",
        tags=(("team", "a"),),
        addresses=("10.0.0.1",),
        host=HostName("h"),
    )

    assert machine_form(ledger, with_view=True) == {
        "id": f"{COMPUTE}/virtualMachines/web-0",
        "name": "web-0",
        "type": "Microsoft.Compute/virtualMachines",
        "location": "local",
        "tags": {"team": "a"},
        "zones": ["2"],
        "properties": {
            "vmId": "v",
            "provisioningState": "Succeeded",
            "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
            "forewarn": {"addresses": ["10.0.0.1"], "updateDomain": 0, "host": "h"},
            "availabilitySet": {"id": f"{COMPUTE}/availabilitySets/web"},
            "scheduledEventsPolicy": POLICY,
            "instanceView": {
                "computerName": "web-0",
                "platformUpdateDomain": 0,
                "platformFaultDomain": 0,
                "statuses": RUNNING,
            },
        },
    }


def test_a_machine_on_its_own_shows_what_was_kept_of_it() -> None:
    kept = json.dumps({"plan": {"name": "p"}, "properties": {"osProfile": {"adminUsername": "u"}}})
    machine = Machine(name=MachineName("lone"), vm_id="v", kept=kept)
    scope = Scope(name="lone", resource_group="rg1", location="mars", machines=(machine,))

    form = machine_form(Ledger(scope=scope))

    assert form == {
        "plan": {"name": "p"},
        "id": f"{COMPUTE}/virtualMachines/lone",
        "name": "lone",
        "type": "Microsoft.Compute/virtualMachines",
        "location": "mars",
        "tags": {},
        "properties": {
            "osProfile": {"adminUsername": "u"},
            "vmId": "v",
            "provisioningState": "Succeeded",
            "forewarn": {"addresses": [], "updateDomain": 0},
            "scheduledEventsPolicy": POLICY,
        },
    }
    assert arm.summary(form) == {
        "id": f"{COMPUTE}/virtualMachines/lone",
        "name": "lone",
        "type": "Microsoft.Compute/virtualMachines",
        "location": "mars",
        "tags": {},
    }


@pytest.mark.parametrize(
    ("presence", "code", "said"),
    [
        (Presence.RUNNING, "PowerState/running", "VM running"),
        (Presence.STOPPED, "PowerState/stopped", "VM stopped"),
        (Presence.DEALLOCATED, "PowerState/deallocated", "VM deallocated"),
    ],
)
def test_the_power_state_is_told(presence: Presence, code: str, said: str) -> None:
    ledger = set_of_one(presence=presence)

    view = arm.instance_view(ledger, ledger.scope.machines[0])

    assert view["statuses"] == [
        RUNNING[0],
        {"code": code, "level": "Info", "displayStatus": said},
    ]


def test_pending_maintenance_may_be_brought_forward() -> None:
    world = World(WEB)
    event = world.announce(EventType.FREEZE, "web-0")
    world.announce(EventType.REBOOT, "web-1", source=EventSource.USER)
    ledger = world.parts.books.load(WEB.id)

    views = [arm.instance_view(ledger, machine) for machine in ledger.scope.machines[:2]]

    assert views[0]["maintenanceRedeployStatus"] == {
        "isCustomerInitiatedMaintenanceAllowed": True,
        "maintenanceWindowStartTime": f"{event.not_before:%FT%T}+00:00",
        "lastOperationResultCode": "None",
    }
    assert "maintenanceRedeployStatus" not in views[1]


def test_a_machine_that_is_being_deleted_says_so() -> None:
    ledger = leaving(replace(WEB, terminate_notice=None), "web-0")

    form = machine_form(ledger, with_view=True)

    properties = form["properties"]
    assert isinstance(properties, dict)
    assert properties["provisioningState"] == "Deleting"
    assert properties["instanceView"]["statuses"][0] == {
        "code": "ProvisioningState/deleting",
        "level": "Info",
        "displayStatus": "Deleting",
    }


def test_spot_machines_say_so() -> None:
    alone = replace(SPOT, kind=ScopeKind.STANDALONE, machines=SPOT.machines[:1])

    properties = machine_form(Ledger(scope=alone))["properties"]
    assert isinstance(properties, dict)
    assert (properties["priority"], properties["evictionPolicy"]) == ("Spot", "Deallocate")

    properties = arm.scale_set(NAMES, Ledger(scope=SPOT))["properties"]
    assert isinstance(properties, dict)
    assert properties["virtualMachineProfile"]["priority"] == "Spot"


# -- scale sets -------------------------------------------------------------------------------


def test_an_instance_of_a_scale_set() -> None:
    scope = replace(POOL, resource_group="rg1")
    machine = replace(scope.machines[1], vm_id="v", size="Standard_D2")

    form = arm.scale_set_instance(NAMES, Ledger(scope=scope), machine, with_view=True)

    assert form == {
        "id": f"{COMPUTE}/virtualMachineScaleSets/pool/virtualMachines/1",
        "instanceId": "1",
        "name": "pool_1",
        "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
        "location": "local",
        "tags": {},
        "sku": {"name": "Standard_D2", "tier": "Standard"},
        "properties": {
            "vmId": "v",
            "provisioningState": "Succeeded",
            "hardwareProfile": {"vmSize": "Standard_D2"},
            "forewarn": {"addresses": ["10.0.5.11"], "updateDomain": 1, "host": "host-0"},
            "latestModelApplied": True,
            "instanceView": {
                "computerName": "pool_1",
                "platformUpdateDomain": 1,
                "platformFaultDomain": 0,
                "statuses": RUNNING,
            },
        },
    }
    plain = arm.scale_set_instance(NAMES, Ledger(scope=scope), machine, with_view=False)
    assert "instanceView" not in str(plain)


@pytest.mark.parametrize(
    ("name", "number"),
    [("pool_07", "07"), ("POOL_3", "3"), ("pool_x", "pool_x"), ("other_3", "other_3"), ("p", "p")],
)
def test_an_instance_is_called_by_its_number_or_by_its_name(name: str, number: str) -> None:
    assert instance.instance_id(POOL, Machine(name=MachineName(name))) == number


def test_a_scale_set() -> None:
    scope = replace(POOL, resource_group="rg1", owner=OwnerPolicies(event_grid=True))

    assert arm.scale_set(NAMES, Ledger(scope=scope)) == {
        "id": f"{COMPUTE}/virtualMachineScaleSets/pool",
        "name": "pool",
        "type": "Microsoft.Compute/virtualMachineScaleSets",
        "location": "local",
        "tags": {},
        "sku": {"name": "", "tier": "Standard", "capacity": 4},
        "properties": {
            "uniqueId": instance.derived_id("rg1/pool"),
            "orchestrationMode": "Uniform",
            "overprovision": False,
            "singlePlacementGroup": True,
            "upgradePolicy": {"mode": "Manual"},
            "provisioningState": "Succeeded",
            "scheduledEventsPolicy": POLICY
            | {
                "scheduledEventsAdditionalPublishingTargets": {
                    "eventGridAndResourceGraph": {"enable": True}
                }
            },
            "virtualMachineProfile": {
                "scheduledEventsProfile": {
                    "terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT15M"},
                    "osImageNotificationProfile": {"enable": False},
                }
            },
        },
    }


def test_a_scale_set_says_how_large_it_will_be() -> None:
    sized = tuple(replace(machine, size="Standard_D2") for machine in POOL.machines)
    pool = replace(POOL, machines=sized)
    ledger = leaving(pool, "pool_2", "pool_3")

    form = arm.scale_set(NAMES, ledger)

    assert form["sku"] == {"name": "Standard_D2", "tier": "Standard", "capacity": 2}
    assert arm.scale_set_state(ledger) == "Updating"
    everything = leaving(pool, *(machine.name for machine in pool.machines))
    assert arm.scale_set_state(everything) == "Deleting"


def test_a_scale_set_counts_its_instances_by_state() -> None:
    first, second, *rest = POOL.machines
    scope = replace(
        POOL,
        machines=(
            replace(first, presence=Presence.STOPPED),
            replace(second, presence=Presence.DELETED),
            *rest,
        ),
    )

    assert arm.scale_set_view(Ledger(scope=scope)) == {
        "virtualMachine": {
            "statusesSummary": [
                {"code": "PowerState/running", "count": 2},
                {"code": "PowerState/stopped", "count": 1},
                {"code": "ProvisioningState/succeeded", "count": 3},
            ]
        },
        "statuses": [RUNNING[0]],
    }


def test_an_availability_set() -> None:
    scope = replace(WEB, terminate_notice=None, kept='{"sku":{"name":"Classic"},"tags":{"a":"b"}}')

    assert arm.availability_set(NAMES, Ledger(scope=scope)) == {
        "id": f"{COMPUTE}/availabilitySets/web",
        "name": "web",
        "type": "Microsoft.Compute/availabilitySets",
        "location": "local",
        "tags": {"a": "b"},
        "sku": {"name": "Classic"},
        "properties": {
            "platformFaultDomainCount": 1,
            "provisioningState": "Succeeded",
            "platformUpdateDomainCount": 3,
            "virtualMachines": [
                {"id": f"{COMPUTE}/virtualMachines/web-{number}"} for number in range(4)
            ],
            "scheduledEventsPolicy": POLICY,
        },
    }


@pytest.mark.parametrize(("seconds", "text"), [(300, "PT5M"), (90, "PT90S")])
def test_notices_are_spelled_as_azure_does(seconds: int, text: str) -> None:
    assert arm.spelled(timedelta(seconds=seconds)) == text


# -- around the resources ---------------------------------------------------------------------


def test_the_subscription_and_what_is_in_it() -> None:
    root = f"/subscriptions/{SUB}"
    assert arm_frames.subscription(NAMES, "t") == {
        "id": root,
        "subscriptionId": SUB,
        "tenantId": "t",
        "displayName": "forewarn",
        "state": "Enabled",
        "authorizationSource": "RoleBased",
        "managedByTenants": [],
    }
    assert arm_frames.resource_group(NAMES, "RG1", "mars") == {
        "id": f"{root}/resourceGroups/RG1",
        "name": "RG1",
        "type": "Microsoft.Resources/resourceGroups",
        "location": "mars",
        "properties": {"provisioningState": "Succeeded"},
    }
    assert arm_frames.region(NAMES, "mars")["id"] == f"{root}/locations/mars"
    provider = arm_frames.provider(NAMES, ["mars"])
    assert provider["namespace"] == "Microsoft.Compute"
    assert "availabilitySets" in str(provider["resourceTypes"])


def test_an_operation_is_told_as_pollers_read_it() -> None:
    begun = Operation(
        id=OperationId("op"),
        verb="restart",
        resource="/vm",
        group="rg1",
        scope=ScopeId("rg1/web"),
        event_ids=(EventId("E1"), EventId("E2")),
        principal="olga",
        started_at=NOON,
    )
    events = {"events": ["E1", "E2"]}
    start = {"startTime": "2030-01-01T12:00:00Z", "name": "op", "properties": events}
    end = {"endTime": "2030-01-01T12:00:00Z"}

    assert arm_frames.operation(begun) == {**start, "status": "InProgress"}
    done = replace(begun, ending=Ending(OperationStatus.SUCCEEDED, NOON))
    assert arm_frames.operation(done) == {**start, **end, "status": "Succeeded"}
    failed = replace(begun, ending=Ending(OperationStatus.FAILED, NOON, "Code", "why"))
    assert arm_frames.operation(failed) == {
        **start,
        **end,
        "status": "Failed",
        "error": {"code": "Code", "message": "why"},
    }


def test_a_refusal_has_azures_form() -> None:
    assert arm.dump(arm_frames.fault("Code", "why")) == b'{"error":{"code":"Code","message":"why"}}'
    detail: arm.Json = {"target": "E"}
    assert arm_frames.fault("Code", "why", [detail]) == {
        "error": {"code": "Code", "message": "why", "details": [detail]}
    }


@pytest.mark.parametrize(
    ("kept", "size"),
    [
        ("", "Standard_D2"),
        ('{"sku":1}', "Standard_D2"),
        ('{"sku":{}}', "Standard_D2"),
        ('{"sku":{"name":"","tier":"x"}}', "Standard_D2"),
        ('{"sku":{"name":"Standard_D4"}}', "Standard_D4"),
    ],
)
def test_instances_to_come_are_of_the_size_said_last(kept: str, size: str) -> None:
    machine = Machine(name=MachineName("pool_0"), size="Standard_D2")

    assert arm.size(replace(POOL, machines=(machine,), kept=kept)) == size
