"""Scale sets and their instances, as their owners see, change and use them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from forewarn.core.events import Audience, Event, EventSource, EventStatus, EventType
from forewarn.core.names import MachineName, ScopeId
from forewarn.core.scopes import Enabling, Machine, OwnerPolicies
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import FaultyStore
from forewarn.testing.owners import Owners, compute
from forewarn.testing.sample_fleet import POOL, SPOT
from forewarn.testing.worlds import World

MANY = f"{compute('rg1')}/virtualMachineScaleSets"
SS = f"{MANY}/pool"
INSTANCES = f"{SS}/virtualMachines"
NEW = f"{MANY}/new"
SPOT_SET = f"{MANY}/spot"
# Told of everything, with a quarter of an hour before an instance is deleted.
TOLD = replace(POOL, resource_group="rg1", enabling=Enabling.ALWAYS)
QUIET = replace(
    POOL,
    name="quiet",
    resource_group="rg1",
    terminate_notice=None,
    machines=(Machine(name=MachineName("odd")), Machine(name=MachineName("Quiet_10"))),
)
BODY: Mapping[str, object] = {
    "location": "local",
    "tags": {"team": "a"},
    "zones": ["1", "2"],
    "sku": {"name": "Standard_D2", "tier": "Standard", "capacity": 3},
    "properties": {
        "upgradePolicy": {"mode": "Automatic"},
        "virtualMachineProfile": {
            "osProfile": {"computerNamePrefix": "n", "adminPassword": "hush"},
            "scheduledEventsProfile": {
                "terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT5M"}
            },
        },
    },
}


@pytest.fixture
def owners() -> Owners:
    return Owners(TOLD, QUIET, replace(SPOT, resource_group="rg1"))


def events(owners: Owners) -> list[Event]:
    return [placed.event for placed in owners.world.desk.events()]


def machines(owners: Owners, scale_set: str = SS) -> list[str]:
    return [vm["instanceId"] for vm in owners.get(f"{scale_set}/virtualMachines")["value"]]


def concerned(owners: Owners) -> list[str]:
    return sorted(machine for event in events(owners) for machine in event.machines)


# -- seen --------------------------------------------------------------------------------------


def test_scale_sets_are_listed_and_shown(owners: Owners) -> None:
    listed = owners.get(MANY)["value"]

    assert [one["name"] for one in listed] == ["pool", "quiet", "spot"]
    assert owners.get(SS) == listed[0]
    subscription = MANY.partition("/resourceGroups")[0]
    everywhere = owners.get(f"{subscription}/providers/Microsoft.Compute/virtualMachineScaleSets")
    assert everywhere["value"] == listed
    assert owners.get(f"{SS}/instanceView")["virtualMachine"]["statusesSummary"][0] == {
        "code": "PowerState/running",
        "count": 4,
    }


def test_instances_are_listed_by_number_and_shown(owners: Owners) -> None:
    listed = owners.get(INSTANCES)["value"]

    assert [one["instanceId"] for one in listed] == ["0", "1", "2", "3"]
    assert owners.get(f"{INSTANCES}/2") == listed[2] == owners.get(f"{INSTANCES}/POOL_2")
    view = owners.get(f"{INSTANCES}/2/instanceView")
    assert owners.get(f"{INSTANCES}/2?$expand=instanceView")["properties"]["instanceView"] == view
    assert machines(owners, f"{MANY}/quiet") == ["10", "odd"]
    assert owners.get(f"{MANY}/quiet/virtualMachines/ODD")["name"] == "odd"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/nobody", None),
        ("PATCH", "/nobody", {}),
        ("POST", "/nobody/restart", None),
        ("POST", "/nobody/delete", None),
        ("GET", "/nobody/virtualMachines", None),
        ("GET", "/pool/virtualMachines/4", None),
        ("PUT", "/pool/virtualMachines/4", {}),
        ("POST", "/pool/virtualMachines/4/restart", None),
        ("POST", "/pool/virtualMachines/4/simulateEviction", None),
        ("POST", "/pool/restart", {"instanceIds": ["1", "4"]}),
        ("POST", "/pool/delete", {"instanceIds": ["4"]}),
    ],
)
def test_what_is_not_there(
    owners: Owners, method: str, path: str, body: Mapping[str, object] | None
) -> None:
    assert owners.refused(method, f"{MANY}{path}", body)[:2] == (404, "ResourceNotFound")
    assert not events(owners)


def test_an_instance_is_no_virtual_machine(owners: Owners) -> None:
    assert owners.get(f"{compute('rg1')}/virtualMachines") == {"value": []}
    assert owners.refused("GET", f"{compute('rg1')}/virtualMachines/pool_0")[0] == 404
    assert owners.refused("GET", f"{compute('rg1')}/availabilitySets/pool")[0] == 404


# -- used --------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [None, {}, {"instanceIds": []}, {"instanceIds": ["*"]}])
def test_no_instances_named_are_all_of_them(
    owners: Owners, body: Mapping[str, object] | None
) -> None:
    owners.begin("POST", f"{SS}/restart", body)

    assert concerned(owners) == ["pool_0", "pool_1", "pool_2", "pool_3"]
    assert {(event.type, event.source) for event in events(owners)} == {
        (EventType.REBOOT, EventSource.USER)
    }


def test_some_instances_are_restarted(owners: Owners) -> None:
    """keeps S18: restarting schedules a Reboot."""
    headers = owners.begin("POST", f"{SS}/restart", {"instanceIds": ["1", "3"]})

    assert concerned(owners) == ["pool_1", "pool_3"]
    assert owners.finish(headers) == "Succeeded"


@pytest.mark.parametrize(
    ("verb", "after"),
    [
        ("redeploy", "running"),
        ("powerOff", "stopped"),
        ("deallocate", "deallocated"),
        ("start", "running"),
        ("reimage", "running"),
        ("reimageAll", "running"),
        ("performMaintenance", "running"),
    ],
)
def test_verbs_apply_to_sets_and_to_instances(owners: Owners, verb: str, after: str) -> None:
    assert owners.finish(owners.begin("POST", f"{SS}/{verb}")) == "Succeeded"
    other = f"{SPOT_SET}/virtualMachines/0"
    assert owners.finish(owners.begin("POST", f"{other}/{verb}")) == "Succeeded"

    for instance in (f"{INSTANCES}/3", other):
        view = owners.get(f"{instance}/instanceView")
        assert view["statuses"][1]["code"] == f"PowerState/{after}"


def test_one_instance_is_acted_on(owners: Owners) -> None:
    owners.finish(owners.begin("POST", f"{INSTANCES}/2/restart"))

    assert concerned(owners) == ["pool_2"]


def test_where_nobody_said_which_those_that_do_not_run_are_left_out(owners: Owners) -> None:
    owners.finish(owners.begin("POST", f"{INSTANCES}/0/deallocate"))

    headers = owners.begin("POST", f"{SS}/restart")

    reboots = [event for event in events(owners) if event.type is EventType.REBOOT]
    assert sorted(event.machines[0] for event in reboots) == ["pool_1", "pool_2", "pool_3"]
    assert owners.finish(headers) == "Succeeded"
    named = owners.refused("POST", f"{SS}/restart", {"instanceIds": ["0"]})
    assert named[:2] == (409, "OperationNotAllowed")


def test_an_empty_scale_set_has_nothing_to_restart(owners: Owners) -> None:
    owners.put(NEW, {"location": "local"}, 201)

    assert owners.status(owners.begin("POST", f"{NEW}/restart")) == "Succeeded"


def test_pending_maintenance_is_brought_forward_by_the_owner(owners: Owners) -> None:
    event = owners.world.announce(EventType.FREEZE, "pool_2")

    headers = owners.begin("POST", f"{SS}/performMaintenance", {"instanceIds": ["2"]})
    owners.world.advance(timedelta(minutes=5))

    assert owners.status(headers) == "Succeeded"
    assert owners.world.event(event.id).status is EventStatus.COMPLETED


def test_spot_instances_are_evicted(owners: Owners) -> None:
    """keeps S21: a spot eviction makes a Preempt."""
    assert owners.ask("POST", f"{SPOT_SET}/virtualMachines/0/simulateEviction").status == 204
    assert [event.type for event in events(owners)] == [EventType.PREEMPT]
    refused = owners.refused("POST", f"{INSTANCES}/0/simulateEviction")
    assert refused[:2] == (409, "OperationNotAllowed")


def test_instances_are_told_of_their_deletion_where_that_is_enabled(owners: Owners) -> None:
    """keeps S21: deleting an instance makes a Terminate."""
    headers = owners.begin("POST", f"{SS}/delete", {"instanceIds": ["1", "2"]})

    assert {(event.type, event.audience) for event in events(owners)} == {
        (EventType.TERMINATE, Audience.GUESTS)
    }
    assert owners.get(SS)["properties"]["provisioningState"] == "Updating"
    assert owners.get(f"{INSTANCES}/1")["properties"]["provisioningState"] == "Deleting"
    assert owners.finish(headers) == "Succeeded"
    assert machines(owners) == ["0", "3"]
    assert owners.get(SS)["sku"]["capacity"] == 2


def test_where_it_is_not_instances_are_just_deleted(owners: Owners) -> None:
    headers = owners.begin("DELETE", f"{MANY}/quiet/virtualMachines/odd")

    assert [event.audience for event in events(owners)] == [Audience.OPERATORS]
    assert owners.finish(headers) == "Succeeded"
    assert machines(owners, f"{MANY}/quiet") == ["10"]


@pytest.mark.parametrize(
    "path", ["/pool/virtualMachines/9", "/nobody/virtualMachines/0", "/nobody"]
)
def test_what_is_not_there_need_not_be_deleted(owners: Owners, path: str) -> None:
    assert owners.ask("DELETE", f"{MANY}{path}").status == 204


def test_all_instances_are_deleted_and_the_set_stays(owners: Owners) -> None:
    assert owners.finish(owners.begin("POST", f"{SS}/delete")) == "Succeeded"

    assert owners.get(SS)["sku"]["capacity"] == 0


def test_a_scale_set_is_gone_with_its_last_instance(owners: Owners) -> None:
    headers = owners.begin("DELETE", SS)
    assert owners.get(SS)["properties"]["provisioningState"] == "Deleting"

    assert owners.finish(headers) == "Succeeded"

    assert owners.refused("GET", SS)[0] == 404
    assert [one["name"] for one in owners.get(MANY)["value"]] == ["quiet", "spot"]
    assert owners.ask("DELETE", SS).status == 204


def test_a_scale_set_that_may_not_be_deleted_now_is_not_deleted_later() -> None:
    owners = Owners(replace(TOLD, user_operations_max=1, terminate_notice=None))
    headers = owners.begin("POST", f"{INSTANCES}/0/restart")
    assert owners.refused("DELETE", SS)[0] == 409

    owners.finish(headers)
    for one in machines(owners):
        owners.finish(owners.begin("DELETE", f"{INSTANCES}/{one}"))

    assert machines(owners) == []


def test_an_empty_scale_set_is_gone_at_once(owners: Owners) -> None:
    owners.put(NEW, {"location": "local"}, 201)

    assert owners.status(owners.begin("DELETE", NEW)) == "Succeeded"
    assert owners.refused("GET", NEW)[0] == 404


# -- made and changed --------------------------------------------------------------------------


def test_a_scale_set_is_made_with_its_instances(owners: Owners) -> None:
    form = owners.put(NEW, BODY, 201)

    assert form == owners.get(NEW)
    assert form["sku"] == {"name": "Standard_D2", "tier": "Standard", "capacity": 3}
    assert (form["tags"], form["zones"]) == ({"team": "a"}, ["1", "2"])
    properties = form["properties"]
    assert properties["upgradePolicy"] == {"mode": "Automatic"}
    assert properties["virtualMachineProfile"]["osProfile"] == {"computerNamePrefix": "n"}
    assert properties["provisioningState"] == "Succeeded"
    listed = owners.get(f"{NEW}/virtualMachines")["value"]
    assert [one["name"] for one in listed] == ["new_0", "new_1", "new_2"]
    assert [one["zones"] for one in listed] == [["1"], ["2"], ["1"]]
    assert [one["properties"]["forewarn"]["updateDomain"] for one in listed] == [0, 1, 2]
    scope = owners.world.parts.books.load(ScopeId("rg1/new")).scope
    assert scope.owner == OwnerPolicies(terminate_notice=timedelta(minutes=5))


def test_an_instance_is_given_what_identifies_it(owners: Owners) -> None:
    owners.put(NEW, BODY, 201)
    body = {"tags": {"a": "b"}, "properties": {"forewarn": {"addresses": ["10.9.0.2"]}}}

    form = owners.put(f"{NEW}/virtualMachines/1", body)

    assert form["tags"] == {"a": "b"}
    assert owners.world.caller("10.9.0.2").machine == "new_1"
    kept = owners.put(f"{NEW}/virtualMachines/1", {"properties": {"protectionPolicy": {"x": 1}}})
    assert kept["properties"]["protectionPolicy"] == {"x": 1}
    owners.begin("DELETE", f"{NEW}/virtualMachines/1")
    assert owners.refused("PUT", f"{NEW}/virtualMachines/1", {})[:2] == (409, "OperationNotAllowed")


def test_a_scale_set_grows_and_no_number_is_given_twice(owners: Owners) -> None:
    owners.put(NEW, BODY, 201)
    owners.finish(owners.begin("DELETE", f"{NEW}/virtualMachines/2"))

    form = owners.put(NEW, {"location": "local", "sku": {"capacity": 4}})

    assert form["sku"]["capacity"] == 4
    assert machines(owners, NEW) == ["0", "1", "3", "4"]
    assert owners.get(f"{NEW}/virtualMachines/4")["sku"]["name"] == "Standard_D2"


def test_two_who_want_one_size_get_it_once() -> None:
    store = FaultyStore(MemoryStore(World().clock))
    owners = Owners(world=World(store=store))
    owners.put(NEW, BODY, 201)
    store.overtake(lambda: owners.patch(NEW, {"sku": {"capacity": 5}}))

    owners.patch(NEW, {"sku": {"capacity": 5}})

    assert machines(owners, NEW) == ["0", "1", "2", "3", "4"]


def test_new_instances_are_of_the_size_that_is_wanted_now(owners: Owners) -> None:
    owners.put(NEW, BODY, 201)

    form = owners.patch(NEW, {"sku": {"name": "Standard_D4", "capacity": 4}})

    assert form["sku"] == {"name": "Standard_D4", "tier": "Standard", "capacity": 4}
    sizes = [one["sku"]["name"] for one in owners.get(f"{NEW}/virtualMachines")["value"]]
    assert sizes == ["Standard_D2", "Standard_D2", "Standard_D2", "Standard_D4"]
    owners.patch(NEW, {"sku": {"capacity": 5}})
    assert owners.get(f"{NEW}/virtualMachines/4")["sku"]["name"] == "Standard_D4"


def test_a_scale_set_becomes_smaller_by_an_operation(owners: Owners) -> None:
    """keeps S21: scale-in makes Terminates, of the newest instances first."""
    answer = owners.ask("PATCH", SS, {"sku": {"capacity": 1}})

    form = json.loads(answer.body)
    assert answer.status == 200
    assert (form["sku"]["capacity"], form["properties"]["provisioningState"]) == (1, "Updating")
    # A Location would make az read an empty result.
    headers = dict(answer.headers)
    assert set(headers) == {"Azure-AsyncOperation", "Retry-After"}
    assert concerned(owners) == ["pool_1", "pool_2", "pool_3"]
    again = owners.ask("PATCH", SS, {"sku": {"capacity": 1}})
    assert (again.status, again.headers) == (200, ())
    assert owners.finish(headers) == "Succeeded"
    assert machines(owners) == ["0"]
    assert owners.get(SS)["properties"]["provisioningState"] == "Succeeded"


def profile(**members: object) -> dict[str, object]:
    events = {"scheduledEventsProfile": {"terminateNotificationProfile": members}}
    return {"properties": {"virtualMachineProfile": events}}


def notification(form: Any) -> Any:  # noqa: ANN401 - JSON is anything
    events = form["properties"]["virtualMachineProfile"]["scheduledEventsProfile"]
    return events["terminateNotificationProfile"]


def test_terminate_notification_is_set_as_az_does_it(owners: Owners) -> None:
    """keeps S21: 5 to 15 minutes, where it is enabled."""
    quiet = f"{MANY}/quiet"
    assert notification(owners.get(quiet)) == {"enable": False}

    on = owners.put(quiet, {**owners.get(quiet), **profile(enable=True, notBeforeTimeout="PT7M")})
    off = owners.patch(quiet, profile(enable=False))

    assert notification(on) == {"enable": True, "notBeforeTimeout": "PT7M"}
    assert notification(off) == {"enable": False}
    assert owners.refused("PATCH", quiet, profile(enable=True, notBeforeTimeout="PT1M"))[:2] == (
        409,
        "OperationNotAllowed",
    )
    assert owners.refused("PATCH", quiet, profile(notBeforeTimeout="soon"))[:2] == (
        400,
        "InvalidRequestContent",
    )


def test_what_is_refused_changes_nothing(owners: Owners) -> None:
    owners.put(NEW, BODY, 201)
    before = owners.get(NEW)

    body = {**profile(enable=True, notBeforeTimeout="PT1M"), "sku": {"capacity": 9}, "plan": "x"}

    assert owners.refused("PATCH", NEW, body)[0] == 409
    assert owners.get(NEW) == before


def test_to_send_back_what_was_read_changes_nothing(owners: Owners) -> None:
    owners.put(NEW, BODY, 201)
    form = owners.get(NEW)
    lines = len(owners.world.journal())

    assert owners.put(NEW, form) == form
    # Once, what we made up becomes the owner's own word; after that, nothing is news.
    lines = len(owners.world.journal())
    assert owners.put(NEW, form) == form
    assert len(owners.world.journal()) == lines


def test_a_fleet_files_scale_set_does_not_grow_here(owners: Owners) -> None:
    status, code, words = owners.refused("PATCH", SS, {"sku": {"capacity": 9}})

    assert (status, code) == (409, "OperationNotAllowed")
    assert "declared by the file" in words


def test_a_scale_set_can_be_made_again(owners: Owners) -> None:
    owners.put(NEW, BODY, 201)
    owners.finish(owners.begin("DELETE", NEW))

    form = owners.put(NEW, {"location": "local", "sku": {"capacity": 1}}, 201)

    assert form["tags"] == {}
    assert notification(form) == {"enable": False}
    assert machines(owners, NEW) == ["0"]


def test_who_wants_a_deleted_scale_set_after_all_gets_it(owners: Owners) -> None:
    owners.put(NEW, BODY, 201)
    headers = owners.begin("DELETE", NEW)

    owners.patch(NEW, {"sku": {"capacity": 1}})

    assert owners.finish(headers) == "Succeeded"
    assert machines(owners, NEW) == ["3"]
    assert "deleting" not in str(owners.get(NEW))


def test_a_spot_scale_set_is_made(owners: Owners) -> None:
    body = {"sku": {"capacity": 1}, "properties": {"virtualMachineProfile": {"priority": "Spot"}}}

    form = owners.put(NEW, body, 201)

    assert form["properties"]["virtualMachineProfile"]["priority"] == "Spot"
    assert owners.ask("POST", f"{NEW}/virtualMachines/0/simulateEviction").status == 204


def test_scale_sets_survive_a_restart(owners: Owners) -> None:
    form = owners.put(NEW, BODY, 201)
    headers = owners.begin("DELETE", f"{NEW}/virtualMachines/0")
    world = owners.world

    after = Owners(world=World(clock=world.clock, store=world.store, fabric=world.fabric))

    assert after.get(NEW)["properties"]["uniqueId"] == form["properties"]["uniqueId"]
    assert after.finish(headers) == "Succeeded"
    assert machines(after, NEW) == ["1", "2"]
