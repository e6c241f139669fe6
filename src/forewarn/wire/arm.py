"""Azure Resource Manager's JSON, as it is shown: names of resources, and their forms.

What an owner sent and we do not understand was kept, and is shown again; what we know is laid over
it. Evidence for every form is in docs/protocol.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

import msgspec

from forewarn.core import scopes, starting
from forewarn.core.events import Audience, Event, EventStatus, EventType
from forewarn.core.ledgers import Ledger
from forewarn.core.names import MachineName
from forewarn.core.scopes import AutoApproval, Machine, Presence, Scope, ScopeKind
from forewarn.wire import instance
from forewarn.wire.arm_kept import kept_members, overlaid

Json: TypeAlias = "dict[str, object]"

LOCATION_DEFAULT: Final = "local"
COMPUTE: Final = "Microsoft.Compute"
MACHINES: Final = "virtualMachines"
SCALE_SETS: Final = "virtualMachineScaleSets"
AVAILABILITY_SETS: Final = "availabilitySets"
INSTANCES: Final = f"{SCALE_SETS}/{MACHINES}"

_POWER: Final = {
    Presence.RUNNING: ("PowerState/running", "VM running"),
    Presence.STOPPED: ("PowerState/stopped", "VM stopped"),
    Presence.DEALLOCATED: ("PowerState/deallocated", "VM deallocated"),
}


def dump(form: object) -> bytes:
    """The bytes of a form."""
    return msgspec.json.encode(form)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a subscription's resources, from the root down."""

    subscription: str

    @property
    def root(self) -> str:
        return f"/subscriptions/{self.subscription}"

    def group(self, group: str) -> str:
        return f"{self.root}/resourceGroups/{group}"

    def compute(self, scope: Scope, kind: str, name: str) -> str:
        """A resource of a kind, in the group of a scope."""
        return f"{self.group(scope.resource_group)}/providers/{COMPUTE}/{kind}/{name}"

    def machine(self, scope: Scope, machine: Machine) -> str:
        if scope.kind is ScopeKind.SCALE_SET:
            number = instance.instance_id(scope, machine)
            return f"{self.compute(scope, SCALE_SETS, scope.name)}/{MACHINES}/{number}"
        return self.compute(scope, MACHINES, machine.name)


# -- what is there ---------------------------------------------------------------------------


def is_there(machine: Machine) -> bool:
    """Whether owners still see a machine."""
    return machine.presence is not Presence.DELETED


def machines(scope: Scope) -> tuple[Machine, ...]:
    """The machines of a scope that its owner sees."""
    return tuple(machine for machine in scope.machines if is_there(machine))


def leaving(ledger: Ledger) -> frozenset[MachineName]:
    """The machines that somebody has asked to delete."""
    return frozenset(
        machine
        for event in ledger.open_events
        if event.type is EventType.TERMINATE
        for machine in event.machines
    )


def staying(ledger: Ledger) -> tuple[Machine, ...]:
    """The machines that are there, and will be."""
    gone = leaving(ledger)
    return tuple(machine for machine in machines(ledger.scope) if machine.name not in gone)


def pending_maintenance(ledger: Ledger, names: Iterable[str]) -> tuple[Event, ...]:
    """The platform's maintenance of some machines that waits for its notice to run out."""
    wanted = frozenset(names)
    return tuple(
        event
        for event in ledger.open_events
        if event.status is EventStatus.SCHEDULED
        and event.audience is Audience.GUESTS
        and starting.is_maintenance(event)
        and not wanted.isdisjoint(event.machines)
    )


# -- resources -------------------------------------------------------------------------------


def virtual_machine(names: Names, ledger: Ledger, machine: Machine, *, with_view: bool) -> Json:
    """A virtual machine that is no instance of a scale set."""
    scope = ledger.scope
    properties: Json = _machine_properties(ledger, machine)
    if scope.kind is ScopeKind.AVAILABILITY_SET:
        properties["availabilitySet"] = {"id": names.compute(scope, AVAILABILITY_SETS, scope.name)}
    if scope.spot:
        properties |= {"priority": "Spot", "evictionPolicy": "Deallocate"}
    properties["scheduledEventsPolicy"] = _events_policy(scope)
    if with_view:
        properties["instanceView"] = instance_view(ledger, machine)
    known: Json = {
        "id": names.machine(scope, machine),
        "name": machine.name,
        "type": f"{COMPUTE}/{MACHINES}",
        **_placed(scope, machine),
        "properties": properties,
    }
    return overlaid(kept_members(machine.kept), known)


def scale_set_instance(names: Names, ledger: Ledger, machine: Machine, *, with_view: bool) -> Json:
    """One instance of a scale set."""
    scope = ledger.scope
    properties = {**_machine_properties(ledger, machine), "latestModelApplied": True}
    if with_view:
        properties["instanceView"] = instance_view(ledger, machine)
    known: Json = {
        "id": names.machine(scope, machine),
        "instanceId": instance.instance_id(scope, machine),
        "name": machine.name,
        "type": f"{COMPUTE}/{INSTANCES}",
        **_placed(scope, machine),
        "sku": {"name": machine.size, "tier": "Standard"},
        "properties": properties,
    }
    return overlaid(kept_members(machine.kept), known)


def instance_view(ledger: Ledger, machine: Machine) -> Json:
    """How a machine is at this moment."""
    code, shown = _POWER[machine.presence]
    view: Json = {
        "computerName": machine.name,
        "platformUpdateDomain": machine.update_domain,
        "platformFaultDomain": 0,
        "statuses": [
            _provisioning(_machine_state(ledger, machine)),
            {"code": code, "level": "Info", "displayStatus": shown},
        ],
    }
    pending = pending_maintenance(ledger, (machine.name,))
    if pending:
        view["maintenanceRedeployStatus"] = {
            "isCustomerInitiatedMaintenanceAllowed": True,
            "maintenanceWindowStartTime": f"{pending[0].not_before:%Y-%m-%dT%H:%M:%S+00:00}",
            "lastOperationResultCode": "None",
        }
    return view


def scale_set(names: Names, ledger: Ledger) -> Json:
    """A scale set."""
    scope = ledger.scope
    there = machines(scope)
    kept = kept_members(scope.kept)
    profile: Json = {"scheduledEventsProfile": _events_profile(scope)}
    if scope.spot:
        profile |= {"priority": "Spot", "evictionPolicy": "Deallocate"}
    known: Json = {
        "id": names.compute(scope, SCALE_SETS, scope.name),
        "name": scope.name,
        "type": f"{COMPUTE}/{SCALE_SETS}",
        "location": location(scope),
        "sku": {"capacity": len(staying(ledger))},
        "properties": {
            "uniqueId": instance.derived_id(scope.id),
            "provisioningState": scale_set_state(ledger),
            "virtualMachineProfile": profile,
            "scheduledEventsPolicy": _events_policy(scope),
        },
    }
    usual: Json = {
        "tags": {},
        # Of the instances there are; the owner may want another one for those to come.
        "sku": {"name": _size(there), "tier": "Standard"},
        "properties": {
            "orchestrationMode": "Uniform",
            "overprovision": False,
            "singlePlacementGroup": True,
            "upgradePolicy": {"mode": "Manual"},
        },
    }
    return overlaid(overlaid(usual, kept), known)


def size(scope: Scope) -> str:
    """The size of a scale set's instances to come: as its owner said last, or as they are."""
    sku = kept_members(scope.kept).get("sku")
    said = sku.get("name") if isinstance(sku, dict) else None
    return said if isinstance(said, str) and said else _size(scope.machines)


def _size(machines: Iterable[Machine]) -> str:
    return next((machine.size for machine in machines if machine.size), "")


def scale_set_view(ledger: Ledger) -> Json:
    """How a scale set's instances are at this moment, counted."""
    counts: dict[str, int] = {}
    for machine in machines(ledger.scope):
        for code in (
            _provisioning(_machine_state(ledger, machine))["code"],
            _POWER[machine.presence][0],
        ):
            counts[str(code)] = counts.get(str(code), 0) + 1
    summary = [{"code": code, "count": count} for code, count in sorted(counts.items())]
    return {
        "virtualMachine": {"statusesSummary": summary},
        "statuses": [_provisioning(scale_set_state(ledger))],
    }


def availability_set(names: Names, ledger: Ledger) -> Json:
    """An availability set."""
    scope = ledger.scope
    known: Json = {
        "id": names.compute(scope, AVAILABILITY_SETS, scope.name),
        "name": scope.name,
        "type": f"{COMPUTE}/{AVAILABILITY_SETS}",
        "location": location(scope),
        "properties": {
            "platformUpdateDomainCount": scope.update_domains,
            "virtualMachines": [
                {"id": names.machine(scope, machine)} for machine in machines(scope)
            ],
            "scheduledEventsPolicy": _events_policy(scope),
        },
    }
    usual: Json = {
        "tags": {},
        "sku": {"name": "Aligned"},
        "properties": {"platformFaultDomainCount": 1, "provisioningState": "Succeeded"},
    }
    return overlaid(overlaid(usual, kept_members(scope.kept)), known)


def location(scope: Scope) -> str:
    """Where a scope is."""
    return scope.location or LOCATION_DEFAULT


def summary(resource: Json) -> Json:
    """A resource as lists of all kinds show it."""
    members = ("id", "name", "type", "location", "tags", "sku")
    return {member: resource[member] for member in members if member in resource}


def _machine_properties(ledger: Ledger, machine: Machine) -> Json:
    known: Json = {
        "vmId": instance.vm_id(ledger.scope, machine),
        "provisioningState": _machine_state(ledger, machine),
    }
    if machine.size:
        known["hardwareProfile"] = {"vmSize": machine.size}
    # How guests are told from each other is ours, not Azure's; it is shown under our name.
    ours: Json = {"addresses": list(machine.addresses), "updateDomain": machine.update_domain}
    if machine.host is not None:
        ours["host"] = machine.host
    known["forewarn"] = ours
    return known


def _placed(scope: Scope, machine: Machine) -> Json:
    placed: Json = {"location": location(scope), "tags": dict(machine.tags)}
    if machine.zone:
        placed["zones"] = [machine.zone]
    return placed


def _machine_state(ledger: Ledger, machine: Machine) -> str:
    return "Deleting" if machine.name in leaving(ledger) else "Succeeded"


def scale_set_state(ledger: Ledger) -> str:
    """Whether a scale set is becoming smaller."""
    if not leaving(ledger):
        return "Succeeded"
    return "Updating" if staying(ledger) else "Deleting"


def _provisioning(state: str) -> Json:
    return {
        "code": f"ProvisioningState/{state.lower()}",
        "level": "Info",
        "displayStatus": f"Provisioning {state.lower()}" if state == "Succeeded" else state,
    }


def _events_policy(scope: Scope) -> Json:
    given = scopes.auto_approvals(scope)
    policy: Json = {
        "userInitiatedReboot": {"automaticallyApprove": AutoApproval.USER_REBOOT in given},
        "userInitiatedRedeploy": {"automaticallyApprove": AutoApproval.USER_REDEPLOY in given},
        "allInstancesDown": {"automaticallyApprove": scope.owner.all_instances_down},
    }
    if scope.owner.event_grid is not None:
        policy["scheduledEventsAdditionalPublishingTargets"] = {
            "eventGridAndResourceGraph": {"enable": scope.owner.event_grid}
        }
    return policy


def _events_profile(scope: Scope) -> Json:
    return {
        "terminateNotificationProfile": _notification(scopes.terminate_notice(scope)),
        "osImageNotificationProfile": _notification(scopes.os_image_notice(scope)),
    }


def _notification(notice: timedelta | None) -> Json:
    if notice is None:
        return {"enable": False}
    return {"enable": True, "notBeforeTimeout": spelled(notice)}


def spelled(notice: timedelta) -> str:
    """A notice as ISO 8601 has it, in minutes where it is whole minutes."""
    seconds = int(notice.total_seconds())
    return f"PT{seconds}S" if seconds % 60 else f"PT{seconds // 60}M"
