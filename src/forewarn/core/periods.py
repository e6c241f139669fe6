"""How long things take and must wait: minimum notice, and what an operator may set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from forewarn.core.events import Event, EventType

# Terminate is not here: its notice is the scope's own setting, within the two bounds below.
MINIMUM_NOTICE: Final[Mapping[EventType, timedelta]] = {
    EventType.FREEZE: timedelta(minutes=15),
    EventType.REBOOT: timedelta(minutes=15),
    EventType.REDEPLOY: timedelta(minutes=10),
    EventType.PREEMPT: timedelta(seconds=30),
}
TERMINATE_NOTICE_MIN: Final = timedelta(minutes=5)
TERMINATE_NOTICE_MAX: Final = timedelta(minutes=15)
# Nor is Reimage, whose notice is the owner's setting.
OS_IMAGE_NOTICE_MAX: Final = timedelta(minutes=15)

# Further ahead than this nobody plans; it also keeps sums of times within the calendar.
ANNOUNCED_AHEAD_MAX: Final = timedelta(days=366)
DURATION_MAX: Final = timedelta(days=1)

# A predicted failure is announced this long ahead, unless the operator knows of less.
PREDICTED_FAILURE_NOTICE: Final = timedelta(days=7)

# Silence for this long disables a scope that was enabled on request.
SILENCE: Final = timedelta(hours=24)
# A scope's mark of having been heard is committed at most this often.
HEARD_EVERY: Final = timedelta(hours=1)

# Where the announcement does not say how long the interruption will be.
TYPICAL_DURATION: Final[Mapping[EventType, timedelta]] = {
    EventType.FREEZE: timedelta(seconds=9),
    EventType.REBOOT: timedelta(minutes=1),
    EventType.REDEPLOY: timedelta(minutes=3),
    EventType.PREEMPT: timedelta(seconds=5),
    EventType.TERMINATE: timedelta(seconds=10),
    EventType.POWER_OFF: timedelta(seconds=2),
    EventType.START: timedelta(seconds=3),
    EventType.DEALLOCATE: timedelta(seconds=3),
    EventType.REIMAGE: timedelta(seconds=10),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """The settings of a whole service. None of them can shorten a minimum notice."""

    # Added to every notice, so that the time to publish does not eat into the minimum.
    margin: timedelta = timedelta(seconds=2)
    # Between platform maintenance of one update domain and that of the next.
    recovery: timedelta = timedelta(minutes=30)
    # How far from its first NotBefore an event may be moved in all.
    postpone_max: timedelta = timedelta(hours=24)
    # How long an ended event is remembered, so that a late approval of it is understood.
    remember: timedelta = timedelta(hours=24)
    # When an impact that is not over raises an alarm.
    freeze_limit: timedelta = timedelta(minutes=5)
    reboot_limit: timedelta = timedelta(minutes=15)
    redeploy_limit: timedelta = timedelta(minutes=30)
    preempt_limit: timedelta = timedelta(minutes=10)
    terminate_limit: timedelta = timedelta(minutes=10)
    # Powering off, starting and deallocating.
    power_limit: timedelta = timedelta(minutes=10)
    reimage_limit: timedelta = timedelta(minutes=30)

    def __post_init__(self) -> None:
        lengths = (self.margin, self.recovery, self.postpone_max)
        assert min(lengths) >= timedelta(), "no period is negative"
        assert self.remember >= timedelta(hours=24), "late approvals come for a day at least"

    def limit(self, event: Event) -> timedelta:
        """How long the event's impact may take before an alarm is raised."""
        limits = {
            EventType.FREEZE: self.freeze_limit,
            EventType.REBOOT: self.reboot_limit,
            EventType.REDEPLOY: self.redeploy_limit,
            EventType.PREEMPT: self.preempt_limit,
            EventType.TERMINATE: self.terminate_limit,
            EventType.POWER_OFF: self.power_limit,
            EventType.START: self.power_limit,
            EventType.DEALLOCATE: self.power_limit,
            EventType.REIMAGE: self.reimage_limit,
        }
        return limits[event.type] + (event.duration or timedelta())


def expected_duration(event: Event) -> timedelta:
    """How long the event's impact will likely take."""
    return TYPICAL_DURATION[event.type] if event.duration is None else event.duration


def spell(length: timedelta) -> str:
    """A length of time as a fleet file has it: "15m", "1h30m", "24h", "7d"."""
    seconds = length.total_seconds()
    minutes, rest = divmod(abs(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    # One day is a number of hours to people; a week is one of days.
    days, hours = divmod(hours, 24) if hours >= 48 else (0, hours)  # noqa: PLR2004
    amounts = ((days, "d"), (hours, "h"), (minutes, "m"), (rest, "s"))
    text = "".join(f"{amount:g}{unit}" for amount, unit in amounts if amount)
    return f"{'-' if seconds < 0 else ''}{text or '0s'}"


def whole_second(instant: datetime) -> datetime:
    """The instant, rounded up to a second: the wire has no fractions."""
    if instant.microsecond == 0:
        return instant
    return instant.replace(microsecond=0) + timedelta(seconds=1)
