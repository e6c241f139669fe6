"""`forewarn env`: what to tell Azure's clients, so that they take a service for their cloud."""

from __future__ import annotations

import shlex
import sys
from typing import Literal

from forewarn.cli import clouds
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.options import AsJson
from forewarn.cli.tables import print_json, print_line

Shell = Literal["sh", "fish", "powershell"]


def env(*, shell: Shell = "sh", as_json: AsJson = False, connection: Connection = ANY) -> None:
    """Print the environment in which az and the Azure SDKs talk to the service.

    It holds the secret that you log in with. REQUESTS_CA_BUNDLE is a file of all
    that this system trusts and the service's own certificate.

    For example:

        eval "$(forewarn env)"
        forewarn env --shell fish | source
        forewarn env --shell powershell | Out-String | Invoke-Expression
        forewarn env --json

    Args:
        shell: The shell that is to read it; sh is also bash and zsh.
    """
    variables = clouds.reach(connection).variables
    if sys.stdout.isatty():
        sys.stderr.write(
            'forewarn: this shows a secret; `eval "$(forewarn env)"` sets it without showing it\n'
        )
    if as_json:
        print_json(variables)
        return
    for name, value in variables.items():
        print_line(_line(shell, name, value))


def _line(shell: Shell, name: str, value: str) -> str:
    if shell == "fish":
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"set -gx {name} '{escaped}'"
    if shell == "powershell":
        doubled = value.replace("'", "''")
        return f"$env:{name} = '{doubled}'"
    return f"export {name}={shlex.quote(value)}"
