"""Azure Resource Manager's JSON, as it is asked: what we understand of the bodies that owners send.

Members that nobody here knows are no mistake: they are kept, and returned (`arm_kept`). Those
that we do know are read strictly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from ipaddress import IPv6Address, ip_address
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from forewarn.core import scopes
from forewarn.core.periods import TERMINATE_NOTICE_MIN
from forewarn.core.scopes import OFF, AutoApproval, OwnerPolicies, Scope
from forewarn.errors import Malformed
from forewarn.wire.arm_kept import Path, load_object

CAPACITY_MAX: Final = 1000
TAGS_MAX: Final = 50
INSTANCES_MAX: Final = CAPACITY_MAX
EVENTS_MAX: Final = 100
NAME_LENGTH_MAX: Final = 80
OS_IMAGE_NOTICE_DEFAULT: Final = timedelta(minutes=15)

_NAME: Final = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{NAME_LENGTH_MAX - 1}}}")

_Text = Annotated[str, msgspec.Meta(max_length=256)]
_SomeText = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class _Asked(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Part of a body; members that are absent or null change nothing."""


_AskedT = TypeVar("_AskedT", bound=_Asked)


class _Approval(_Asked, frozen=True):
    automatically_approve: bool | None = None


class _Switch(_Asked, frozen=True):
    enable: bool | None = None


class _Targets(_Asked, frozen=True):
    event_grid_and_resource_graph: _Switch | None = None


class EventsPolicy(_Asked, frozen=True):
    """`scheduledEventsPolicy`."""

    user_initiated_reboot: _Approval | None = None
    user_initiated_redeploy: _Approval | None = None
    all_instances_down: _Approval | None = None
    scheduled_events_additional_publishing_targets: _Targets | None = None


class Notification(_Asked, frozen=True):
    """Whether instances are told before they go, and how long before."""

    enable: bool | None = None
    not_before_timeout: timedelta | None = None


class _EventsProfile(_Asked, frozen=True):
    terminate_notification_profile: Notification | None = None
    os_image_notification_profile: Notification | None = None


class _Hardware(_Asked, frozen=True):
    vm_size: _Text | None = None


class _Reference(_Asked, frozen=True):
    id: str


Priority = Literal["Regular", "Low", "Spot"]


class _Profile(_Asked, frozen=True):
    scheduled_events_profile: _EventsProfile | None = None
    priority: Priority | None = None


class Ours(_Asked, frozen=True):
    """What forewarn must know of a machine and Azure has no member for."""

    addresses: Annotated[tuple[_SomeText, ...], msgspec.Meta(max_length=64)] | None = None
    host: _Text | None = None
    update_domain: Annotated[int, msgspec.Meta(ge=0)] | None = None


class _Properties(_Asked, frozen=True):
    hardware_profile: _Hardware | None = None
    availability_set: _Reference | None = None
    priority: Priority | None = None
    platform_update_domain_count: int | None = None
    scheduled_events_policy: EventsPolicy | None = None
    virtual_machine_profile: _Profile | None = None
    forewarn: Ours | None = None


class _Sku(_Asked, frozen=True):
    name: _Text | None = None
    capacity: Annotated[int, msgspec.Meta(ge=0, le=CAPACITY_MAX)] | None = None


_Tags = Annotated[dict[_SomeText, _Text], msgspec.Meta(max_length=TAGS_MAX)]


class _Resource(_Asked, frozen=True):
    location: _SomeText | None = None
    tags: _Tags | None = None
    zones: Annotated[tuple[_SomeText, ...], msgspec.Meta(max_length=10)] | None = None
    sku: _Sku | None = None
    properties: _Properties | None = None


class Wanted:
    """What a PUT or PATCH wants of a resource, as far as we understand it. None: as it is."""

    def __init__(self, body: bytes) -> None:
        """Read a body. Raises: Malformed."""
        self.sent: Mapping[str, object] = load_object(body)
        asked = _converted(self.sent, _Resource)
        properties = asked.properties or _Properties()
        profile = properties.virtual_machine_profile or _Profile()
        events = profile.scheduled_events_profile or _EventsProfile()
        sku = asked.sku or _Sku()
        hardware = properties.hardware_profile or _Hardware()
        self.location = None if asked.location is None else normal_location(asked.location)
        self.tags = None if asked.tags is None else tuple(sorted(asked.tags.items()))
        self.zones = asked.zones
        self.capacity = sku.capacity
        self.size = hardware.vm_size or sku.name
        reference = properties.availability_set
        self.availability_set = None if reference is None else reference.id
        priority = profile.priority or properties.priority
        self.spot = None if priority is None else priority != "Regular"
        self.update_domains = properties.platform_update_domain_count
        self.policy = properties.scheduled_events_policy or EventsPolicy()
        self.terminate = events.terminate_notification_profile or Notification()
        self.os_image = events.os_image_notification_profile or Notification()
        self.ours = properties.forewarn or Ours()
        given = self.ours.addresses
        self.addresses = None if given is None else tuple(map(_address, given))
        # An empty one takes the machine off its host.
        self.host = self.ours.host and check_name("host", self.ours.host)

    def policies(self, scope: Scope) -> OwnerPolicies:
        """What the owner of a scope wants to be in force, on top of what was set before.

        To send what is in force already sets nothing: whoever reads a resource, changes one
        member and sends it back has said nothing about the others.
        """
        owner, policy = scope.owner, self.policy
        given = scopes.auto_approvals(scope)
        grid = policy.scheduled_events_additional_publishing_targets or _Targets()
        down = _said(policy.all_instances_down, owner.all_instances_down)
        return OwnerPolicies(
            approve_reboot=_changed(
                _said(policy.user_initiated_reboot),
                AutoApproval.USER_REBOOT in given,
                owner.approve_reboot,
            ),
            approve_redeploy=_changed(
                _said(policy.user_initiated_redeploy),
                AutoApproval.USER_REDEPLOY in given,
                owner.approve_redeploy,
            ),
            terminate_notice=_notice(
                self.terminate,
                scopes.terminate_notice(scope),
                owner.terminate_notice,
                TERMINATE_NOTICE_MIN,
            ),
            os_image_notice=_notice(
                self.os_image,
                scopes.os_image_notice(scope),
                owner.os_image_notice,
                OS_IMAGE_NOTICE_DEFAULT,
            ),
            all_instances_down=bool(down),
            event_grid=_said_switch(grid.event_grid_and_resource_graph, owner.event_grid),
        )


def instance_ids(body: bytes) -> tuple[str, ...] | None:
    """The instances of a scale set that are meant; None: all. Raises: Malformed."""
    sent = load_object(body)
    # An empty list is how some clients leave it out.
    return _converted(sent, _Instances).instance_ids or None


def event_ids(body: bytes) -> tuple[str, ...]:
    """The events that are acknowledged together. Raises: Malformed."""
    return _converted(load_object(body), _Events).value


def check_name(what: str, name: str) -> str:
    """A name that a new thing may have. Raises: Malformed."""
    if _NAME.fullmatch(name) is None:
        raise Malformed(
            f"{name[:100]!r} is no name of a {what}: use 1 to {NAME_LENGTH_MAX} letters, digits, "
            "_ - and . and begin with a letter, a digit or _"
        )
    return name


def normal_location(name: str) -> str:
    """A location's name as Azure compares it: `West Europe` is `westeurope`."""
    return re.sub(r"\s", "", name).lower()


# What is ours to say, and is not kept as the owner's.
_OF_ANY: Final[tuple[Path, ...]] = (
    ("id",),
    ("name",),
    ("type",),
    ("etag",),
    ("location",),
    ("systemData",),
    ("properties", "provisioningState"),
    ("properties", "instanceView"),
    ("properties", "timeCreated"),
    ("properties", "scheduledEventsPolicy", "userInitiatedReboot", "automaticallyApprove"),
    ("properties", "scheduledEventsPolicy", "userInitiatedRedeploy", "automaticallyApprove"),
    ("properties", "scheduledEventsPolicy", "allInstancesDown", "automaticallyApprove"),
    (
        "properties",
        "scheduledEventsPolicy",
        "scheduledEventsAdditionalPublishingTargets",
        "eventGridAndResourceGraph",
        "enable",
    ),
)
OURS_OF_A_MACHINE: Final[tuple[Path, ...]] = (
    *_OF_ANY,
    ("tags",),
    ("zones",),
    ("instanceId",),
    ("resources",),
    ("sku",),
    ("properties", "vmId"),
    ("properties", "latestModelApplied"),
    ("properties", "hardwareProfile", "vmSize"),
    ("properties", "availabilitySet"),
    ("properties", "priority"),
    ("properties", "forewarn"),
)
OURS_OF_A_SCALE_SET: Final[tuple[Path, ...]] = (
    *_OF_ANY,
    ("sku", "capacity"),
    ("properties", "uniqueId"),
    ("properties", "virtualMachineProfile", "priority"),
    ("properties", "virtualMachineProfile", "scheduledEventsProfile"),
    ("properties", "forewarn"),
)
OURS_OF_A_SET: Final[tuple[Path, ...]] = (
    *_OF_ANY,
    # Of a template, not of the resource in it.
    ("apiVersion",),
    ("dependsOn",),
    ("properties", "platformUpdateDomainCount"),
    ("properties", "virtualMachines"),
    # What is kept there says that the set is to go, and that is for us to say.
    ("properties", "forewarn"),
)


class _Instances(_Asked, frozen=True):
    instance_ids: Annotated[tuple[_SomeText, ...], msgspec.Meta(max_length=INSTANCES_MAX)] = ()


class _Events(_Asked, frozen=True):
    value: Annotated[tuple[_SomeText, ...], msgspec.Meta(min_length=1, max_length=EVENTS_MAX)]


def _address(text: str) -> str:
    """An address as guests' callers are compared with it. Raises: Malformed."""
    try:
        address = ip_address(text)
    except ValueError as error:
        raise Malformed(f"address {text[:100]!r} is no IP address: {error}") from error
    if isinstance(address, IPv6Address):
        # A zone names an interface of this host, and says nothing about the machine.
        address = address.ipv4_mapped or IPv6Address(int(address))
    if address.is_unspecified or address.is_multicast:
        raise Malformed(f"nobody speaks from address {text}: give the address of the VM itself")
    return str(address)


def _converted(sent: Mapping[str, object], form: type[_AskedT]) -> _AskedT:
    try:
        return msgspec.convert(_without_nulls(sent), form)
    except msgspec.ValidationError as error:
        raise Malformed(f"the body cannot be understood: {error}") from error


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return value


def _said(approval: _Approval | None, otherwise: bool | None = None) -> bool | None:  # noqa: FBT001 - a policy
    said = None if approval is None else approval.automatically_approve
    return otherwise if said is None else said


def _said_switch(switch: _Switch | None, otherwise: bool | None) -> bool | None:  # noqa: FBT001 - a policy
    said = None if switch is None else switch.enable
    return otherwise if said is None else said


def _changed(said: bool | None, in_force: bool, before: bool | None) -> bool | None:  # noqa: FBT001 - a policy
    return before if said is None or said == in_force else said


def _notice(
    asked: Notification,
    in_force: timedelta | None,
    before: timedelta | None,
    usual: timedelta,
) -> timedelta | None:
    enable = (in_force is not None) if asked.enable is None else asked.enable
    if not enable:
        return before if in_force is None else OFF
    wanted = asked.not_before_timeout or in_force or usual
    return before if wanted == in_force else wanted
