"""Whatever is sent to the owners' API, it is answered, and never by a bug."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from forewarn.testing.owners import Owners, compute
from forewarn.testing.sample_fleet import LONE, POOL
from forewarn.testing.worlds import WEB

RESOURCES = [
    f"{compute('rg1')}/{path}"
    for path in (
        "virtualMachines/web-0",
        "virtualMachines/new",
        "virtualMachineScaleSets/pool",
        "virtualMachineScaleSets/new",
        "virtualMachineScaleSets/pool/virtualMachines/0",
        "availabilitySets/web",
        "availabilitySets/new",
    )
]
ACTIONS = [
    f"{compute('rg1')}/{path}"
    for path in (
        "virtualMachines/web-0/restart",
        "virtualMachineScaleSets/pool/restart",
        "virtualMachineScaleSets/pool/delete",
        "virtualMachines/web-0/providers/Microsoft.Maintenance/scheduledevents",
    )
]
NAMES = st.sampled_from(
    [
        *("location", "tags", "zones", "sku", "properties", "id", "name", "capacity", "value"),
        *("hardwareProfile", "vmSize", "availabilitySet", "priority", "instanceIds"),
        *("platformUpdateDomainCount", "scheduledEventsPolicy", "userInitiatedReboot"),
        *("allInstancesDown", "automaticallyApprove", "virtualMachineProfile", "enable"),
        *("scheduledEventsProfile", "terminateNotificationProfile", "notBeforeTimeout"),
        *("osImageNotificationProfile", "forewarn", "addresses", "host", "updateDomain"),
        *("deleting", "adminPassword", "unknown", ""),
    ]
)
WORDS = st.sampled_from(
    [
        *("", "local", "Spot", "Regular", "PT5M", "PT0S", "-PT5M", "P9999999D", "*", "0"),
        *("10.0.0.1", "::1", "host-1", "a b", "\x00", "\U0001f600"),
        *(RESOURCES[5], "/" * 7),
    ]
)
LEAVES = st.none() | st.booleans() | st.integers(-2, 1100) | st.floats() | WORDS
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
BODIES = st.dictionaries(NAMES, JSON, max_size=5)


def _owners() -> Owners:
    lone = replace(LONE, resource_group="rg1")
    return Owners(replace(WEB, terminate_notice=None), replace(POOL, resource_group="rg1"), lone)


@given(st.lists(st.tuples(st.sampled_from(RESOURCES), BODIES), min_size=1, max_size=4))
def test_any_resource_is_answered(sent: list[tuple[str, dict[str, Any]]]) -> None:
    owners = _owners()
    for resource, body in sent:
        for method in ("PUT", "PATCH"):
            # Not everything that Python calls JSON is: NaN is refused as it arrives.
            answer = owners.ask(method, resource, json.dumps(body).encode())
            assert answer.status in {200, 201, 400, 404, 405, 409}
        assert owners.ask("GET", resource).status in {200, 404}
    assert len(owners.get(f"{compute('rg1')}/virtualMachines")["value"]) >= 5


@given(st.sampled_from(ACTIONS), BODIES | JSON)
def test_any_action_is_answered(action: str, body: object) -> None:
    answer = _owners().ask("POST", action, json.dumps(body).encode())

    assert answer.status in {200, 202, 400, 404, 409}
