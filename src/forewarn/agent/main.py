"""The command `forewarn agent`, by the standard library alone."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from forewarn.agent import running
from forewarn.agent.settings import FILE, load_settings
from forewarn.errors import ForewarnError, Malformed, Refused, Unavailable

_STATUS_OF: Final[Mapping[type[ForewarnError], int]] = {Malformed: 2, Refused: 3, Unavailable: 6}
_COMMANDS: Final = ("run",)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not any(one in _COMMANDS for one in given) and "--help" not in given and "-h" not in given:
        given.insert(0, "run")
    options = _parser().parse_args(given)
    do: Callable[[argparse.Namespace], int] = options.do
    try:
        return do(options)
    except ForewarnError as error:
        sys.stderr.write(f"forewarn agent: {error}\n")
        families = (code for family, code in _STATUS_OF.items() if isinstance(error, family))
        return next(families, 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="forewarn agent",
        description="Runs this VM's hooks before a scheduled event, approves it, and undoes afterwards.",
    )
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--config", type=Path, metavar="FILE", help=f"the agent's file (default: {FILE})"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", parents=[shared], help="work until stopped (the default)")
    run.add_argument("--dry-run", action="store_true", help="tell what would be done, do nothing")
    run.set_defaults(do=_run)
    return parser


def _run(options: argparse.Namespace) -> int:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    running.run(load_settings(options.config), os.environ, is_dry=options.dry_run)
    return 0
