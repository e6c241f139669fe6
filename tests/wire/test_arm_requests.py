"""What we understand of the bodies that owners send."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.scopes import OFF, AutoApproval, OwnerPolicies, Scope, ScopeKind
from forewarn.errors import Malformed
from forewarn.testing.sample_fleet import POOL
from forewarn.wire import arm_requests
from forewarn.wire.arm_requests import Wanted

FIVE = timedelta(minutes=5)
SCALE_SET = Scope(name="ss", resource_group="rg1", kind=ScopeKind.SCALE_SET)


def wanted(**body: object) -> Wanted:
    return Wanted(json.dumps(body).encode())


def policy(**members: bool) -> Wanted:
    form = {name: {"automaticallyApprove": given} for name, given in members.items()}
    return wanted(properties={"scheduledEventsPolicy": form})


def profile(kind: str, **members: object) -> Wanted:
    events = {f"{kind}NotificationProfile": members}
    return wanted(properties={"virtualMachineProfile": {"scheduledEventsProfile": events}})


def test_what_is_left_out_changes_nothing() -> None:
    for nothing in (wanted(), wanted(location=None, properties=None, tags=None)):
        assert (nothing.location, nothing.tags, nothing.size) == (None, None, None)
        assert (nothing.capacity, nothing.spot, nothing.availability_set) == (None, None, None)
        assert (nothing.addresses, nothing.host, nothing.zones) == (None, None, None)
        assert nothing.policies(POOL) == POOL.owner


def test_a_machine_is_understood() -> None:
    found = wanted(
        location="West Europe",
        tags={"b": "2", "a": "1"},
        zones=["2"],
        properties={
            "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
            "availabilitySet": {"id": "/x"},
            "priority": "Spot",
            "forewarn": {
                "addresses": ["10.0.0.1", "::ffff:10.0.0.2", "fd00::1%eth0", "FD00::2"],
                "host": "host-1",
                "updateDomain": 2,
            },
            "unknown": {"member": 1},
        },
    )

    assert found.location == "westeurope"
    assert found.tags == (("a", "1"), ("b", "2"))
    assert (found.zones, found.size, found.spot) == (("2",), "Standard_D2s_v5", True)
    assert found.availability_set == "/x"
    assert found.addresses == ("10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2")
    assert (found.host, found.ours.update_domain) == ("host-1", 2)


def test_a_scale_set_is_understood() -> None:
    found = wanted(
        sku={"name": "Standard_D2", "capacity": 3},
        properties={"virtualMachineProfile": {"priority": "Regular"}},
    )

    assert (found.capacity, found.size, found.spot) == (3, "Standard_D2", False)


@pytest.mark.parametrize(
    "body",
    [
        {"location": 1},
        {"location": ""},
        {"tags": {"a": 1}},
        {"tags": {str(number): "" for number in range(51)}},
        {"sku": {"capacity": -1}},
        {"sku": {"capacity": 1001}},
        {"sku": {"capacity": "3"}},
        {"properties": []},
        {"properties": {"priority": "Cheap"}},
        {"properties": {"availabilitySet": {}}},
        {"properties": {"forewarn": {"addresses": ["web-0"]}}},
        {"properties": {"forewarn": {"addresses": ["0.0.0.0"]}}},
        {"properties": {"forewarn": {"addresses": ["ff02::1"]}}},
        {"properties": {"forewarn": {"addresses": [""]}}},
        {"properties": {"forewarn": {"updateDomain": -1}}},
        {"properties": {"forewarn": {"host": "a/b"}}},
    ],
)
def test_what_we_do_know_is_read_strictly(body: Mapping[str, object]) -> None:
    with pytest.raises(Malformed):
        wanted(**body)


@pytest.mark.parametrize("name", ["", "a b", "-a", "a/b", "a" * 81, "ä", "a\n"])
def test_not_everything_is_a_name(name: str) -> None:
    with pytest.raises(Malformed, match="is no name of a VM"):
        arm_requests.check_name("VM", name)


# -- policies ---------------------------------------------------------------------------------


def test_an_owner_sets_what_is_approved_by_itself() -> None:
    """keeps N10: automatic approval policies."""
    said = policy(userInitiatedReboot=True, allInstancesDown=False)

    assert said.policies(SCALE_SET) == OwnerPolicies(approve_reboot=True, all_instances_down=False)
    before = replace(SCALE_SET, owner=OwnerPolicies(approve_reboot=True, approve_redeploy=True))
    assert policy(userInitiatedRedeploy=False).policies(before) == OwnerPolicies(
        approve_reboot=True, approve_redeploy=False
    )


def test_to_send_back_what_is_in_force_sets_nothing() -> None:
    declared = replace(SCALE_SET, auto_approve=(AutoApproval.USER_REBOOT,), terminate_notice=FIVE)

    same = policy(userInitiatedReboot=True, userInitiatedRedeploy=False, allInstancesDown=True)
    assert same.policies(declared) == OwnerPolicies()
    same = profile("terminate", enable=True, notBeforeTimeout="PT5M")
    assert same.policies(declared) == OwnerPolicies()
    same = profile("osImage", enable=False)
    assert same.policies(declared) == OwnerPolicies()
    other = policy(userInitiatedReboot=False)
    assert other.policies(declared) == OwnerPolicies(approve_reboot=False)


@pytest.mark.parametrize(
    ("members", "notice"),
    [
        ({"enable": True}, FIVE),
        ({"enable": True, "notBeforeTimeout": "PT10M"}, 2 * FIVE),
        ({"notBeforeTimeout": "PT10M"}, None),
        ({"enable": False}, None),
        ({}, None),
    ],
)
def test_terminate_notification_is_turned_on(
    members: Mapping[str, object], notice: timedelta | None
) -> None:
    """keeps S21: instances are told of their deletion where that is enabled."""
    assert profile("terminate", **members).policies(SCALE_SET).terminate_notice == notice


@pytest.mark.parametrize(
    ("members", "notice"),
    [
        # az leaves the time out where it turns the notification off.
        ({"enable": False}, OFF),
        ({"notBeforeTimeout": "PT10M"}, 2 * FIVE),
        # A quarter of an hour is what is declared.
        ({"enable": True}, None),
    ],
)
def test_terminate_notification_is_changed_and_turned_off(
    members: Mapping[str, object], notice: timedelta | None
) -> None:
    assert profile("terminate", **members).policies(POOL).terminate_notice == notice


def test_notification_of_a_new_image_is_set_alike() -> None:
    assert profile("osImage", enable=True).policies(SCALE_SET).os_image_notice == 3 * FIVE
    on = replace(SCALE_SET, owner=OwnerPolicies(os_image_notice=3 * FIVE))
    assert profile("osImage", enable=False).policies(on).os_image_notice == OFF
    assert profile("osImage").policies(on).os_image_notice == 3 * FIVE


def test_publishing_to_event_grid_is_set() -> None:
    def said(**members: object) -> Wanted:
        targets = {"eventGridAndResourceGraph": members}
        form = {"scheduledEventsAdditionalPublishingTargets": targets}
        return wanted(properties={"scheduledEventsPolicy": form})

    on = replace(SCALE_SET, owner=OwnerPolicies(event_grid=True))
    assert said(enable=True).policies(SCALE_SET).event_grid is True
    assert said(enable=False).policies(on).event_grid is False
    assert said().policies(on).event_grid is True


# -- instances and events ---------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"{}", b'{"instanceIds":[]}', b'{"instanceIds":null}'])
def test_no_instances_named_are_all_of_them(body: bytes) -> None:
    assert arm_requests.instance_ids(body) is None


def test_instances_and_events_are_named() -> None:
    assert arm_requests.instance_ids(b'{"instanceIds":["1","2"]}') == ("1", "2")
    assert arm_requests.event_ids(b'{"value":["A"]}') == ("A",)


@pytest.mark.parametrize("body", [b"", b'{"value":[]}', b'{"value":[""]}', b'{"value":"A"}'])
def test_events_must_be_named(body: bytes) -> None:
    with pytest.raises(Malformed):
        arm_requests.event_ids(body)
