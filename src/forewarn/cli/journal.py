"""`forewarn journal`: what happened, page by page or as it happens; export, then prune."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from forewarn.cli import exports, prefixes
from forewarn.cli.answers import Entry
from forewarn.cli.client import FOLLOW_SECONDS, Client
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.options import AsJson
from forewarn.cli.phrases import parse_instant, spell, when
from forewarn.cli.pictures import actor_name, scope_name, summary
from forewarn.cli.tables import print_json, print_json_line, print_line
from forewarn.errors import Malformed

_DATE: Final = re.compile(r"\s*\d{4}-")


def journal(
    *,
    follow: bool = False,
    event: str | None = None,
    scope: str | None = None,
    since: str = "",
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Show what happened: what, when, by whom, from where.

    With --json, an object with the entries and the cursor to go on from; with
    --follow as well, one entry to a line.

    For example:

        forewarn journal
        forewarn journal --follow --scope rg1/web
        forewarn journal --event 4F2A --json
        forewarn journal --since 2026-11-16T09:00:00Z

    Args:
        follow: Go on showing entries as they are written, until interrupted.
        event: Only entries about this event; its id, or its first characters (4 or more).
        scope: Only entries about this scope, written GROUP/NAME, or NAME if no other has it.
        since: Only entries since this day or time, or after this cursor.
    """
    client = connection.client()
    event_id = None if event is None else prefixes.resolve(client, [event])[0]
    cursor, earliest = _beginning(since)
    if follow:
        _follow(client, since, event_id, scope, as_json=as_json)
    entries: list[Entry] = []
    for page in client.journal_pages(cursor, event=event_id, scope=scope):
        cursor = page["cursor"]
        wanted = _since(page["entries"], earliest)
        if as_json:
            entries += wanted
        else:
            _print_entries(wanted)
    if as_json:
        print_json({"entries": entries, "cursor": cursor})


def export(
    file: Annotated[Path, Parameter(name="FILE")],
    /,
    *,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Write the whole journal into a new file, one JSON object to a line.

    For example:

        forewarn journal export journal-2026-11.jsonl

    Args:
        file: The file to write; it must not exist yet.
    """
    exported = exports.export(connection.client(), file)
    if as_json:
        print_json({"entries": exported.entries, "path": str(file)})
    else:
        print_line(f"wrote {_counted(exported.entries)} to {file}")


def prune(
    *,
    before: str,
    export: Path | None = None,
    no_export: bool = False,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Forget the journal of long ago, after it was exported.

    The file is written, and read back, before anything is forgotten.

    For example:

        forewarn journal prune --before 2026-10-01 --export journal-2026-09.jsonl

    Args:
        before: Forget what was written before this day or time, such as 2026-10-01.
        export: The file to write first; it must not exist yet.
        no_export: Forget without a copy.
    """
    instant = parse_instant(before)
    if (export is None) != no_export:
        raise Malformed("say where to keep a copy with --export FILE, or give --no-export")
    client = connection.client()
    exported = None if export is None else exports.export(client, export, before=instant)
    if exported is None:
        pruned = client.prune(spell(instant))
    else:
        # Never later than what the file holds: what was written meanwhile is not forgotten.
        pruned = client.prune(spell(exported.until)) if exported.until else 0
    if as_json:
        print_json({"exported": exported.entries if exported else 0, "pruned": pruned})
        return
    if exported is not None:
        print_line(f"wrote {_counted(exported.entries)} to {export}")
    print_line(f"pruned {_counted(pruned)}")


def _counted(entries: int) -> str:
    return "1 entry" if entries == 1 else f"{entries} entries"


def _beginning(since: str) -> tuple[str, datetime | None]:
    """The cursor to read from, and the first instant that is wanted."""
    # No cursor looks like a date.
    return ("", parse_instant(since)) if _DATE.match(since) else (since, None)


def _since(entries: list[Entry], earliest: datetime | None) -> list[Entry]:
    if earliest is None:
        return entries
    return [entry for entry in entries if datetime.fromisoformat(entry["at"]) >= earliest]


def _follow(
    client: Client, since: str, event_id: str | None, scope: str | None, *, as_json: bool
) -> None:
    cursor, earliest = _beginning(since)
    while True:
        page = client.journal(cursor, wait=FOLLOW_SECONDS, event=event_id, scope=scope)
        cursor = page["cursor"]
        wanted = _since(page["entries"], earliest)
        if as_json:
            for entry in wanted:
                print_json_line(entry)
        else:
            _print_entries(wanted)


def _print_entries(entries: list[Entry]) -> None:
    for entry in entries:
        print_line(_line(entry))


def _line(entry: Entry) -> str:
    actor = entry["by"]
    parts = [
        when(entry["at"]),
        entry["what"].ljust(9),
        scope_name(entry["resource_group"], entry["scope"]),
        summary(entry["event"]) if entry["event"] else "",
        f"by {actor_name(actor['role'], actor['name'], actor['address'])}",
        entry["note"],
    ]
    return "  ".join(part for part in parts if part)
