"""`forewarn emulator`: beginning anew, coming to rest, and what guests asked."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from forewarn.cli.answers import Clock
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.options import AsJson
from forewarn.cli.tables import Table, print_json, print_line, print_table

HELP: Final = """\
Have an emulator begin anew or finish what is due, and see who asked what.

For example:

    forewarn emulator reset
    forewarn emulator requests

Its time is told by `forewarn clock`, what goes wrong by `forewarn fault`.\
"""


def reset(*, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """Begin anew: the fleet of the start, no events, no requests, no faults.

    For example:

        forewarn emulator reset
    """
    _tell(connection.client().reset(), "begun anew", as_json=as_json)


def seed(
    number: Annotated[int, Parameter(name="NUMBER")],
    /,
    *,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Begin anew, with ids of events that follow from a number, at a fixed time.

    For example:

        forewarn emulator seed 7

    Args:
        number: The same one tells the same story.
    """
    _tell(connection.client().seed(number), f"begun anew with seed {number}", as_json=as_json)


def idle(*, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """Do what is due now, such as the start of an event that was just approved.

    For example:

        forewarn emulator idle
    """
    _tell(connection.client().settle(), "nothing more is due", as_json=as_json)


def requests(*, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """List the last requests of guests, oldest first.

    For example:

        forewarn emulator requests
        forewarn emulator requests --json
    """
    told = connection.client().requests()
    if as_json:
        print_json(told)
        return
    if told["forgotten"]:
        print_line(f"{told['forgotten']} before these")
    if not told["requests"]:
        print_line("nobody asked anything")
        return
    headings = ("Time", "VM", "Address", "Method", "Path", "Version", "Status")
    rows = [
        (
            one["at"],
            one["machine"] or "nobody's",
            one["address"],
            one["method"],
            one["path"],
            one["api_version"] or "",
            str(one["status"]),
        )
        for one in told["requests"]
    ]
    print_table(Table(headings=headings, rows=rows))


def _tell(clock: Clock, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json(clock)
    else:
        print_line(f"{what}; it is {clock['now']}")
