"""Who reads the same document, and who may be down together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from typing import Final

from forewarn.core.names import HostName, MachineName, ScopeId, scope_id
from forewarn.core.periods import TERMINATE_NOTICE_MAX, TERMINATE_NOTICE_MIN
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
    """Whether a machine is still there to be maintained."""

    RUNNING = "running"
    # Preempted: the record stays, the machine is not running.
    DEALLOCATED = "deallocated"
    # Terminated: kept only so that its fleet file does not bring it back by accident.
    DELETED = "deleted"


class Origin(Enum):
    """Which source declared a machine; each source changes only its own."""

    FILE = "file"
    API = "api"
    CENSUS = "census"


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

    @property
    def id(self) -> ScopeId:
        return scope_id(self.resource_group, self.name)

    def machine(self, name: str) -> Machine | None:
        """The machine of that name; names ignore case, as Azure's do."""
        wanted = name.lower()
        return next((m for m in self.machines if m.name.lower() == wanted), None)


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
