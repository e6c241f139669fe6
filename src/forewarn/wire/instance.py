"""What /metadata/instance tells a machine about itself, as far as clients of events ask.

A client learns here which of the Resources it is: `compute.name` is the machine's name, to the
letter. Every value is text, numbers too; what we do not know is there, and empty.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from forewarn.core.scopes import Machine, Scope, ScopeKind
from forewarn.wire.refusals import LEAF_IS_TEXT, NO_SUCH_PATH, UNKNOWN_FORMAT, Refusal
from forewarn.wire.versions import INSTANCE_VERSIONS

Node: TypeAlias = "str | Mapping[str, Node] | tuple[Node, ...]"

JSON_TYPE: Final = "application/json; charset=utf-8"
TEXT_TYPE: Final = "text/plain; charset=utf-8"

# The versions that introduced members, as Azure documents them; a member that is not listed was
# there from the start. 2017-03-01, the preview, gets the form of 2017-04-02.
MEMBERS_SINCE: Final[Mapping[str, str]] = {
    "compute.azEnvironment": "2018-10-01",
    "compute.customData": "2019-02-01",
    "compute.evictionPolicy": "2020-12-01",
    "compute.isHostCompatibilityLayerVm": "2020-06-01",
    "compute.licenseType": "2020-09-01",
    "compute.osProfile": "2020-07-15",
    "compute.osProfile.disablePasswordAuthentication": "2020-10-01",
    "compute.physicalZone": "2023-11-15",
    "compute.placementGroupId": "2017-08-01",
    "compute.plan": "2018-04-02",
    "compute.platformSubFaultDomain": "2021-10-01",
    "compute.priority": "2020-12-01",
    "compute.provider": "2018-10-01",
    "compute.publicKeys": "2018-04-02",
    "compute.resourceGroupName": "2017-08-01",
    "compute.resourceId": "2019-03-11",
    "compute.subscriptionId": "2017-08-01",
    "compute.tags": "2017-08-01",
    "compute.tagsList": "2019-06-04",
    "compute.userData": "2021-01-01",
    "compute.vmScaleSetName": "2017-12-01",
    "compute.zone": "2017-12-01",
}

# The name space of ids that we derive; itself derived, so that nobody has to remember it.
_OUR_IDS: Final = uuid.uuid5(uuid.NAMESPACE_URL, "forewarn:/metadata/instance")


@dataclass(frozen=True, slots=True)
class Answer:
    """A body and what it is."""

    body: bytes
    media_type: str


def instance(scope: Scope, machine: Machine, *, subscription_id: str) -> Node:
    """Everything we know of a machine, in the form of the newest version."""
    return {
        "compute": _compute(scope, machine, subscription_id),
        "network": {"interface": _interfaces(machine)},
    }


def _compute(scope: Scope, machine: Machine, subscription_id: str) -> Node:
    in_scale_set = scope.kind is ScopeKind.SCALE_SET
    return {
        # Of which cloud? Of none.
        "azEnvironment": "",
        "customData": "",
        # A preempted machine keeps its record, and does not run.
        "evictionPolicy": "Deallocate" if scope.spot else "",
        "isHostCompatibilityLayerVm": "false",
        "licenseType": "",
        "location": scope.location,
        "name": machine.name,
        "offer": "",
        "osProfile": {
            "adminUsername": "",
            "computerName": machine.name,
            "disablePasswordAuthentication": "",
        },
        "osType": "",
        "physicalZone": "",
        # A scale set's scope is one placement group.
        "placementGroupId": derived_id(scope.id) if in_scale_set else "",
        "plan": {"name": "", "product": "", "publisher": ""},
        # Nobody tells us of fault domains; the cautious guess is that all machines share one.
        "platformFaultDomain": "0",
        "platformSubFaultDomain": "",
        "platformUpdateDomain": str(machine.update_domain),
        "priority": "Spot" if scope.spot else "Regular",
        "provider": "Microsoft.Compute",
        "publicKeys": (),
        "publisher": "",
        "resourceGroupName": scope.resource_group,
        "resourceId": resource_id(scope, machine, subscription_id=subscription_id),
        "sku": "",
        "subscriptionId": subscription_id,
        "tags": ";".join(f"{name}:{value}" for name, value in machine.tags),
        "tagsList": tuple({"name": name, "value": value} for name, value in machine.tags),
        "userData": "",
        "version": "",
        "vmId": vm_id(scope, machine),
        "vmScaleSetName": scope.name if in_scale_set else "",
        "vmSize": machine.size,
        "zone": machine.zone,
    }


def vm_id(scope: Scope, machine: Machine) -> str:
    """The machine's id: the one that was given, or one derived from its names."""
    return machine.vm_id or derived_id(f"{scope.id}/{machine.name.lower()}")


def derived_id(name: str) -> str:
    """The same id for the same name, today and after any restart."""
    return str(uuid.uuid5(_OUR_IDS, name))


def resource_id(scope: Scope, machine: Machine, *, subscription_id: str) -> str:
    """The machine's name in the control plane, from the root down."""
    group = f"/subscriptions/{subscription_id}/resourceGroups/{scope.resource_group}"
    compute = f"{group}/providers/Microsoft.Compute"
    if scope.kind is ScopeKind.SCALE_SET:
        number = instance_id(scope, machine)
        return f"{compute}/virtualMachineScaleSets/{scope.name}/virtualMachines/{number}"
    if scope.kind is ScopeKind.CLOUD_SERVICE:
        return f"{compute}/cloudServices/{scope.name}/roleInstances/{machine.name}"
    return f"{compute}/virtualMachines/{machine.name}"


def instance_id(scope: Scope, machine: Machine) -> str:
    """What a machine is called within its scale set: its number, or else its name."""
    set_name, _, number = machine.name.rpartition("_")
    is_numbered = number.isascii() and number.isdecimal()
    return number if is_numbered and set_name.lower() == scope.name.lower() else machine.name


def _interfaces(machine: Machine) -> tuple[Node, ...]:
    if machine.interfaces:
        return tuple(_interface(one.mac, one.addresses) for one in machine.interfaces)
    return (_interface("", machine.addresses),) if machine.addresses else ()


def _interface(mac: str, addresses: tuple[str, ...]) -> Node:
    v4 = [address for address in addresses if ":" not in address]
    v6 = [address for address in addresses if ":" in address]
    return {
        "ipv4": {
            "ipAddress": tuple({"privateIpAddress": a, "publicIpAddress": ""} for a in v4),
            "subnet": ({"address": "", "prefix": ""},) if v4 else (),
        },
        "ipv6": {"ipAddress": tuple({"privateIpAddress": address} for address in v6)},
        # As Azure writes it: capitals, and nothing between them.
        "macAddress": mac.replace(":", "").upper(),
    }


def render(
    root: Node, path: tuple[str, ...], *, version: str, form: str | None
) -> Answer | Refusal:
    """The part of a document that a path below /metadata/instance names.

    `form` is the query's `format`. As text, a node is the list of the names below it, one on
    a line and with a slash where there is more below; a single value exists as text only.
    """
    if form is not None and form.lower() not in ("json", "text"):
        return UNKNOWN_FORMAT
    node = _find(_as_of(root, version), path)
    if node is None:
        return NO_SUCH_PATH
    if form is not None and form.lower() == "text":
        return Answer(_text(node).encode("utf-8", "replace"), TEXT_TYPE)
    if isinstance(node, str):
        return LEAF_IS_TEXT
    return Answer(_json(node), JSON_TYPE)


def dump_versions() -> bytes:
    """The body of /metadata/versions: the general list, oldest first."""
    return _json({"apiVersions": INSTANCE_VERSIONS[::-1]})


def _as_of(node: Node, version: str, name: str = "") -> Node:
    """The node without the members that are newer than the version."""
    if not isinstance(node, Mapping):
        return node
    names = {key: f"{name}.{key}".removeprefix(".") for key in node}
    return {
        key: _as_of(below, version, names[key])
        for key, below in node.items()
        if version >= MEMBERS_SINCE.get(names[key], "")
    }


def _below(node: Node) -> Mapping[str, Node]:
    match node:
        case str():
            return {}
        case tuple():
            return {str(index): below for index, below in enumerate(node)}
        case _:
            return node


def _find(node: Node, path: tuple[str, ...]) -> Node | None:
    """The node at the end of the path; a final slash and the case of names do not matter."""
    if path in ((), ("",)):
        return node
    wanted = path[0].lower()
    for name, below in _below(node).items():
        if name.lower() == wanted:
            return _find(below, path[1:])
    return None


def _text(node: Node) -> str:
    if isinstance(node, str):
        return node
    return "\n".join(
        name if isinstance(below, str) else f"{name}/" for name, below in _below(node).items()
    )


def _json(node: Node) -> bytes:
    text = json.dumps(node, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
