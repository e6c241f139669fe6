"""Options that several commands have in common."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

# Which service is asked; these may also stand before the command.
CONNECTION_OPTIONS: Final = ("--data", "--endpoint", "--ca", "--credentials")
WEBHOOK_ALLOW_HELP: Final = (
    "HOST or HOST:PORT that webhooks may have, *.DOMAIN for all hosts below; may be given several "
    "times. Without it there are no webhooks."
)

AsJson = Annotated[bool, Parameter(name="--json", help="Print JSON, for programs.")]
# "-5m" is a length of time that is refused, not an option that nobody knows.
Length = Annotated[str, Parameter(allow_leading_hyphen=True)]
EventIdPrefix = Annotated[
    str, Parameter(name="EVENT", help="The event's id, or its first characters (4 or more).")
]
