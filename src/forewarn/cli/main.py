"""The command `forewarn`: its commands, its errors and its exit statuses.

Rule: what goes wrong on purpose is one line on the standard error and a status by its family; whatever
is not a ForewarnError is a bug, and crashes with its trace and status 1.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import App, CycloptsError, Parameter, UnknownCommandError, UnusedCliTokensError
from cyclopts.completion.detect import ShellDetectionError

from forewarn import __version__
from forewarn.cli.options import CONNECTION_OPTIONS
from forewarn.cli.tables import abandon_output, print_line, writing
from forewarn.errors import ForewarnError, Malformed
from forewarn.statuses import INTERRUPTED, READER_GONE, STATUS_OF, status_of
from forewarn.tables.reading import Faulty

HELP: Final = """\
Fair warning for every virtual machine before something happens to it.

For example:

    forewarn demo
    forewarn events
    forewarn announce freeze web-0 --notice 20m
    forewarn restart web-0 --wait
    forewarn approve 4F2A

A service on this machine is found by its data directory: --data DIR,
FOREWARN_DATA, ./.forewarn or /var/lib/forewarn. One elsewhere by
`forewarn login`; or by --endpoint URL, --ca FILE and --credentials FILE; or by
FOREWARN_ENDPOINT, FOREWARN_CA, FOREWARN_CLIENT_ID and FOREWARN_CLIENT_SECRET.
These options may stand before or after the command.\
"""
EPILOGUE: Final = """\
Exit status:

  0  it is done
  1  a bug in forewarn; of `scenario run`: something expected did not come true
  2  the command could not be understood: correct it
  3  it was understood, and is not allowed
  4  nothing here has that name
  5  somebody else was faster: look again, then decide again
  6  the service is not running or cannot be reached: try again later
  7  what was waited for is over, and failed or was canceled
  8  what was waited for was not over in time: it goes on
130  you interrupted it (Ctrl-C)
"""

# Named, not imported: to list events one need not load a service.
SERVING: Final[Mapping[str, str]] = {
    "serve": "Serve scheduled events to a fleet.",
    "demo": "Serve a sample fleet on loopback, and say what to try.",
    "emulate": "Serve made-up VMs on loopback, on a clock of your own: to test handlers with.",
    "check-config": "Say all that is wrong with a fleet file.",
    "restore": "Put a backup in the place of the service's database.",
}

AGENT: Final = "Run a VM's hooks before an event, approve it, and undo afterwards: the VM's side."

Shell = Literal["bash", "zsh", "fish"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        return _run(words)
    except CycloptsError as error:
        return _complain(f"{_complaint(error)}; see `{_help_of(error)}`", STATUS_OF[Malformed])
    except Faulty as error:
        # Editors and people jump to a line that begins with its place.
        sys.stderr.write(f"{error}\n")
        count = str(error).count("\n") + 1
        errors = "1 error" if count == 1 else f"{count} errors"
        return _complain(f"{errors}, nothing was changed", STATUS_OF[Malformed])
    except ForewarnError as error:
        return _complain(str(error), status_of(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        abandon_output()
        return READER_GONE


def build(words: Sequence[str] = ()) -> App:
    """The commands, and how their help looks, to somebody who typed these words."""
    app = App(
        name="forewarn",
        help=HELP,
        help_epilogue=EPILOGUE,
        help_format="plaintext",
        version=__version__,
        suppress_keyboard_interrupt=False,
        # Flags have no opposite.
        default_parameter=Parameter(negative="", show_default=_shown),
    )
    for name, summary in SERVING.items():
        app.command(
            f"forewarn.cli.{_module(name)}:{name.replace('-', '_')}",
            name=name,
            # A summary would take the place of the command's own page.
            help=None if name in words else summary,
            help_epilogue="",
        )
    if not words or words[0] not in SERVING:
        # Likewise: to serve one need not load its clients.
        import_module("forewarn.cli.commands").register(app, words)
    app.command(agent, help=AGENT, help_epilogue="")
    app.command(completion, help_epilogue="")
    app.command(install_completion, name="--install-completion", help_epilogue="")
    return app


def agent(*words: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:
    """Be the agent, or try it; `forewarn agent --help` has its commands."""
    return int(import_module("forewarn.agent.main").main(words))


def completion(shell: Annotated[Shell, Parameter(name="SHELL")], /) -> None:
    """Print the completion script of a shell.

    For example:

        source <(forewarn completion bash)
        forewarn completion zsh > ~/.zfunc/_forewarn
        forewarn completion fish > ~/.config/fish/completions/forewarn.fish

    Args:
        shell: The shell.
    """
    with writing():
        sys.stdout.write(build().generate_completion(shell=shell))


def install_completion(*, shell: Shell | None = None) -> None:
    """Install completion for your shell.

    For example:

        forewarn --install-completion --shell bash

    Args:
        shell: The shell; the one you are in, if not given.
    """
    startup = [Path.home() / name for name in (".bashrc", ".zshrc")]
    before = [_content(file) for file in startup]
    try:
        path = build().install_completion(shell=shell)
    except ShellDetectionError:
        raise Malformed("cannot tell which shell this is: give --shell bash, zsh or fish") from None
    print_line(f"wrote {path}")
    for file, content in zip(startup, before, strict=True):
        if _content(file) != content:
            print_line(f"added a line to {file}, which loads it")
    print_line("it takes effect in new shells, and is renewed by the same command")


def _content(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() else b""


def _run(words: Sequence[str]) -> int:
    if words and words[0] == "agent":
        # It has a command line of its own, as it goes into VMs without us.
        return agent(*words[1:])
    result = build(words)(
        _connection_last(words),
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
    )
    with writing():
        sys.stdout.flush()
    return result if isinstance(result, int) else 0


def _module(name: str) -> str:
    """Where a command that runs a service lives."""
    return "emulating" if name == "emulate" else "serving"


def _connection_last(words: Sequence[str]) -> list[str]:
    """The same words, with those that say which service behind the command they belong to."""
    end = words.index("--") if "--" in words else len(words)
    command: list[str] = []
    moved: list[str] = []
    rest = iter(words[:end])
    for word in rest:
        name, equals, value = word.partition("=")
        if name not in CONNECTION_OPTIONS:
            command.append(word)
            continue
        said = [value] if equals else list(islice(rest, 1))
        if said == [""]:
            # An empty path would be the directory that one is in.
            raise Malformed(f"{name} is empty, is a variable not set? Say which, or leave it out")
        moved += [word] if equals else [word, *said]
    return [*command, *moved, *words[end:]]


def _shown(default: object) -> str | None:
    """A default as help shows it; that a flag is off goes without saying."""
    if isinstance(default, Enum):
        return default.name.lower().replace("_", "-")
    return str(default) if default else None


def _complaint(error: CycloptsError) -> str:
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        # Its own words would load every command there is.
        return _no_command(error.unused_tokens[0], error.app)
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"unexpected: {' '.join(error.unused_tokens)}"
    text = " ".join(str(error).split()).removesuffix(".")
    return text[:1].lower() + text[1:]


def _no_command(word: str, app: App | None) -> str:
    near = get_close_matches(word, [name for name in app or () if not name.startswith("-")], n=1)
    meant = f' (did you mean "{near[0]}"?)' if near else ""
    return f'there is no command "{word}"{meant}'


def _help_of(error: CycloptsError) -> str:
    return " ".join(["forewarn", *(error.command_chain or ()), "--help"])


def _complain(message: str, status: int) -> int:
    sys.stderr.write(f"forewarn: {message}\n")
    return status
