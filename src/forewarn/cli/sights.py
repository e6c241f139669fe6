"""Whether a VM reads what a scenario expects, said in words for whoever it fails for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from forewarn.cli.answers import Event
from forewarn.cli.guests import GuestAnswer
from forewarn.config.scenario_steps import ExpectApproval, ExpectEvent, Seen
from forewarn.core.periods import spell

# The service adds a margin to every notice, and the wire has whole seconds.
NOT_BEFORE_SLACK: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen, and whether it is what was expected."""

    is_met: bool
    seen: str
    # It cannot come true any more.
    is_final: bool = False
    # Nothing but an early start keeps it from being met.
    is_early: bool = False


def of_event(step: ExpectEvent, event: Event, machine: str, answer: GuestAnswer) -> Sight:
    """What one machine reads of an event."""
    if answer.document is None:
        return Sight(is_met=False, seen=f"{machine} is answered {answer.word}")
    read = [one for one in answer.document["Events"] if one["EventId"] == event["event_id"]]
    seen = Seen(read[0]["EventStatus"]) if read else Seen.GONE
    told = f"{machine} reads it as {seen.value}" if read else f"{machine} does not read it"
    if seen is not step.seen:
        return Sight(is_met=False, seen=told, is_early=_follows(seen, step.seen))
    differing = _differing(step, event, read[0] if read else {})
    incarnation = answer.document["DocumentIncarnation"]
    if step.incarnation not in {None, incarnation}:
        differing.append(f"DocumentIncarnation {incarnation}")
    return Sight(is_met=not differing, seen=", ".join([told, *differing]))


def of_approval(step: ExpectApproval, event: Event, latest: datetime) -> Sight:
    """Whether a machine has approved an event in time."""
    approval = event["approved"]
    if approval is None:
        if event["status"] == "Scheduled":
            return Sight(is_met=False, seen="nobody has approved it")
        return Sight(is_met=False, seen=f"it is {event['status']} unapproved", is_final=True)
    seen = f"{approval['by']} ({approval['role']}) approved it at {approval['at']}"
    is_guest = approval["role"] == "guest"
    is_met = is_guest and (step.machine is None or _own_name(step.machine) == approval["by"])
    is_met = is_met and datetime.fromisoformat(approval["at"]) <= latest
    return Sight(is_met=is_met, seen=seen, is_final=True)


def _own_name(machine: str) -> str:
    """What a machine is called in its scope, and so on the wire."""
    return machine.rpartition("/")[2]


def expected_event(step: ExpectEvent, readers: tuple[str, ...]) -> str:
    """What is expected of an event, in words."""
    who = " and ".join(readers)
    if step.seen is Seen.GONE:
        parts = [f"{who} not to read {step.event}"]
    else:
        parts = [f"{who} to read {step.event} as {step.seen.value}"]
    details: tuple[tuple[str, object], ...] = (
        ("EventType", None if step.type is None else step.type.value),
        ("EventSource", None if step.source is None else step.source.value),
        (
            "Resources",
            None if step.resources is None else ", ".join(map(_own_name, step.resources)),
        ),
        ("NotBefore", None if step.not_before is None else f"in {spell(step.not_before)}"),
        ("DurationInSeconds", step.duration),
        ("Description", None if step.description is None else repr(step.description)),
        ("DocumentIncarnation", step.incarnation),
    )
    parts += [f"{name} {value}" for name, value in details if value is not None]
    return ", ".join(parts)


def _follows(seen: Seen, expected: Seen) -> bool:
    order = list(Seen)
    return order.index(seen) > order.index(expected)


def _differing(step: ExpectEvent, event: Event, read: dict[str, Any]) -> list[str]:
    """The members that are not as expected, as they are read."""
    resources = None if step.resources is None else sorted(map(_own_name, step.resources))
    wanted: tuple[tuple[str, object, object], ...] = (
        ("EventType", None if step.type is None else step.type.value, read.get("EventType")),
        (
            "EventSource",
            None if step.source is None else step.source.value,
            read.get("EventSource"),
        ),
        ("Resources", resources, sorted(read.get("Resources", ()))),
        ("DurationInSeconds", step.duration, read.get("DurationInSeconds")),
        ("Description", step.description, read.get("Description")),
    )
    differing = [
        f"{name} {value!r}" for name, want, value in wanted if want is not None and want != value
    ]
    if not _is_timely(step, event, read.get("NotBefore", "")):
        differing.append(
            f"NotBefore {read.get('NotBefore')!r} announced at {event['announced_at']}"
        )
    return differing


def _is_timely(step: ExpectEvent, event: Event, not_before: str) -> bool:
    if step.seen is not Seen.SCHEDULED:
        # What has started has no NotBefore any more.
        return not not_before
    if step.not_before is None:
        return True
    earliest = datetime.fromisoformat(event["announced_at"]) + step.not_before
    return earliest <= parsedate_to_datetime(not_before) <= earliest + NOT_BEFORE_SLACK
