"""Who reads the same document, and who may be down together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from typing import Final

from forewarn.core.names import HostName, MachineName, ScopeId, scope_id
from forewarn.core.periods import (
    OS_IMAGE_NOTICE_MAX,
    TERMINATE_NOTICE_MAX,
    TERMINATE_NOTICE_MIN,
    spell,
)
from forewarn.errors import Refused

UPDATE_DOMAINS_MAX: Final = 20
UPDATE_DOMAINS_DEFAULT: Final = 5


class ScopeKind(Enum):
    """What a scope is in Azure's world."""

    STANDALONE = "standalone"
    CLOUD_SERVICE = "cloud-service"
    AVAILABILITY_SET = "availability-set"
    # One placement group of a scale set.
    SCALE_SET = "scale-set"


class Enabling(Enum):
    """When a scope's machines are told of events."""

    ALWAYS = "always"
    # As Azure does: from the first request on, until a day of silence.
    ON_REQUEST = "on-request"


class AutoApproval(Enum):
    """User operations that start at once, without waiting for a machine's approval."""

    USER_REBOOT = "user-reboot"
    USER_REDEPLOY = "user-redeploy"


class Presence(Enum):
    """Whether a machine is there to be acted on; what may happen when is in `presences`."""

    RUNNING = "running"
    # Powered off by its owner: it keeps its place on its host.
    STOPPED = "stopped"
    # Preempted, or given up by its owner: the record stays, the machine has no host.
    DEALLOCATED = "deallocated"
    # Terminated: kept only so that its fleet file does not bring it back by accident.
    DELETED = "deleted"


class Origin(Enum):
    """Which source declared a machine; each source changes only its own."""

    FILE = "file"
    API = "api"
    CENSUS = "census"


@dataclass(frozen=True, slots=True)
class Interface:
    """A machine's network interface, as its host has it."""

    mac: str
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A virtual machine, as its scope's roster has it."""

    name: MachineName
    addresses: tuple[str, ...] = ()
    host: HostName | None = None
    update_domain: int = 0
    presence: Presence = Presence.RUNNING
    origin: Origin = Origin.FILE
    # Facts for /metadata/instance.
    vm_id: str = ""
    size: str = ""
    zone: str = ""
    tags: tuple[tuple[str, str], ...] = ()
    # Where nobody tells of interfaces, there is one with all the addresses.
    interfaces: tuple[Interface, ...] = ()
    # JSON text that the API keeps for the owner, and which means nothing to any rule.
    kept: str = ""


# An owner's word that a notification is off, whatever is declared.
OFF: Final = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerPolicies:
    """What a scope's owner set through the API: it outlives every declaration, and wins over it.

    None: as declared.
    """

    approve_reboot: bool | None = None
    approve_redeploy: bool | None = None
    terminate_notice: timedelta | None = None
    # Before a Reimage; no declaration has this one.
    os_image_notice: timedelta | None = None
    # Approve whatever waits for an approval while no machine runs that could give it.
    all_instances_down: bool = True
    # Whether changes are wanted in Event Grid's form; kept for whoever publishes.
    event_grid: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The machines that read the same document and may approve the same events."""

    name: str
    resource_group: str = "default"
    kind: ScopeKind = ScopeKind.STANDALONE
    machines: tuple[Machine, ...] = ()
    update_domains: int = UPDATE_DOMAINS_DEFAULT
    enabling: Enabling = Enabling.ON_REQUEST
    # None: terminate notification is off.
    terminate_notice: timedelta | None = None
    spot: bool = False
    # None: no limit.
    user_operations_max: int | None = None
    auto_approve: tuple[AutoApproval, ...] = ()
    # None: the service's own setting.
    recovery: timedelta | None = None
    location: str = ""
    # Which source declared the scope; None: none does (any more).
    origin: Origin | None = Origin.FILE
    owner: OwnerPolicies = OwnerPolicies()
    # As a machine's.
    kept: str = ""

    @property
    def id(self) -> ScopeId:
        return scope_id(self.resource_group, self.name)

    def machine(self, name: str) -> Machine | None:
        """The machine of that name; names ignore case, as Azure's do."""
        wanted = name.lower()
        return next((m for m in self.machines if m.name.lower() == wanted), None)


def auto_approvals(scope: Scope) -> tuple[AutoApproval, ...]:
    """The user operations that start at once: as declared, unless the owner said otherwise."""
    said = {
        AutoApproval.USER_REBOOT: scope.owner.approve_reboot,
        AutoApproval.USER_REDEPLOY: scope.owner.approve_redeploy,
    }
    kept = (policy for policy in scope.auto_approve if said[policy] is None)
    return (*kept, *(policy for policy, given in said.items() if given))


def terminate_notice(scope: Scope) -> timedelta | None:
    """The notice before a Terminate: as declared, unless the owner said otherwise; None: off."""
    said = scope.owner.terminate_notice
    if said is None:
        return scope.terminate_notice
    # A file may have made it spot since then.
    applies = said != OFF and scope.kind is ScopeKind.SCALE_SET and not scope.spot
    return said if applies else None


def os_image_notice(scope: Scope) -> timedelta | None:
    """The notice before a Reimage; None: off."""
    said = scope.owner.os_image_notice
    applies = said is not None and said != OFF and scope.kind is ScopeKind.SCALE_SET
    return said if applies else None


def is_all_down(scope: Scope) -> bool:
    """Whether there are machines, and none runs that could approve anything."""
    presences = [machine.presence for machine in scope.machines]
    return bool(presences) and Presence.RUNNING not in presences


def check_owner(scope: Scope) -> None:
    """Refuse what a scope's owner cannot set. Raises: Refused."""
    _check_owned(
        scope, scope.owner.terminate_notice, "terminate", TERMINATE_NOTICE_MIN, TERMINATE_NOTICE_MAX
    )
    _check_owned(scope, scope.owner.os_image_notice, "OS image", OFF, OS_IMAGE_NOTICE_MAX)
    if scope.spot and (scope.owner.terminate_notice or OFF) != OFF:
        raise Refused(
            f"scope {scope.id} is spot: Azure gives no terminate notice there; leave one out"
        )


def _check_owned(
    scope: Scope, notice: timedelta | None, what: str, least: timedelta, most: timedelta
) -> None:
    if notice is None or notice == OFF:
        return
    if scope.kind is not ScopeKind.SCALE_SET:
        raise Refused(
            f"scope {scope.id} is of kind {scope.kind.value}: only a scale set has {what} "
            "notification; leave it out"
        )
    if not least <= notice <= most:
        bounds = f"{spell(least)} to {spell(most)}" if least else f"at most {spell(most)}"
        raise Refused(
            f"scope {scope.id} cannot have {what} notification {spell(notice)} ahead: give {bounds}"
        )


def check(scope: Scope) -> None:
    """Refuse a scope that cannot be. Raises: Refused."""
    if not 1 <= scope.update_domains <= UPDATE_DOMAINS_MAX:
        raise Refused(
            f"scope {scope.id} has {scope.update_domains} update domains: "
            f"give 1 to {UPDATE_DOMAINS_MAX}"
        )
    _check_terminate_notice(scope)
    names: set[str] = set()
    for machine in scope.machines:
        if machine.name.lower() in names:
            raise Refused(f"scope {scope.id} has {machine.name} twice: give one another name")
        names.add(machine.name.lower())
        if not 0 <= machine.update_domain < scope.update_domains:
            raise Refused(
                f"{machine.name} is in update domain {machine.update_domain}, but those of scope "
                f"{scope.id} are 0 to {scope.update_domains - 1}"
            )


def _check_terminate_notice(scope: Scope) -> None:
    if scope.terminate_notice is None:
        return
    if not TERMINATE_NOTICE_MIN <= scope.terminate_notice <= TERMINATE_NOTICE_MAX:
        raise Refused(
            f"scope {scope.id} has a terminate notice of {scope.terminate_notice}: "
            "give 5 to 15 minutes"
        )
    if scope.spot:
        raise Refused(
            f"scope {scope.id} is spot: Azure gives no terminate notice there; leave one out"
        )


def spread(
    machines: Iterable[Machine], settled: Iterable[MachineName], count: int
) -> tuple[Machine, ...]:
    """Assign update domains evenly to the machines that have none yet, in roster order.

    In a new scope that is round robin. Machines already settled stay where they are, so that
    an addition never moves a neighbor into another update domain.
    """
    fixed = set(settled)
    machines = tuple(machines)
    population = Counter(m.update_domain for m in machines if m.name in fixed)
    assigned: list[Machine] = []
    for machine in machines:
        if machine.name not in fixed:
            emptiest = min(range(count), key=lambda domain: population[domain])
            population[emptiest] += 1
            machine = replace(machine, update_domain=emptiest)  # noqa: PLW2901 - a new value
        assigned.append(machine)
    return tuple(assigned)
