"""Whoever looks at a service from outside: at what is committed, and at what is ordered.

And the fleet and the numbers of the promises, written down once more on purpose: they are what was
promised, whatever the core says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from forewarn.core.events import Audience, Cause, Event, EventSource, EventStatus, EventType
from forewarn.core.ledgers import Ledger
from forewarn.core.names import HostName, MachineName
from forewarn.core.orders import Order
from forewarn.core.scopes import AutoApproval, Enabling, Machine, Scope, ScopeKind
from forewarn.fabrics.simulated import SimulatedFabric
from forewarn.ports.clock import Clock
from forewarn.ports.store import CommitId, Lease, Write
from forewarn.stores.sqlite import SqliteStore
from forewarn.testing.worlds import WEB
from forewarn.wire import records

MINUTE: Final = timedelta(minutes=1)
RECOVERY: Final = 30 * MINUTE
MINIMUM: Final = {
    EventType.FREEZE: 15 * MINUTE,
    EventType.REBOOT: 15 * MINUTE,
    EventType.REDEPLOY: 10 * MINUTE,
    EventType.PREEMPT: timedelta(seconds=30),
    EventType.TERMINATE: 5 * MINUTE,
}
USER_OPERATIONS_MAX: Final = 2

BATCH: Final = Scope(
    name="batch",
    resource_group="rg2",
    kind=ScopeKind.SCALE_SET,
    update_domains=2,
    enabling=Enabling.ON_REQUEST,
    user_operations_max=USER_OPERATIONS_MAX,
    auto_approve=(AutoApproval.USER_REBOOT,),
    machines=tuple(
        Machine(
            name=MachineName(f"batch_{number}"),
            addresses=(f"10.0.1.1{number}",),
            host=HostName("host-0") if number < 2 else None,
            update_domain=number // 2,
        )
        for number in range(4)
    ),
)
FLEET: Final = (WEB, BATCH)
MACHINES: Final = {machine.name: machine for scope in FLEET for machine in scope.machines}
ADDRESSES: Final = tuple(a for m in MACHINES.values() for a in m.addresses)


@dataclass(frozen=True, slots=True)
class Start:
    """An event that was seen to start, and what was known of it then."""

    event: Event
    # The ledger that made it Started.
    ledger: Ledger
    at: timedelta
    was_attempted: bool
    # When guests could first read of it, and the NotBefore they read last.
    readable: timedelta | None
    not_before: str | None


class WitnessedStore(SqliteStore):
    """A store in a real file, with a witness of every ledger that is committed to it."""

    def __init__(self, path: Path, clock: Clock, witness: Callable[[Ledger], None]) -> None:
        super().__init__(path, clock)
        self._witness = witness

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        versions = super().commit(commit_id, writes, journal, lease)
        for write in writes:
            assert write.value is not None, "a ledger is never deleted"
            self._witness(records.load_ledger(write.value, versions[write.key]))
        return versions


class WitnessedFabric(SimulatedFabric):
    """A simulated fabric, with a witness of every order that is really begun."""

    def __init__(self, clock: Clock, witness: Callable[[Order], None]) -> None:
        super().__init__(clock)
        self._seen = witness

    def begin(self, order: Order) -> None:
        begun = len(self.impacts)
        super().begin(order)
        if len(self.impacts) > begun:
            self._seen(order)


def is_maintenance(event: Event) -> bool:
    """Whether it is platform maintenance, of which guests are promised one domain at a time."""
    kinds = (EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY)
    return event.source is EventSource.PLATFORM and event.type in kinds


def is_auto_approved(event: Event, scope: Scope) -> bool:
    """Whether the scope's policy lets the event start without asking anybody."""
    if event.source is not EventSource.USER:
        return False
    policies = {
        EventType.REBOOT: AutoApproval.USER_REBOOT,
        EventType.REDEPLOY: AutoApproval.USER_REDEPLOY,
    }
    return policies.get(event.type) in scope.auto_approve


def may_wait(event: Event, ledger: Ledger, now: datetime) -> bool:
    """Whether something keeps a due event from starting that is allowed to."""
    for other in ledger.events:
        apart = is_maintenance(event) and is_maintenance(other)
        apart = apart and other.update_domain != event.update_domain
        shared = set(other.machines) & set(event.machines)
        if other.status is EventStatus.STARTED and (apart or shared):
            return True
        if other.status is EventStatus.COMPLETED and apart:
            assert other.ended_at is not None
            if now < other.ended_at + RECOVERY:
                return True
    return False


def needs_notice(start: Start) -> bool:
    """Whether nobody and nothing allowed the event to start at once."""
    event = start.event
    if event.audience is Audience.OPERATORS or event.cause is Cause.HARDWARE_FAILURE:
        return False
    return not start.was_attempted and not is_auto_approved(event, start.ledger.scope)
