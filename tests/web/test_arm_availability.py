"""Availability sets, and templates that make them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from forewarn.testing.control_planes import SUBSCRIPTION
from forewarn.testing.owners import ADA, Owners, compute
from forewarn.testing.worlds import WEB

MANY = f"{compute('rg1')}/availabilitySets"
WEB_SET = f"{MANY}/web"
NEW = f"{MANY}/new"
MACHINES = f"{compute('rg1')}/virtualMachines"
DEPLOYMENT = (
    f"/subscriptions/{SUBSCRIPTION}/resourcegroups/rg1/providers/Microsoft.Resources/deployments/d"
)
BODY: Mapping[str, object] = {
    "location": "local",
    "properties": {"platformFaultDomainCount": 2, "platformUpdateDomainCount": 3},
    "sku": {"name": "Aligned"},
}


@pytest.fixture
def owners() -> Owners:
    return Owners(replace(WEB, terminate_notice=None))


def test_an_availability_set_is_made_seen_and_deleted(owners: Owners) -> None:
    # Never 201: the SDK takes nothing but 200.
    form = owners.put(NEW, BODY)

    assert form == owners.get(NEW)
    assert form["properties"]["platformFaultDomainCount"] == 2
    assert form["properties"]["platformUpdateDomainCount"] == 3
    assert [one["name"] for one in owners.get(MANY)["value"]] == ["new", "web"]
    subscription = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/availabilitySets"
    assert len(owners.get(subscription)["value"]) == 2
    assert owners.ask("DELETE", NEW).status == 200
    assert owners.refused("GET", NEW)[:2] == (404, "ResourceNotFound")
    assert owners.ask("DELETE", NEW).status == 204
    assert owners.put(NEW, {"location": "local"})["properties"]["platformUpdateDomainCount"] == 5


def test_the_number_of_update_domains_can_be_changed(owners: Owners) -> None:
    owners.put(NEW, BODY)
    reference = {"properties": {"availabilitySet": {"id": NEW}}}
    owners.ask("PUT", f"{MACHINES}/a", reference)

    form = owners.patch(NEW, {"properties": {"platformUpdateDomainCount": 4}})

    assert form["properties"]["platformUpdateDomainCount"] == 4
    assert len(form["properties"]["virtualMachines"]) == 1
    assert owners.refused("PATCH", NEW, {"properties": {"platformUpdateDomainCount": 99}})[:2] == (
        409,
        "OperationNotAllowed",
    )


def test_all_machines_of_a_set_have_its_policy(owners: Owners) -> None:
    policy = {"userInitiatedRedeploy": {"automaticallyApprove": True}}
    body = {"properties": {"scheduledEventsPolicy": policy}, "tags": {"a": "b"}}

    form = owners.put(WEB_SET, {**owners.get(WEB_SET), **body})

    assert form["tags"] == {"a": "b"}
    for each in (WEB_SET, f"{MACHINES}/web-0"):
        found = owners.get(each)["properties"]["scheduledEventsPolicy"]
        assert found["userInitiatedRedeploy"] == {"automaticallyApprove": True}


def test_a_set_with_machines_stays(owners: Owners) -> None:
    status, code, words = owners.refused("DELETE", WEB_SET)

    assert (status, code) == (409, "OperationNotAllowed")
    assert "delete web-0, web-1, web-2, web-3 first" in words


def test_a_fleet_files_set_stays_even_when_it_is_empty(owners: Owners) -> None:
    for number in range(4):
        owners.finish(owners.begin("DELETE", f"{MACHINES}/web-{number}"))

    assert owners.refused("DELETE", WEB_SET)[:2] == (409, "OperationNotAllowed")


def test_nobody_makes_a_set_invisible_by_what_is_kept_for_it(owners: Owners) -> None:
    owners.put(NEW, {"location": "local", "properties": {"forewarn": {"deleting": True}}})

    assert "forewarn" not in owners.get(NEW)["properties"]


def test_a_set_that_is_not_there_cannot_be_changed(owners: Owners) -> None:
    assert owners.refused("PATCH", NEW, {})[:2] == (404, "ResourceNotFound")


# -- templates ---------------------------------------------------------------------------------


def template(*resources: object) -> dict[str, object]:
    return {"properties": {"mode": "incremental", "template": {"resources": list(resources)}}}


def test_a_template_makes_a_set_as_az_does_it(owners: Owners) -> None:
    """keeps N9: `az vm availability-set create` sends a template."""
    resource = {
        "type": "Microsoft.Compute/availabilitySets",
        "name": "new",
        "apiVersion": "2025-04-01",
        "dependsOn": [],
        **BODY,
    }

    form = owners.put(DEPLOYMENT, template(resource), 201)

    assert form["properties"]["provisioningState"] == "Succeeded"
    assert form["properties"]["outputResources"] == [{"id": NEW}]
    assert owners.get(NEW)["properties"]["platformUpdateDomainCount"] == 3
    assert "apiVersion" not in owners.get(NEW)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "InvalidRequestContent"),
        ({"properties": {"template": 1}}, "InvalidRequestContent"),
        (template(3), "InvalidRequestContent"),
        (template({"type": "Microsoft.Compute/availabilitySets"}), "InvalidRequestContent"),
        (template({"type": "Microsoft.Network/virtualNetworks", "name": "n"}), "InvalidTemplate"),
        (template({"name": "n"}), "InvalidTemplate"),
    ],
)
def test_other_templates_are_refused(owners: Owners, body: Mapping[str, object], code: str) -> None:
    assert owners.refused("PUT", DEPLOYMENT, body)[:2] == (400, code)


def test_a_template_takes_the_right_to_its_group(owners: Owners) -> None:
    other = DEPLOYMENT.replace("rg1", "rg2")

    assert owners.refused("PUT", other, template())[:2] == (403, "AuthorizationFailed")
    owners.principal = ADA
    assert owners.put(other, template(), 201)["properties"]["outputResources"] == []
