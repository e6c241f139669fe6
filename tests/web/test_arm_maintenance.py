"""Scheduled events, acknowledged from outside the machines."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.events import EventStatus, EventType
from forewarn.core.scopes import Enabling
from forewarn.testing.owners import OLGA, Owners, compute
from forewarn.testing.sample_fleet import POOL
from forewarn.testing.worlds import WEB

EVENTS = "providers/Microsoft.Maintenance/scheduledevents"
WEB_0 = f"{compute('rg1')}/virtualMachines/web-0/{EVENTS}"
WEB_SET = f"{compute('rg1')}/availabilitySets/web/{EVENTS}"
POOL_SET = f"{compute('rg1')}/virtualMachineScaleSets/pool/{EVENTS}"
NOBODYS = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def owners() -> Owners:
    return Owners(WEB, replace(POOL, resource_group="rg1", enabling=Enabling.ALWAYS))


@pytest.mark.parametrize("events", [WEB_0, WEB_SET, WEB_0.upper(), WEB_SET.lower()])
def test_an_event_is_acknowledged_as_a_guest_approves_it(owners: Owners, events: str) -> None:
    """keeps N10: approval from outside the VM; keeps N9: by Azure's own call."""
    event = owners.world.announce(EventType.REBOOT, "web-0")

    answer = owners.ask("POST", f"{events}/{event.id.lower()}/acknowledge")

    assert answer.status == 200
    assert json.loads(answer.body) == {"value": "Successfully approved"}
    approval = owners.world.event(event.id).approval
    assert approval is not None
    assert (approval.by, approval.role) == ("olga", "owner")
    owners.world.advance(timedelta(minutes=5))
    assert owners.world.event(event.id).status is EventStatus.COMPLETED
    assert owners.ask("POST", f"{events}/{event.id}/acknowledge").status == 200


def test_events_of_a_scale_set_are_acknowledged(owners: Owners) -> None:
    event = owners.world.announce(EventType.FREEZE, "pool_0")

    assert owners.ask("POST", f"{POOL_SET}/{event.id}/acknowledge").status == 200
    assert owners.world.event(event.id).approval is not None


def test_an_event_that_is_not_the_resources_is_unknown(owners: Owners) -> None:
    event = owners.world.announce(EventType.FREEZE, "pool_0")

    for unknown in (event.id, NOBODYS):
        status, code, _ = owners.refused("POST", f"{WEB_0}/{unknown}/acknowledge")
        assert (status, code) == (404, "ScheduledEventNotFound")
    assert owners.world.event(event.id).approval is None


def test_several_events_are_acknowledged_together_or_not_at_all(owners: Owners) -> None:
    ids = [owners.world.announce(EventType.FREEZE, f"web-{number}").id for number in range(2)]

    answer = owners.ask("POST", WEB_0, {"value": [*ids, NOBODYS]})
    assert answer.status == 404
    error = json.loads(answer.body)["error"]
    assert [detail["target"] for detail in error["details"]] == [NOBODYS]
    assert not any(owners.world.event(event).approval for event in ids)

    assert owners.ask("POST", WEB_0, {"value": ids}).status == 200
    assert all(owners.world.event(event).approval for event in ids)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        (WEB_0.replace("virtualMachines", "disks"), 400, "InvalidResourceType"),
        (WEB_0.replace("web-0", "nobody"), 404, "ResourceNotFound"),
        (POOL_SET.replace("pool", "nobody"), 404, "ResourceNotFound"),
    ],
)
def test_a_resource_must_have_events(owners: Owners, path: str, status: int, code: str) -> None:
    for target in (path, f"{path}/{NOBODYS}/acknowledge"):
        assert owners.refused("POST", target, {"value": [NOBODYS]})[:2] == (status, code)


def test_nothing_named_is_nothing_to_acknowledge(owners: Owners) -> None:
    assert owners.refused("POST", WEB_0, {"value": []})[:2] == (400, "InvalidRequestContent")


def test_an_event_of_anothers_group_is_not_ones_own(owners: Owners) -> None:
    owners.principal = replace(OLGA, groups=("rg2",))

    assert owners.refused("POST", f"{WEB_0}/{NOBODYS}/acknowledge")[:2] == (
        403,
        "AuthorizationFailed",
    )
