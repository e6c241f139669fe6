"""`forewarn fault`: what goes wrong on purpose in an emulator."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from cyclopts import Parameter

from forewarn.cli.answers import Fault
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.options import AsJson, Length
from forewarn.cli.phrases import seconds
from forewarn.cli.tables import Table, print_json, print_line, print_table
from forewarn.tables.durations import parse_duration

HELP: Final = """\
Have things go wrong in an emulator: errors, delays, lost answers.

For example:

    forewarn fault add 429 --vm web-0 --times 3
    forewarn fault add slow --delay 30s --for 5m
    forewarn fault list
    forewarn fault clear

A fault stays until it has struck so many times, until its time is over, or
until it is cleared. `forewarn emulator reset` clears all of them.\
"""

Kind = Literal[
    "429",
    "410",
    "500",
    "503",
    "empty",
    "slow",
    "slow-first",
    "reset",
    "truncated",
    "incarnation-restart",
    "webhook-duplicate",
    "webhook-reordered",
]


def add(
    kind: Annotated[Kind, Parameter(name="KIND")],
    /,
    *,
    vm: str | None = None,
    times: int | None = None,
    lasts: Annotated[Length | None, Parameter(name="--for")] = None,
    delay: Length | None = None,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Have something go wrong.

    For example:

        forewarn fault add 429 --vm web-0 --times 3
        forewarn fault add slow --delay 30s --for 5m
        forewarn fault add incarnation-restart

    Args:
        kind: A status, or what becomes of the answer, the document or the webhook.
        vm: Only for this VM; else for all.
        times: How many times.
        lasts: For how long, such as 5m, by the emulator's clock.
        delay: How long the answer (slow, slow-first) or the news (webhook-reordered) is kept, such as 30s.
    """
    body: dict[str, object] = {"kind": kind, "machine": vm, "times": times}
    if lasts is not None:
        body["seconds"] = seconds(parse_duration(lasts))
    if delay is not None:
        body["delay_seconds"] = seconds(parse_duration(delay))
    added = connection.client().add_fault(body)
    if as_json:
        print_json(added)
        return
    print_line(f"fault {added['id']} is in force: {' '.join(filter(None, _told(added)))}")


def list_(*, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """List what goes wrong now.

    For example:

        forewarn fault list
        forewarn fault list --json
    """
    found = connection.client().faults()
    if as_json:
        print_json({"faults": found})
    elif not found:
        print_line("nothing goes wrong; `forewarn fault add KIND` changes that")
    else:
        headings = ("Id", "Kind", "VM", "Times", "Until", "Delay")
        print_table(Table(headings=headings, rows=[(one["id"], *_told(one)) for one in found]))


def clear(
    fault: Annotated[str | None, Parameter(name="ID")] = None,
    /,
    *,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """End a fault, or all of them.

    For example:

        forewarn fault clear
        forewarn fault clear 2

    Args:
        fault: The fault's id; all, if not given.
    """
    client = connection.client()
    if fault is None:
        client.clear_faults()
    else:
        client.remove_fault(fault)
    left = client.faults()
    if as_json:
        print_json({"faults": left})
    else:
        print_line(f"{len(left)} left in force" if left else "nothing goes wrong any more")


def _told(fault: Fault) -> tuple[str, ...]:
    """What it is, for whom, how often, until when and how slow."""
    return (
        fault["kind"],
        fault["machine"] or "all VMs",
        "" if fault["times"] is None else f"{fault['times']} times",
        "" if fault["until"] is None else f"until {fault['until']}",
        "" if not fault["delay_seconds"] else f"by {fault['delay_seconds']:g}s",
    )
