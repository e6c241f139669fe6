"""What all calls of the owners' API have in common; and the subscription as a whole."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from forewarn.core.events import EventType, Result
from forewarn.core.journal import Role
from forewarn.core.names import MachineName
from forewarn.core.rights import Principal, Right
from forewarn.core.scopes import Machine, Scope
from forewarn.errors import (
    Conflict,
    Forbidden,
    ForewarnError,
    Malformed,
    Refused,
    Unavailable,
    Unfinished,
    Unknown,
    Unsuccessful,
)
from forewarn.testing.control_planes import SUBSCRIPTION, TENANT
from forewarn.testing.owners import ADA, BASE, OLGA, VERSION, Owners, compute
from forewarn.testing.sample_fleet import BATCH, CLASSIC, LONE, POOL
from forewarn.testing.worlds import OPERATOR, WEB
from forewarn.web import arm_calls
from forewarn.web.arm_calls import CODE_OF

ROOT = f"/subscriptions/{SUBSCRIPTION}"
VM = f"{compute('rg1')}/virtualMachines/web-0"


@pytest.fixture
def owners() -> Owners:
    return Owners(replace(WEB, location="mars"), BATCH, LONE, CLASSIC, POOL)


def test_every_family_of_errors_has_a_code() -> None:
    families = {f for f in ForewarnError.__subclasses__() if f.__module__ == "forewarn.errors"}
    # What clients that wait tell their own callers; no service says so.
    families -= {Unfinished, Unsuccessful}

    assert families <= set(CODE_OF)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Malformed("x"), 400, "InvalidRequestContent"),
        (Unknown("x"), 404, "ResourceNotFound"),
        (Forbidden("x"), 403, "AuthorizationFailed"),
        (Refused("x"), 409, "OperationNotAllowed"),
        (Conflict(["x"]), 409, "Conflict"),
        (Unavailable("x"), 503, "ServiceUnavailable"),
    ],
)
def test_an_error_has_azures_code(error: ForewarnError, status: int, code: str) -> None:
    answer = arm_calls.refused(error)

    assert answer.status == status
    assert json.loads(answer.body) == {"error": {"code": code, "message": str(error)}}
    assert answer.headers == ((("Retry-After", "1"),) if status == 503 else ())


def test_an_error_of_no_family_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="belongs to no family"):
        arm_calls.refused(ForewarnError("x"))


@pytest.mark.parametrize("version", ["2015-06-15", "2026-04-01", "anything"])
def test_any_api_version_is_answered(owners: Owners, version: str) -> None:
    """keeps N9: one release of az sends half a dozen of them."""
    assert owners.get(f"{VM}?API-Version={version}&api-version={version}")["name"] == "web-0"


@pytest.mark.parametrize("query", ["api-version=", "api-version"])
def test_an_api_version_must_be_given(owners: Owners, query: str) -> None:
    status, code, _ = owners.refused("GET", f"{VM}?{query}")

    assert (status, code) == (400, "MissingApiVersionParameter")


@pytest.mark.parametrize("query", ["&x=%ff", "&a=b" * 50])
def test_a_query_that_is_nonsense_is_refused(owners: Owners, query: str) -> None:
    assert owners.refused("GET", f"{VM}?api-version=1{query}")[:2] == (400, "InvalidRequestContent")


def test_there_is_one_subscription(owners: Owners) -> None:
    subscription = owners.get(ROOT)

    assert owners.get("/subscriptions") == {"value": [subscription]}
    assert (subscription["subscriptionId"], subscription["tenantId"]) == (SUBSCRIPTION, TENANT)
    other = "/subscriptions/33333333-3333-3333-3333-333333333333"
    assert owners.refused("GET", other)[:2] == (404, "SubscriptionNotFound")
    assert owners.refused("GET", f"{other}/resourceGroups")[:2] == (404, "SubscriptionNotFound")


def test_paths_and_names_ignore_case_and_are_shown_as_they_are_stored(owners: Owners) -> None:
    assert owners.get(VM.upper())["id"] == VM
    assert owners.get(VM.lower())["id"] == VM


# -- groups, places and kinds -----------------------------------------------------------------


def test_groups_are_those_that_have_something(owners: Owners) -> None:
    owners.principal = ADA

    names = [group["name"] for group in owners.get(f"{ROOT}/resourcegroups")["value"]]

    assert names == ["rg1", "rg2", "rg3", "rg4"]
    assert owners.get(f"{ROOT}/resourcegroups/RG1") == {
        "id": f"{ROOT}/resourceGroups/rg1",
        "name": "rg1",
        "type": "Microsoft.Resources/resourceGroups",
        "location": "mars",
        "properties": {"provisioningState": "Succeeded"},
    }
    assert owners.refused("GET", f"{ROOT}/resourcegroups/rg9")[:2] == (404, "ResourceGroupNotFound")


def test_an_owner_sees_its_groups_and_no_others(owners: Owners) -> None:
    names = [group["name"] for group in owners.get(f"{ROOT}/resourcegroups")["value"]]
    machines = owners.get(f"{ROOT}/providers/Microsoft.Compute/virtualMachines")["value"]

    assert names == ["rg1", "rg9"]
    assert [machine["name"] for machine in machines] == ["web-0", "web-1", "web-2", "web-3"]
    assert owners.get(f"{ROOT}/resourcegroups/rg9")["location"] == "local"
    assert owners.get(f"{compute('rg9')}/virtualMachines") == {"value": []}
    assert owners.refused("GET", f"{compute('rg3')}/virtualMachines")[:2] == (
        403,
        "AuthorizationFailed",
    )


def test_a_reader_changes_nothing(owners: Owners) -> None:
    owners.principal = Principal(id="3", name="rosa", role=Role.READER)

    assert owners.get(VM)["name"] == "web-0"
    assert owners.refused("POST", f"{VM}/restart")[:2] == (403, "AuthorizationFailed")


def test_reading_takes_the_right_to_read_and_the_rest_to_own(owners: Owners) -> None:
    for route in owners.table.routes:
        assert route.right is (Right.READ if route.method == "GET" else Right.OWN)


def test_places_and_kinds_are_told(owners: Owners) -> None:
    owners.principal = ADA

    places = owners.get(f"{ROOT}/locations")["value"]
    provider = owners.get(f"{ROOT}/providers/Microsoft.Compute")

    assert [place["name"] for place in places] == ["local", "mars"]
    assert owners.get(f"{ROOT}/providers") == {"value": [provider]}
    kinds = [kind["resourceType"] for kind in provider["resourceTypes"]]
    assert "virtualMachineScaleSets" in kinds


def test_resources_of_all_kinds_are_listed(owners: Owners) -> None:
    owners.principal = ADA

    def names(path: str) -> list[str]:
        return [resource["name"] for resource in owners.get(f"{ROOT}{path}")["value"]]

    assert names("/resources") == [
        *("web", "batch", "pool"),
        *("web-0", "web-1", "web-2", "web-3"),
        *("classic-0", "classic-1", "classic-2", "lone"),
    ]
    assert names("/resourceGroups/rg4/resources") == ["pool"]
    wanted = "$filter=resourceType%20eq%20'microsoft.compute/virtualMachineScaleSets'"
    assert names(f"/resources?{wanted}") == ["batch", "pool"]


# -- pages ------------------------------------------------------------------------------------


def test_lists_come_in_pages(owners: Owners) -> None:
    owners.principal = ADA
    target = f"{ROOT}/providers/Microsoft.Compute/virtualMachines?$top=3"
    pages = []
    while target:
        page = owners.get(target)
        pages.append([machine["name"] for machine in page["value"]])
        target = page.get("nextLink", "")
        assert not target or target.startswith(f"{BASE}{ROOT}/providers/")
        assert not target or f"api-version={VERSION}" in target

    assert pages == [
        ["web-0", "web-1", "web-2"],
        ["web-3", "classic-0", "classic-1"],
        ["classic-2", "lone"],
    ]


def test_a_long_list_is_never_one_page() -> None:
    def machine(number: int) -> Machine:
        return Machine(name=MachineName(f"vm-{number:03}"))

    crowd = replace(WEB, machines=tuple(machine(number) for number in range(250)))
    # Sorted differently as ids of scopes than as keys that merely begin with them.
    near = Scope(name="web-x", resource_group="rg1", machines=(Machine(name=MachineName("x")),))
    owners = Owners(crowd, near)

    target = f"{compute('rg1')}/virtualMachines"
    sizes, seen = [], []
    while target:
        page = owners.get(target)
        sizes.append(len(page["value"]))
        seen += [one["name"] for one in page["value"]]
        target = page.get("nextLink", "")

    assert sizes == [100, 100, 51]
    assert seen == [*(f"vm-{number:03}" for number in range(250)), "x"]


@pytest.mark.parametrize(
    "top", ["0", "-1", "1001", "x", "", "¹", "0000000019", f"000000001{'9' * 5000}"]
)
def test_a_page_has_a_size(owners: Owners, top: str) -> None:
    answer = owners.refused("GET", f"{compute('rg1')}/virtualMachines?$top={top}")

    assert answer[:2] == (400, "InvalidRequestContent")


# -- operations -------------------------------------------------------------------------------


def test_an_operation_is_polled_until_it_is_over(owners: Owners) -> None:
    """keeps S18: the operation of a restart ends when the machine is back."""
    headers = owners.begin("POST", f"{VM}/restart")
    status, monitor = headers["Azure-AsyncOperation"], headers["Location"]
    assert status.startswith(
        f"{BASE}{ROOT}/providers/Microsoft.Compute/locations/local/operations/"
    )
    assert status.endswith(f"?api-version={VERSION}")

    waiting = owners.ask("GET", status)
    assert (waiting.status, waiting.headers) == (200, (("Retry-After", "1"),))
    assert json.loads(waiting.body)["status"] == "InProgress"
    result = owners.ask("GET", monitor)
    assert result.status == 202
    assert dict(result.headers)["Location"] == monitor

    assert owners.finish(headers) == "Succeeded"
    over = owners.get(status)
    assert {"startTime", "endTime", "status", "name", "properties"} == set(over)
    (placed,) = owners.world.desk.events()
    assert over["properties"] == {"events": [placed.event.id]}
    result = owners.ask("GET", monitor)
    assert (result.status, result.body) == (200, b"")


def test_a_failed_operation_says_why(owners: Owners) -> None:
    headers = owners.begin("POST", f"{VM}/restart")
    (placed,) = owners.world.desk.events()
    owners.world.approve("10.0.0.10", placed.event.id)
    owners.world.desk.resolve(placed.event.id, Result.FAILED, OPERATOR)

    over = owners.get(headers["Azure-AsyncOperation"])

    assert over["status"] == "Failed"
    assert over["error"]["code"] == "OperationFailed"
    assert "web-0" in over["error"]["message"]
    assert owners.refused("GET", headers["Location"])[:2] == (409, "OperationFailed")


def test_a_canceled_operation_says_so(owners: Owners) -> None:
    """keeps N5: an owner calls off what it asked for."""
    headers = owners.begin("POST", f"{VM}/redeploy")
    (placed,) = owners.world.desk.events()

    owners.world.desk.cancel(placed.event.id, OPERATOR)

    assert owners.status(headers) == "Canceled"


def test_an_operation_is_nobody_elses_business(owners: Owners) -> None:
    headers = owners.begin("POST", f"{VM}/restart")
    owners.principal = replace(OLGA, groups=("rg2",))

    assert owners.refused("GET", headers["Azure-AsyncOperation"])[:2] == (404, "ResourceNotFound")


def test_an_operation_that_nobody_began_is_unknown(owners: Owners) -> None:
    nobodys = f"{ROOT}/providers/Microsoft.Compute/locations/local/operations/{SUBSCRIPTION}"

    assert owners.refused("GET", nobodys)[:2] == (404, "ResourceNotFound")


def test_who_asked_is_in_the_journal(owners: Owners) -> None:
    owners.begin("POST", f"{VM}/restart")

    entry = next(e for e in owners.world.journal() if e.event is not None)
    assert entry.event is not None
    assert entry.event.type is EventType.REBOOT
    assert (entry.actor.name, entry.actor.role.value, entry.actor.address) == (
        "olga",
        "owner",
        "127.0.0.7",
    )
