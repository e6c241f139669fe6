"""`forewarn backup`: a copy of everything the service keeps, while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from forewarn.cli.connection import ANY, Connection
from forewarn.cli.options import AsJson
from forewarn.cli.tables import print_json, print_line


def backup(
    file: Annotated[Path, Parameter(name="FILE")],
    /,
    *,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Write a backup while the service runs.

    The service itself writes the file, on its own machine; `forewarn restore`
    reads it.

    For example:

        forewarn backup /var/backups/forewarn-monday.db

    Args:
        file: The file to write; it must not exist yet.
    """
    path = connection.client().backup(str(file.absolute()))
    if as_json:
        print_json({"path": path})
    else:
        print_line(f"wrote {path}")
