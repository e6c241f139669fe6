"""`forewarn fleet`: which VMs are known, and how a fleet file is put in force."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from forewarn.cli.answers import Scope
from forewarn.cli.client import Client
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.options import AsJson
from forewarn.cli.pictures import scope_name
from forewarn.cli.tables import Table, print_json, print_line, print_table
from forewarn.config.fleets import read_fleet
from forewarn.errors import Malformed
from forewarn.tables.reading import Faulty

_HEADINGS = ("VM", "Addresses", "Host", "Update domain", "Presence")


def fleet(*, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """Show the VMs that are known, scope by scope.

    For example:

        forewarn fleet
        forewarn fleet --json
        forewarn fleet apply fleet.toml
    """
    answer = connection.client().fleet()
    if as_json:
        print_json(answer)
        return
    if not answer["scopes"]:
        print_line("no VMs are known; `forewarn fleet apply FILE` adds those of a fleet file")
    for number, scope in enumerate(answer["scopes"]):
        if number:
            print_line("")
        print_table(_scope_table(scope))


def apply(
    file: Annotated[Path | None, Parameter(name="FILE")] = None,
    /,
    *,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Put a fleet file in force, and tell what changed.

    Without FILE, the service reads its own file again. VMs that came from other
    sources stay as they are.

    For example:

        forewarn fleet apply
        forewarn fleet apply fleet.toml

    Args:
        file: The fleet file; it is in force until the service reads its own again.
    """
    client = connection.client()
    changes = client.reload_fleet() if file is None else _apply(client, file)
    if as_json:
        print_json({"changes": changes})
        return
    for change in changes or ["nothing changed"]:
        print_line(change)


def _apply(client: Client, file: Path) -> list[str]:
    toml = read_fleet(file)
    try:
        return client.apply_fleet(toml, str(file))
    except Malformed as error:
        # The service names the file as we named it to the service.
        if str(error).startswith(f"{file}:"):
            raise Faulty(str(error)) from None
        raise


def _scope_table(scope: Scope) -> Table:
    enabled = "enabled" if scope["enabled"] else "not enabled"
    rows = [
        (
            machine["name"],
            ", ".join(machine["addresses"]),
            machine["host"] or "",
            str(machine["update_domain"]),
            machine["presence"],
        )
        for machine in scope["machines"]
    ]
    name = scope_name(scope["resource_group"], scope["scope"])
    return Table(title=f"{name} ({scope['kind']}, {enabled})", headings=_HEADINGS, rows=rows)
