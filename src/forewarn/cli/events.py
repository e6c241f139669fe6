"""`forewarn events` and `forewarn show`: what is coming, and what is on record about it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from forewarn.cli import prefixes
from forewarn.cli.client import Client
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.options import AsJson, EventIdPrefix
from forewarn.cli.pictures import actor_name, events_table, record_table
from forewarn.cli.tables import print_json, print_line, print_table
from forewarn.clocks import SystemClock


def events(
    *,
    everything: Annotated[
        bool, Parameter(name="--all", help="Completed and canceled ones too.")
    ] = False,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """List the events that are scheduled or started.

    For example:

        forewarn events
        forewarn events --all
        forewarn events --json | jq -r '.events[].event_id'
    """
    listed = connection.client().events("all" if everything else "open")
    if as_json:
        print_json({"events": listed})
    elif listed:
        print_table(events_table(listed, SystemClock().now()))
    else:
        print_line(
            "no events"
            if everything
            else "no open events; `forewarn events --all` lists ended ones too"
        )


def show(event: EventIdPrefix, /, *, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """Show the record of one event.

    When it was announced and readable, by whom and from where it was approved,
    when it started and ended, how much notice was promised and how much was
    given, and every time that was shown to the VMs.

    For example:

        forewarn show 4F2A
        forewarn show 4F2A --json
    """
    client = connection.client()
    [event_id] = prefixes.resolve(client, [event])
    record = client.event(event_id)
    if as_json:
        print_json(record)
    else:
        why = _why_canceled(client, event_id) if record["status"] == "Canceled" else ""
        print_table(record_table(record, SystemClock().now(), why))


def _why_canceled(client: Client, event_id: str) -> str:
    """Who called an event off, and why, as the journal has it."""
    told = ""
    for page in client.journal_pages("", event=event_id):
        for entry in page["entries"]:
            if entry["what"] == "canceled":
                by = entry["by"]
                name = actor_name(by["role"], by["name"], by["address"])
                told = f"by {name}: {entry['note']}" if entry["note"] else f"by {name}"
    return told
