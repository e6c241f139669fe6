"""`forewarn clock`: what time it is to an emulator, and letting it pass."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from forewarn.cli.answers import Clock
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.options import AsJson
from forewarn.cli.phrases import parse_instant, seconds, spell
from forewarn.cli.tables import print_json, print_line
from forewarn.errors import Malformed
from forewarn.tables.durations import parse_duration


def clock(*, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """Show an emulator's time, and let it pass.

    For example:

        forewarn clock --data /tmp/forewarn-k3x9
        forewarn clock advance 15m
    """
    _tell(connection.client().clock(), as_json=as_json)


def advance(
    by: Annotated[str | None, Parameter(name="BY", allow_leading_hyphen=True)] = None,
    /,
    *,
    to: str | None = None,
    next_: Annotated[bool, Parameter(name="--next")] = False,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Let time pass in an emulator; whatever it brings is done when this returns.

    For example:

        forewarn clock advance 15m
        forewarn clock advance --to 2026-11-16T09:00:00Z
        forewarn clock advance --next

    Args:
        by: How long, such as 15m.
        to: Until when, such as 2026-11-16T09:00:00Z.
        next_: Until something happens.
    """
    if (by is not None) + (to is not None) + next_ != 1:
        raise Malformed("say how far: 15m, --to 2026-11-16T09:00:00Z, or --next")
    body: dict[str, object] = {"next": True}
    if by is not None:
        body = {"seconds": seconds(parse_duration(by))}
    elif to is not None:
        body = {"to": spell(parse_instant(to))}
    _tell(connection.client().advance(body), as_json=as_json)


def _tell(told: Clock, *, as_json: bool) -> None:
    if as_json:
        print_json(told)
        return
    speed = told["speed"]
    print_line(f"{told['now']}, " + (f"{speed:g} times as fast" if speed else "standing still"))
