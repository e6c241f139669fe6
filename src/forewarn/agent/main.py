"""The command `forewarn agent`, by the standard library alone.

Rule: as of `forewarn`. What goes wrong on purpose is one line on the standard error and a status by its family.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn, TextIO

from forewarn import __version__
from forewarn.agent import running
from forewarn.agent.imagining import parse_source, parse_type
from forewarn.agent.settings import FILE, load_settings
from forewarn.errors import ForewarnError, Malformed
from forewarn.statuses import INTERRUPTED, READER_GONE, STATUS_OF, status_of
from forewarn.tables.durations import parse_duration
from forewarn.tables.reading import Faulty

_DESCRIPTION: Final = """\
Runs this VM's hooks before a scheduled event, approves it, and undoes afterwards.

For example:

    {prog}                                   work until stopped, as the service does
    {prog} run --dry-run                     only tell what would be done
    {prog} test Reboot                       run the hooks as if
    {prog} explain --type Freeze             say what would happen, and why
    {prog} status                            say what the agent has in hand
    {prog} approve 4F2A                      let an event start that is held
"""
_EPILOGUE: Final = """\
Exit status:

  0  it is done
  2  the command, or the agent's file, could not be understood: correct it
  3  it was understood, and is not allowed
  4  no event is called that
  6  the agent, or the metadata service, cannot be reached: try again later
  7  a hook failed
130  you interrupted it (Ctrl-C)
"""
_TEST: Final = """\
Runs the hooks of prepare, started and undo, one after another, as if such an event were announced, started and went
by. They are really run, and really do what they do; nothing is approved, and no server has such an event.

For example:

    {prog} Reboot
    {prog} Preempt                           with the 30 seconds that a Preempt gives
    {prog} Freeze --duration 9s --source User
    {prog} Reboot --limit 30s                no hook may take longer
"""
_EXPLAIN: Final = """\
Says of an event which rule is for it and why the rules before are not, which hooks are run, when it is approved and why
not now, and what is undone. Nothing is run and nothing is approved.

For example:

    {prog} --type Freeze --duration 9s
    {prog} --type Reboot --resources web-0,web-1 --name web-1
    {prog} 4F2A                              an event of this VM's document
    {prog} --type Terminate --json
"""
_STATUS: Final = """\
Asks the agent that runs on this VM what it has in hand: the events, what became of their hooks, and why they are or are
not approved.

For example:

    {prog}
    {prog} --json
"""
_APPROVE: Final = """\
Lets an event start now, whatever its hooks and the rules say: for one that the agent holds, such as after a hook
failed and you have done its work by hand. It starts for all of its VMs. No agent need be running.

For example:

    {prog} 4F2A                              an event of this VM's document, by its id or its beginning
"""
_RUN: Final = """\
Works until it is stopped. Hooks that run then go on, and the next agent takes them up.

For example:

    {prog}
    {prog} --config ./agent.toml --dry-run
"""


def main(arguments: Sequence[str] | None = None, *, prog: str = "forewarn agent") -> int:
    """Run the command, and return its exit status; `prog` is what people call it."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _do(words, prog)
    except Faulty as error:
        # Editors and people jump to a line that begins with its place.
        sys.stderr.write(f"{error}\n")
        count = str(error).count("\n") + 1
        return _complain(prog, "1 error" if count == 1 else f"{count} errors", STATUS_OF[Malformed])
    except ForewarnError as error:
        return _complain(prog, str(error), status_of(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; what is left of it goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), sys.stdout.fileno())
        return READER_GONE


def _complain(prog: str, message: str, status: int) -> int:
    sys.stderr.write(f"{prog}: {message}\n")
    return status


def _do(words: list[str], prog: str) -> int:
    parser, names = _parser(prog)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help", "--version")):
        words = ["run", *words]
    if not words[0].startswith("-") and words[0] not in names:
        near = get_close_matches(words[0], names, n=1)
        meant = f' (did you mean "{near[0]}"?)' if near else ""
        raise Malformed(f'there is no command "{words[0]}"{meant}; see `{prog} --help`')
    try:
        options, rest = parser.parse_known_args(words)
    except SystemExit as end:
        # Of --help and --version.
        return int(end.code or 0)
    if rest:
        unknown = f"unrecognized arguments: {' '.join(rest)}"
        raise Malformed(f"{unknown}; see `{prog} {words[0]} --help`")
    do: Callable[[argparse.Namespace], int] = options.do
    return do(options)


class _Parser(argparse.ArgumentParser):
    """Refuses in our own words."""

    def error(self, message: str) -> NoReturn:
        raise Malformed(f"{message}; see `{self.prog} --help`")


def _parser(prog: str) -> tuple[argparse.ArgumentParser, tuple[str, ...]]:
    """The parser, and the commands it knows."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog=prog,
        description=_DESCRIPTION.format(prog=prog),
        epilog=_EPILOGUE,
        formatter_class=layout,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")

    def add(name: str, summary: str, description: str) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=summary,
            description=description.format(prog=f"{prog} {name}"),
            formatter_class=layout,
            allow_abbrev=False,
        )
        command.add_argument(
            "--config", type=Path, metavar="FILE", help=f"the agent's file (default: {FILE})"
        )
        command.set_defaults(do=_run if name == "run" else _errand(name))
        return command

    run = add("run", "work until stopped (the default)", _RUN)
    run.add_argument("--dry-run", action="store_true", help="tell what would be done, do nothing")
    test = add("test", "run the hooks as if there were an event", _TEST)
    test.add_argument("type", metavar="TYPE", type=parse_type, help=_TYPES)
    test.add_argument(
        "--limit", type=parse_duration, metavar="TIME", help="no hook may take longer than this"
    )
    explain = add("explain", "say what would be done about an event, and why", _EXPLAIN)
    which = explain.add_mutually_exclusive_group(required=True)
    which.add_argument("event", nargs="?", metavar="EVENT_ID", help="an event of the document")
    which.add_argument("--type", type=parse_type, metavar="TYPE", help=f"make one up: {_TYPES}")
    for command in (test, explain):
        _add_idea(command)
    status = add("status", "say what the agent on this VM has in hand", _STATUS)
    approve = add("approve", "let an event start that is held", _APPROVE)
    approve.add_argument("event", metavar="EVENT_ID", help="an event, by its first 4 or more")
    for command in (explain, status):
        command.add_argument("--json", action="store_true", help="for programs")
    return parser, tuple(commands.choices)


_TYPES: Final = "Freeze, Reboot, Redeploy, Preempt or Terminate"


def _add_idea(command: argparse.ArgumentParser) -> None:
    """Options that say what an event is like that is made up."""
    command.add_argument(
        "--source",
        type=parse_source,
        metavar="SOURCE",
        help="Platform or User (default: Platform)",
    )
    command.add_argument(
        "--duration",
        type=parse_duration,
        metavar="TIME",
        help="how long it takes (default: unknown)",
    )
    command.add_argument(
        "--notice",
        type=parse_duration,
        metavar="TIME",
        help="how long before it starts (default: as Azure has it)",
    )
    command.add_argument(
        "--resources",
        type=_names,
        default=(),
        metavar="VM,VM",
        help="the VMs that it hits (default: this one)",
    )
    command.add_argument(
        "--name", metavar="VM", help="this VM's name (default: the file's, or the endpoint's)"
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


class _JournalFormatter(logging.Formatter):
    """Begins each line with its priority, as journald understands it: `journalctl -p warning`."""

    _PRIORITIES: Final = {logging.ERROR: 3, logging.WARNING: 4, logging.INFO: 6}

    def format(self, record: logging.LogRecord) -> str:
        priority = self._PRIORITIES.get(record.levelno, 5)
        lines = super().format(record).splitlines()
        return "\n".join(f"<{priority}>{line}" for line in lines)


def _log_to(stream: TextIO, environment: Mapping[str, str]) -> None:
    handler = logging.StreamHandler(stream)
    if "JOURNAL_STREAM" in environment:
        handler.setFormatter(_JournalFormatter("%(message)s"))
    else:
        line = logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
        line.converter = time.gmtime
        handler.setFormatter(line)
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _run(options: argparse.Namespace) -> int:
    _log_to(sys.stderr, os.environ)
    running.run(load_settings(options.config), os.environ, is_dry=options.dry_run)
    return 0


def _errand(name: str) -> Callable[[argparse.Namespace], int]:
    """One of the commands that are over soon; whoever runs for months need not carry them."""

    def do(options: argparse.Namespace) -> int:
        logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
        status = getattr(import_module("forewarn.agent.commands"), name)(options, os.environ)
        return int(status)

    return do
