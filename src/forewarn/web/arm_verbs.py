"""What owners do to machines: each verb becomes events, and an operation that follows them.

Which verb makes which event is in docs/protocol. Where guests are not told, it happens at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from forewarn.core import presences
from forewarn.core.events import EventSource, EventType
from forewarn.core.ledgers import Ledger
from forewarn.core.names import EventId
from forewarn.core.operations import Operation
from forewarn.core.scopes import Machine
from forewarn.core.wishes import IfNotTold, Wish
from forewarn.service.operations import Errand
from forewarn.web.arm_calls import ArmParts, Saying, accepted, nothing
from forewarn.web.calls import Answer, Call
from forewarn.wire import arm

MAINTAIN: Final = "performMaintenance"
REAPPLY: Final = "reapply"
DELETE: Final = "delete"

# The verbs that are an impact.
IMPACTS: Final[Mapping[str, EventType]] = {
    "restart": EventType.REBOOT,
    "redeploy": EventType.REDEPLOY,
    "powerOff": EventType.POWER_OFF,
    "start": EventType.START,
    "deallocate": EventType.DEALLOCATE,
    "reimage": EventType.REIMAGE,
    "reimageall": EventType.REIMAGE,
    DELETE: EventType.TERMINATE,
}


@dataclass(frozen=True, slots=True)
class Targets:
    """Machines of one scope, and the resource by which they were named."""

    ledger: Ledger
    machines: Sequence[Machine]
    resource: str

    def errand(self, call: Call, verb: str) -> Errand:
        group = self.ledger.scope.resource_group
        return Errand(verb=verb, resource=self.resource, group=group, actor=call.actor)


def act(parts: ArmParts, call: Call, targets: Targets, verb: str) -> Answer:
    """Do what a verb says to these machines; the answer says where its progress is told."""
    return accepted(parts, call, begin(parts, call, targets, verb))


def begin(parts: ArmParts, call: Call, targets: Targets, verb: str) -> Operation:
    """Begin what a verb says. Raises: Refused, Unavailable."""
    errand = targets.errand(call, verb)
    if verb == MAINTAIN:
        names = [machine.name for machine in targets.machines]
        return parts.operations.approve(
            errand,
            targets.ledger.scope.id,
            lambda ledger: [event.id for event in arm.pending_maintenance(ledger, names)],
        )
    if verb == DELETE:
        return _delete(parts, targets, errand)
    machines = targets.machines if verb in IMPACTS else ()
    return _announce(parts, targets.ledger, machines, errand, ())


def fit(ledger: Ledger, verb: str) -> tuple[Machine, ...]:
    """The machines of a scope to which a verb applies, where nobody said which."""
    there = arm.machines(ledger.scope)
    impact = IMPACTS.get(verb)
    if impact is None:
        return there
    return tuple(m for m in there if (impact, m.presence) in presences.VERDICTS)


def evict(parts: ArmParts, call: Call, ledger: Ledger, machine: Machine) -> Answer:
    """Take a spot machine away, as the platform does when it needs the room."""
    if not ledger.scope.spot:
        raise Saying(
            HTTPStatus.CONFLICT,
            "OperationNotAllowed",
            f"{machine.name} is no Spot VM: only those can be evicted",
        )
    wish = Wish(
        type=EventType.PREEMPT,
        source=EventSource.PLATFORM,
        machines=_paths(ledger, (machine,)),
        if_not_told=IfNotTold.RUN_UNANNOUNCED,
    )
    parts.desk.announce(wish, (), call.actor)
    # Never 202: clients of this call do not wait.
    return nothing(HTTPStatus.NO_CONTENT)


def _delete(parts: ArmParts, targets: Targets, errand: Errand) -> Operation:
    """Delete machines; those that are being deleted already are waited for."""
    ledger = targets.ledger
    names = {machine.name for machine in targets.machines}
    also = tuple(
        event.id
        for event in ledger.open_events
        if event.type is EventType.TERMINATE and not names.isdisjoint(event.machines)
    )
    gone = arm.leaving(ledger)
    rest = [machine for machine in targets.machines if machine.name not in gone]
    return _announce(parts, ledger, rest, errand, also)


def _announce(
    parts: ArmParts,
    ledger: Ledger,
    machines: Sequence[Machine],
    errand: Errand,
    also: tuple[EventId, ...],
) -> Operation:
    if not machines:
        return parts.operations.follow(errand, ledger.scope.id, also)
    wish = Wish(
        type=IMPACTS[errand.verb],
        source=EventSource.USER,
        machines=_paths(ledger, machines),
        if_not_told=IfNotTold.RUN_UNANNOUNCED,
    )
    return parts.operations.announce(errand, wish, also)


def _paths(ledger: Ledger, machines: Sequence[Machine]) -> tuple[str, ...]:
    """The machines' names, from their group down."""
    return tuple(f"{ledger.scope.id}/{machine.name}" for machine in machines)
