"""An event of an emulated world, as a test looks at it: always as it is at that moment."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from forewarn.core.events import EventStatus
from forewarn.core.journal import Role
from forewarn.core.periods import spell
from forewarn.testing.served_worlds import ServedWorld


class Event:
    """Something that was announced. Whatever is asked of it, what is due is done first."""

    def __init__(self, world: ServedWorld, event_id: str) -> None:
        self._world = world
        self.id: Final = event_id

    @property
    def type(self) -> str:
        """Freeze, Reboot, Redeploy, Preempt or Terminate."""
        return self._world.event(self.id).type.value

    @property
    def machines(self) -> tuple[str, ...]:
        """The VMs that it hits."""
        return tuple(self._world.event(self.id).machines)

    @property
    def source(self) -> str:
        """Platform or User."""
        return self._world.event(self.id).source.value

    @property
    def description(self) -> str:
        return self._world.event(self.id).description

    @property
    def duration(self) -> timedelta | None:
        """How long it will take, as far as it was said."""
        return self._world.event(self.id).duration

    @property
    def status(self) -> str:
        """Scheduled, Started, Completed or Canceled; of the last two, VMs see that it is gone."""
        return self._world.settled(self.id).status.value

    @property
    def started(self) -> bool:
        """Whether it has begun, be it over or not."""
        return self.started_at is not None

    @property
    def started_at(self) -> datetime | None:
        return self._world.settled(self.id).started_at

    @property
    def completed(self) -> bool:
        """Whether it has begun and is over."""
        return self._world.settled(self.id).status is EventStatus.COMPLETED

    @property
    def canceled(self) -> bool:
        """Whether it was called off, and never began."""
        return self._world.settled(self.id).status is EventStatus.CANCELED

    @property
    def ended_at(self) -> datetime | None:
        """When it was over, or called off."""
        return self._world.settled(self.id).ended_at

    @property
    def approved(self) -> bool:
        """Whether somebody let it start before its notice was over."""
        return self._world.settled(self.id).approval is not None

    @property
    def approved_by(self) -> str | None:
        """The VM that approved it first, if one did."""
        approval = self._world.settled(self.id).approval
        is_guest = approval is not None and approval.role == Role.GUEST.value
        return approval.by if approval is not None and is_guest else None

    @property
    def not_before(self) -> datetime:
        """When it starts unless somebody approves it, or something holds it up."""
        return self._world.settled(self.id).not_before

    def __repr__(self) -> str:
        event = self._world.settled(self.id)
        whom, left = ", ".join(event.machines), event.not_before - self._world.clock.now()
        told = [f"{event.type.value} of {whom} is {event.status.value}"]
        if event.approval is not None:
            told.append(f"approved by {event.approval.by}")
        elif event.status is EventStatus.SCHEDULED:
            told.append(f"due in {spell(left)}" if left > timedelta() else "due")
        if event.hold:
            told.append(event.hold)
        return f"<Event {self.id}: {', '.join(told)}>"
