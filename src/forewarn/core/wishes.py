"""What somebody asks for, and how it falls into events.

An event holds the smallest set of machines that can be acted on together: those of one update
domain on one host. A machine whose host is not known is a group of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from forewarn.core import presences
from forewarn.core.events import Cause, EventSource, EventType
from forewarn.core.names import MachineName
from forewarn.core.presences import Verdict
from forewarn.core.scopes import Machine, Presence, Scope
from forewarn.errors import Refused, Unknown


class IfNotTold(Enum):
    """What to do where guests would not be told: not enabled, or no terminate notification."""

    REFUSE = "refuse"
    RUN_UNANNOUNCED = "run unannounced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """An impact that somebody wants on some machines of one scope."""

    type: EventType
    source: EventSource = EventSource.PLATFORM
    cause: Cause = Cause.MAINTENANCE
    machines: tuple[str, ...]
    # None: the usual text for this type and source.
    description: str | None = None
    duration: timedelta | None = None
    # None: the minimum.
    notice: timedelta | None = None
    if_not_told: IfNotTold = IfNotTold.REFUSE


# Azure's own words, where they are known; see docs/protocol.
DESCRIPTIONS = {
    (EventType.FREEZE, EventSource.PLATFORM): "Host server is undergoing maintenance.",
    (EventType.REBOOT, EventSource.PLATFORM): "Host server is undergoing maintenance.",
    (EventType.REDEPLOY, EventSource.PLATFORM): "Host server is undergoing maintenance.",
    (EventType.REBOOT, EventSource.USER): (
        "Virtual machine is going to be restarted as requested by authorized user."
    ),
    (EventType.REDEPLOY, EventSource.USER): (
        "Virtual machine is going to be redeployed as requested by authorized user."
    ),
}


def description(wish: Wish) -> str:
    """The text that guests will read."""
    if wish.description is not None:
        return wish.description
    if wish.cause is Cause.HARDWARE_FAILURE:
        return "Virtual machine has encountered a failure."
    if wish.cause is Cause.PREDICTED_FAILURE:
        return "Host server is undergoing an emergency repair."
    return DESCRIPTIONS.get((wish.type, wish.source), "")


def targets(scope: Scope, wish: Wish) -> tuple[Machine, ...]:
    """The machines wished for, each once, in roster order. Raises: Unknown, Refused.

    Those that are already as they shall be are left out.
    """
    if not wish.machines:
        raise Refused("no VM is named: name at least one")
    wanted = {name.lower() for name in wish.machines}
    known = {machine.name.lower() for machine in scope.machines}
    missing = [name for name in wish.machines if name.lower() not in known]
    if missing:
        raise Unknown(
            f"no VM {', '.join(missing)} in scope {scope.id}; `forewarn fleet` lists them"
        )
    chosen = [machine for machine in scope.machines if machine.name.lower() in wanted]
    return tuple(machine for machine in chosen if _can_undergo(machine, wish.type))


def _can_undergo(machine: Machine, event_type: EventType) -> bool:
    """Whether something happens to a machine; False: it is so already. Raises: Refused."""
    verdict = presences.VERDICTS.get((event_type, machine.presence))
    if verdict is not None:
        return verdict is Verdict.GO
    remedy = f"a {event_type.value} needs a running VM, so start it first"
    if machine.presence is Presence.DELETED:
        remedy = "nothing can happen to it"
    raise Refused(f"{machine.name} is {machine.presence.value}: {remedy}")


def groups(machines: Sequence[Machine]) -> tuple[tuple[Machine, ...], ...]:
    """The machines by what can be acted on together, lower update domains first."""
    grouped: dict[tuple[int, str, MachineName | None], list[Machine]] = {}
    for machine in machines:
        alone = machine.name if machine.host is None else None
        key = (machine.update_domain, machine.host or "", alone)
        grouped.setdefault(key, []).append(machine)
    # Sorting is stable, so that groups of one update domain keep the roster's order.
    return tuple(tuple(group) for _, group in sorted(grouped.items(), key=lambda item: item[0][0]))
