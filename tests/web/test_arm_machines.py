"""Virtual machines, as their owners see, change and use them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.events import Audience, Event, EventSource, EventStatus, EventType
from forewarn.core.names import MachineName, ScopeId
from forewarn.core.scopes import Enabling, Machine, Origin, Scope, ScopeKind
from forewarn.fabrics.simulated import Behaviour
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import Fault, FaultyStore
from forewarn.testing.owners import ADA, Owners, compute
from forewarn.testing.sample_fleet import CLASSIC, LONE
from forewarn.testing.worlds import OPERATOR, WEB, World

MANY = f"{compute('rg1')}/virtualMachines"
VM = f"{MANY}/web-0"
NEW = f"{MANY}/new-1"
SET = f"{compute('rg1')}/availabilitySets/avs"
# Told of nothing, as nobody of it ever asked.
QUIET = Scope(
    name="quiet",
    resource_group="rg1",
    enabling=Enabling.ON_REQUEST,
    machines=(Machine(name=MachineName("quiet")),),
)
SPOT_ALONE = replace(QUIET, name="cheap", spot=True, machines=(Machine(name=MachineName("cheap")),))
BODY: Mapping[str, object] = {
    "location": "Mars",
    "tags": {"team": "a"},
    "zones": ["2"],
    "properties": {
        "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
        "osProfile": {"computerName": "n", "adminUsername": "u", "adminPassword": "hush"},
        "forewarn": {"addresses": ["10.9.0.1"], "host": "h", "updateDomain": 1},
    },
}


@pytest.fixture
def owners() -> Owners:
    return Owners(replace(WEB, user_operations_max=10, terminate_notice=None), QUIET, SPOT_ALONE)


def newest(owners: Owners) -> Event:
    return owners.world.desk.events()[-1].event


def power(owners: Owners, vm: str = VM) -> str:
    return str(owners.get(f"{vm}/instanceView")["statuses"][1]["code"])


# -- seen --------------------------------------------------------------------------------------


def test_machines_are_listed_and_shown(owners: Owners) -> None:
    listed = owners.get(MANY)["value"]

    assert [vm["name"] for vm in listed] == ["cheap", "quiet", "web-0", "web-1", "web-2", "web-3"]
    assert owners.get(VM) == listed[2]
    assert "instanceView" not in listed[2]["properties"]


@pytest.mark.parametrize(
    "query", ["$expand=instanceView", "$Expand=INSTANCEVIEW", "statusOnly=true"]
)
def test_the_state_is_shown_where_it_is_asked_for(owners: Owners, query: str) -> None:
    view = owners.get(f"{VM}/InstanceView")

    assert owners.get(f"{VM}?{query}")["properties"]["instanceView"] == view
    assert owners.get(f"{MANY}?{query}")["value"][2]["properties"]["instanceView"] == view


def test_machines_of_a_cloud_service_are_virtual_machines_too() -> None:
    owners = Owners(CLASSIC, LONE)
    owners.principal = ADA

    assert owners.get(f"{compute('rg3')}/virtualMachines/classic-1")["name"] == "classic-1"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("PATCH", ""),
        ("GET", "/instanceView"),
        ("POST", "/restart"),
        ("POST", "/simulateEviction"),
    ],
)
def test_a_machine_that_is_not_there(owners: Owners, method: str, path: str) -> None:
    status, code, words = owners.refused(method, f"{MANY}/nobody{path}", {})

    assert (status, code) == (404, "ResourceNotFound")
    assert words == (
        "The Resource 'Microsoft.Compute/virtualMachines/nobody' under resource group 'rg1' "
        "was not found."
    )


def test_a_machine_of_a_group_that_is_not_there(owners: Owners) -> None:
    owners.principal = ADA
    missing = f"{compute('rg7')}/virtualMachines/web-0"

    assert owners.refused("GET", missing)[:2] == (404, "ResourceGroupNotFound")


# -- used --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "event_type"), [("restart", EventType.REBOOT), ("redeploy", EventType.REDEPLOY)]
)
def test_restart_and_redeploy_are_scheduled(
    owners: Owners, verb: str, event_type: EventType
) -> None:
    """keeps S18: the same events as the platform's, so that handlers can be tried out."""
    headers = owners.begin("POST", f"{VM}/{verb}")

    event = newest(owners)
    assert (event.type, event.source) == (event_type, EventSource.USER)
    assert (event.status, event.audience) == (EventStatus.SCHEDULED, Audience.GUESTS)
    assert owners.status(headers) == "InProgress"
    owners.world.approve("10.0.0.10", event.id)
    owners.world.advance(timedelta(minutes=10))
    assert owners.status(headers) == "Succeeded"


def test_where_nobody_listens_it_happens_at_once(owners: Owners) -> None:
    headers = owners.begin("POST", f"{MANY}/quiet/restart")

    event = newest(owners)
    assert (event.audience, event.status) == (Audience.OPERATORS, EventStatus.STARTED)
    assert owners.finish(headers) == "Succeeded"


def test_the_eleventh_operation_is_refused() -> None:
    """keeps S19: a limit on user operations, with a clear refusal."""
    owners = Owners(replace(WEB, user_operations_max=10))
    for _ in range(10):
        owners.begin("POST", f"{VM}/restart")

    status, code, words = owners.refused("POST", f"{VM}/restart")

    assert (status, code) == (409, "OperationNotAllowed")
    assert "allows 10 user operations at one time and has 10" in words


@pytest.mark.parametrize(
    ("verb", "after"),
    [
        ("powerOff?skipShutdown=false", "PowerState/stopped"),
        ("deallocate", "PowerState/deallocated"),
        ("reimage", "PowerState/running"),
        ("reapply", "PowerState/running"),
        ("start", "PowerState/running"),
    ],
)
def test_power_is_the_owners(owners: Owners, verb: str, after: str) -> None:
    headers = owners.begin("POST", f"{VM}/{verb}")

    assert owners.finish(headers) == "Succeeded"
    assert power(owners) == after
    assert owners.world.document(WEB.id).notices == ()


@pytest.mark.parametrize("verb", ["start", "reapply", "performMaintenance"])
def test_where_nothing_need_happen_it_is_over_at_once(owners: Owners, verb: str) -> None:
    assert owners.status(owners.begin("POST", f"{VM}/{verb}")) == "Succeeded"
    assert not owners.world.desk.events()


def test_a_machine_that_does_not_run_cannot_be_restarted(owners: Owners) -> None:
    owners.finish(owners.begin("POST", f"{VM}/deallocate"))

    status, code, words = owners.refused("POST", f"{VM}/restart")

    assert (status, code) == (409, "OperationNotAllowed")
    assert "start it first" in words
    assert owners.finish(owners.begin("POST", f"{VM}/start")) == "Succeeded"
    assert power(owners) == "PowerState/running"


def test_what_a_fabric_refuses_fails_with_its_reason(owners: Owners) -> None:
    owners.world.fabric.behave(MachineName("quiet"), Behaviour.REFUSES)

    headers = owners.begin("POST", f"{MANY}/quiet/powerOff")

    assert owners.finish(headers) == "Failed"
    assert "refuses" in owners.get(headers["Azure-AsyncOperation"])["error"]["message"]


def test_pending_maintenance_is_brought_forward_by_the_owner(owners: Owners) -> None:
    """keeps N10: approval from outside the VM."""
    mine = owners.world.announce(EventType.REBOOT, "web-0")
    others = owners.world.announce(EventType.FREEZE, "web-1")

    headers = owners.begin("POST", f"{VM}/performMaintenance")
    owners.world.advance(timedelta(minutes=5))

    assert owners.status(headers) == "Succeeded"
    assert owners.world.event(mine.id).status is EventStatus.COMPLETED
    assert owners.world.event(others.id).approval is None


def test_only_spot_machines_are_evicted(owners: Owners) -> None:
    """keeps S21: a spot eviction makes a Preempt."""
    answer = owners.ask("POST", f"{MANY}/cheap/simulateEviction")

    assert (answer.status, answer.body, answer.headers) == (204, b"", ())
    assert (newest(owners).type, newest(owners).source) == (
        EventType.PREEMPT,
        EventSource.PLATFORM,
    )
    owners.world.advance(timedelta(minutes=5))
    assert power(owners, f"{MANY}/cheap") == "PowerState/deallocated"
    status, code, words = owners.refused("POST", f"{VM}/simulateEviction")
    assert (status, code) == (409, "OperationNotAllowed")
    assert "no Spot VM" in words


def test_a_deleted_machine_is_gone_when_that_is_done(owners: Owners) -> None:
    headers = owners.begin("DELETE", VM)
    assert newest(owners).type is EventType.TERMINATE
    assert owners.get(VM)["properties"]["provisioningState"] == "Deleting"
    again = owners.begin("DELETE", VM)
    assert len(owners.world.desk.events()) == 1

    assert owners.finish(headers) == owners.finish(again) == "Succeeded"

    assert owners.refused("GET", VM)[0] == 404
    assert "web-0" not in str(owners.get(MANY))
    assert owners.ask("DELETE", VM).status == 204


# -- made --------------------------------------------------------------------------------------


def test_a_machine_is_made_and_speaks_for_itself(owners: Owners) -> None:
    form = owners.put(NEW, BODY, 201)

    assert form == owners.get(NEW)
    assert (form["location"], form["tags"], form["zones"]) == ("mars", {"team": "a"}, ["2"])
    properties = form["properties"]
    assert properties["hardwareProfile"] == {"vmSize": "Standard_D2s_v5"}
    assert properties["osProfile"] == {"computerName": "n", "adminUsername": "u"}
    assert properties["forewarn"] == {"addresses": ["10.9.0.1"], "host": "h", "updateDomain": 1}
    assert properties["provisioningState"] == "Succeeded"
    caller = owners.world.caller("10.9.0.1")
    assert (caller.scope, caller.machine) == ("rg1/new-1", "new-1")
    assert "hush" not in str(owners.world.journal())
    assert owners.finish(owners.begin("POST", f"{NEW}/restart")) == "Succeeded"


def test_a_machine_can_be_made_in_a_group_of_ones_own(owners: Owners) -> None:
    vm = f"{compute('RG9')}/virtualMachines/first"

    assert owners.put(vm, {"location": "local"}, 201)["id"] == vm
    assert owners.get(vm.replace("RG9", "rg9"))["id"] == vm
    second = vm.replace("RG9", "rg9").replace("first", "second")
    assert owners.put(second, {}, 201)["id"] == second.replace("rg9", "RG9")


def test_a_machine_is_made_in_an_availability_set(owners: Owners) -> None:
    owners.put(SET, {"location": "local", "properties": {"platformUpdateDomainCount": 2}})
    reference = {"properties": {"availabilitySet": {"id": SET.upper()}}}

    forms = [owners.put(f"{MANY}/av-{number}", reference, 201) for number in range(3)]

    domains = [form["properties"]["forewarn"]["updateDomain"] for form in forms]
    assert domains == [0, 1, 0]
    assert forms[0]["properties"]["availabilitySet"] == {"id": SET}
    assert len(owners.get(SET)["properties"]["virtualMachines"]) == 3


def test_two_who_add_to_one_set_both_do() -> None:
    store = FaultyStore(MemoryStore(World().clock))
    owners = Owners(world=World(store=store))
    owners.put(SET, {"location": "local"})
    reference = {"properties": {"availabilitySet": {"id": SET}}}
    store.overtake(lambda: owners.put(f"{MANY}/rival", reference, 201))

    owners.put(f"{MANY}/mine", reference, 201)

    names = [vm["name"] for vm in owners.get(MANY)["value"]]
    assert names == ["mine", "rival"]


def test_who_changes_what_is_gone_meanwhile_is_told_so() -> None:
    store = FaultyStore(MemoryStore(World().clock))
    owners = Owners(world=World(store=store))
    owners.put(NEW, BODY, 201)
    registrar = owners.world.parts.registrar
    store.overtake(lambda: registrar.remove(ScopeId("rg1/new-1"), "new-1", OPERATOR))

    assert owners.refused("PATCH", NEW, {"tags": {}})[:2] == (404, "ResourceNotFound")


def test_who_is_always_too_slow_is_told_so() -> None:
    store = FaultyStore(MemoryStore(World().clock))
    owners = Owners(world=World(store=store))
    owners.put(SET, {"location": "local"})
    store.spoil(*[Fault.CONFLICT] * 5000)

    body = {"properties": {"availabilitySet": {"id": SET}}}

    assert owners.refused("PUT", f"{MANY}/mine", body)[:2] == (409, "Conflict")


@pytest.mark.parametrize(
    ("set_id", "words"),
    [
        ("/x", "no id of an availability set"),
        (SET.replace("rg1", "rg9"), "one resource group"),
        (SET, "there is no availability set"),
        (SET.replace("avs", "quiet"), "there is no availability set"),
    ],
)
def test_an_availability_set_must_be_there(owners: Owners, set_id: str, words: str) -> None:
    body = {"properties": {"availabilitySet": {"id": set_id}}}

    status, code, said = owners.refused("PUT", NEW, body)

    assert (status, code) == (400, "InvalidParameter")
    assert words in said


def test_what_a_file_declared_is_the_files(owners: Owners) -> None:
    web = SET.replace("avs", "web")
    body = {"properties": {"availabilitySet": {"id": web}}}

    status, code, words = owners.refused("PUT", NEW, body)

    assert (status, code) == (409, "OperationNotAllowed")
    assert "declared by the file" in words
    assert owners.refused("PATCH", VM, {"tags": {"a": "b"}})[:2] == (409, "OperationNotAllowed")


def test_one_name_is_one_thing(owners: Owners) -> None:
    status, code, words = owners.refused("PUT", f"{MANY}/web", {})

    assert (status, code) == (409, "Conflict")
    assert "availability-set" in words


@pytest.mark.parametrize("name", ["a b", "-x", "x" * 81])
def test_not_everything_is_a_name(owners: Owners, name: str) -> None:
    assert owners.refused("PUT", f"{MANY}/{name}", {})[:2] == (400, "InvalidRequestContent")


def test_an_address_has_one_owner(owners: Owners) -> None:
    body = {"properties": {"forewarn": {"addresses": ["10.0.0.10"]}}}

    assert owners.refused("PUT", NEW, body)[:2] == (409, "OperationNotAllowed")


def test_a_machine_can_be_made_again(owners: Owners) -> None:
    first = owners.put(NEW, BODY, 201)
    owners.patch(NEW, {"properties": {"scheduledEventsPolicy": _approves(reboot=True)}})
    owners.finish(owners.begin("DELETE", NEW))

    second = owners.put(NEW, {"location": "local"}, 201)

    assert second["properties"]["vmId"] != first["properties"]["vmId"]
    assert second["properties"]["scheduledEventsPolicy"]["userInitiatedReboot"] == {
        "automaticallyApprove": False
    }
    assert "osProfile" not in second["properties"]


def test_a_file_brings_nothing_back_that_was_deleted(owners: Owners) -> None:
    owners.finish(owners.begin("DELETE", f"{MANY}/quiet"))

    assert owners.refused("PUT", f"{MANY}/quiet", {})[:2] == (409, "OperationNotAllowed")


# -- changed -----------------------------------------------------------------------------------


def _approves(**verbs: bool) -> dict[str, object]:
    return {
        f"userInitiated{verb.capitalize()}": {"automaticallyApprove": given}
        for verb, given in verbs.items()
    }


def test_a_partial_body_leaves_the_rest(owners: Owners) -> None:
    """keeps N9: az sends what it wants to change, and not always the rest."""
    made = owners.put(NEW, BODY, 201)

    changed = owners.patch(NEW, {"tags": {"a": "b"}})
    assert changed == {**made, "tags": {"a": "b"}}
    owners.put(NEW, {"properties": {"osProfile": {"windowsConfiguration": {"x": 1}}}})
    again = owners.put(NEW, {"properties": {"forewarn": {"host": "", "addresses": []}}})

    assert again["properties"]["osProfile"] == {
        "computerName": "n",
        "adminUsername": "u",
        "windowsConfiguration": {"x": 1},
    }
    assert again["properties"]["forewarn"] == {"addresses": [], "updateDomain": 1}
    assert again["properties"]["hardwareProfile"] == {"vmSize": "Standard_D2s_v5"}


def test_to_send_back_what_was_read_changes_nothing(owners: Owners) -> None:
    owners.put(NEW, BODY, 201)
    for vm in (NEW, VM):
        form = owners.get(f"{vm}?$expand=instanceView")
        revision = owners.world.parts.books.load(WEB.id).revision
        lines = len(owners.world.journal())

        owners.put(vm, form)

        assert owners.get(f"{vm}?$expand=instanceView") == form
        assert owners.world.parts.books.load(WEB.id).revision == revision
        assert len(owners.world.journal()) == lines


def test_an_owner_says_what_needs_no_approval(owners: Owners) -> None:
    """keeps N10: automatic approval policies, also where a file declared the machine."""
    policy = {"properties": {"scheduledEventsPolicy": _approves(reboot=True)}}

    form = owners.patch(VM, policy)

    assert form["properties"]["scheduledEventsPolicy"]["userInitiatedReboot"] == {
        "automaticallyApprove": True
    }
    owners.begin("POST", f"{VM}/restart")
    assert newest(owners).status is EventStatus.STARTED
    assert (
        owners.get(f"{MANY}/web-1")["properties"]["scheduledEventsPolicy"]
        == (form["properties"]["scheduledEventsPolicy"])
    )


def test_members_that_we_do_not_know_are_kept_for_machines_of_a_file_too(owners: Owners) -> None:
    owners.patch(VM, {"properties": {"licenseType": "x"}, "plan": {"name": "p"}})

    form = owners.get(VM)
    assert (form["properties"]["licenseType"], form["plan"]) == ("x", {"name": "p"})
    owners.world.declare(replace(WEB, user_operations_max=10, terminate_notice=None))
    assert owners.get(VM)["plan"] == {"name": "p"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"location": "venus"}, "InvalidResourceLocation"),
        ({"properties": {"priority": "Spot"}}, "PropertyChangeNotAllowed"),
        ({"properties": {"availabilitySet": {"id": SET}}}, "PropertyChangeNotAllowed"),
    ],
)
def test_some_things_are_settled_at_birth(
    owners: Owners, body: Mapping[str, object], code: str
) -> None:
    owners.put(NEW, BODY, 201)

    assert owners.refused("PATCH", NEW, body)[:2] == (409, code)


def test_a_spot_machine_is_made(owners: Owners) -> None:
    form = owners.put(NEW, {"properties": {"priority": "Spot"}}, 201)

    assert form["properties"]["priority"] == "Spot"
    assert owners.ask("POST", f"{NEW}/simulateEviction").status == 204


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"tags":3}'])
def test_a_body_that_is_nonsense_is_refused(owners: Owners, body: bytes) -> None:
    for method in ("PUT", "PATCH"):
        assert owners.refused(method, VM, body)[:2] == (400, "InvalidRequestContent")


def test_a_machine_on_its_way_out_is_left_alone(owners: Owners) -> None:
    owners.put(NEW, BODY, 201)
    owners.begin("DELETE", NEW)

    status, code, words = owners.refused("PATCH", NEW, {"tags": {}})

    assert (status, code) == (409, "OperationNotAllowed")
    assert "being deleted" in words


def test_what_the_api_made_is_the_apis(owners: Owners) -> None:
    owners.put(NEW, BODY, 201)

    owners.world.declare(replace(WEB, user_operations_max=10))

    scope = owners.world.parts.books.load(ScopeId("rg1/new-1")).scope
    assert (scope.origin, scope.kind) == (Origin.API, ScopeKind.STANDALONE)
    assert json.loads(scope.machines[0].kept)


def test_the_last_thing_that_is_kept_can_be_taken_away_with_another_change(owners: Owners) -> None:
    owners.put(NEW, {"properties": {"licenseType": "x"}}, 201)

    form = owners.put(NEW, {"tags": {"team": "b"}, "properties": {"licenseType": None}})

    assert form["tags"] == {"team": "b"}
    assert "licenseType" not in form["properties"]
