"""`forewarn announce`: put an event before the VMs that it concerns."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from cyclopts import Parameter

from forewarn.cli import errands, following
from forewarn.cli.answers import Announcement
from forewarn.cli.client import Client
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.following import Lookout, Patience
from forewarn.cli.options import AsJson, Length
from forewarn.cli.phrases import seconds
from forewarn.cli.pictures import events_table
from forewarn.cli.tables import print_json, print_table
from forewarn.clocks import SystemClock
from forewarn.core.events import Cause, EventSource
from forewarn.errors import Malformed
from forewarn.tables.durations import parse_duration


class Announced(Enum):
    """What can be announced: `core.events.ANNOUNCED_TYPES` to the letter."""

    FREEZE = "Freeze"
    REBOOT = "Reboot"
    REDEPLOY = "Redeploy"
    PREEMPT = "Preempt"
    TERMINATE = "Terminate"


def announce(
    event_type: Annotated[Announced, Parameter(name="TYPE")],
    /,
    *machines: Annotated[str, Parameter(name="VM")],
    host: tuple[str, ...] = (),
    notice: Length | None = None,
    source: EventSource = EventSource.PLATFORM,
    cause: Cause = Cause.MAINTENANCE,
    description: str | None = None,
    duration: Length | None = None,
    unannounced: bool = False,
    patience: Patience = following.NONE,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Announce an event to VMs.

    What cannot happen at once (several hosts, several update domains) becomes
    several events.

    For example:

        forewarn announce freeze web-0
        forewarn announce reboot web-0 web-1 --notice 1h --description "new disk"
        forewarn announce redeploy --host host-a --cause predicted-failure
        forewarn announce terminate batch_0 --source user --json
        forewarn announce freeze web-0 --wait --timeout 20m

    Args:
        event_type: What the VMs will undergo; upper and lower case are alike.
        machines: The VMs concerned, by name, or as GROUP/SCOPE/NAME where two have one name.
        host: All VMs of this host; may be given several times.
        notice: How long before it may start unapproved, such as 20m; the type's minimum, or more.
        source: Whose wish it is.
        cause: Why: a hardware failure starts at once, a predicted one is announced days ahead.
        description: What the VMs' owners should know about it.
        duration: How long the impact is expected to take, such as 9s.
        unannounced: Go ahead where the VMs would not be told (scope not enabled, or terminate notification off).
    """
    if not machines and not host:
        raise Malformed("nothing to announce it to: name a VM, or give --host HOST")
    wish = {
        "type": event_type.value,
        "machines": list(machines),
        "hosts": list(host),
        "source": source.value.lower(),
        "cause": cause.value,
        "notice_seconds": None if notice is None else seconds(parse_duration(notice)),
        "duration_seconds": None if duration is None else seconds(parse_duration(duration)),
        "description": description,
        "unannounced": unannounced,
    }
    patience.limit()
    client = connection.client()
    _tell(client, client.announce(wish), patience, as_json=as_json)


def _tell(client: Client, answer: Announcement, patience: Patience, *, as_json: bool) -> None:
    made = [*answer["events"], *answer["unannounced"]]
    if patience.wait:
        Lookout(client).finish(errands.of_events(made), patience, as_json=as_json)
    elif as_json:
        print_json({"events": answer["events"], "unannounced": answer["unannounced"]})
    else:
        print_table(events_table(made, SystemClock().now()))
