"""`forewarn az-setup`: make Azure's command line know the service as a cloud, and log in there."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from forewarn.cli import clouds
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.tables import print_line
from forewarn.config.surroundings import inherited
from forewarn.errors import Malformed, Unavailable

# az takes its time to load, the first time above all.
AZ_SECONDS_MAX: Final = 300
# az reads the secret from its standard input: others see the words of a command.
_SECRET_BY_STDIN: Final = "--password=@-"  # noqa: S105 - the place of one


@dataclass(frozen=True, slots=True)
class _Az:
    program: str
    environment: Mapping[str, str]

    def knows(self, cloud: str) -> bool:
        return self._done(["cloud", "show", "--name", cloud], "").returncode == 0

    def run(self, words: Sequence[str], secret: str = "") -> None:
        """Run a command, and say which. Raises: Unavailable."""
        print_line(f"$ az {shlex.join(words)}")
        done = self._done(words, secret)
        if done.returncode != 0:
            said = " ".join((done.stderr or done.stdout).split()) or f"status {done.returncode}"
            raise Unavailable(f"`az {words[0]} {words[1]}` did not succeed: {said}")
        print_line("  done")

    def _done(self, words: Sequence[str], secret: str) -> subprocess.CompletedProcess[str]:
        command = [self.program, *words, "--only-show-errors", "--output", "none"]
        try:
            return subprocess.run(  # noqa: S603 - the az that the user named or has
                command,
                input=secret,
                capture_output=True,
                text=True,
                check=False,
                timeout=AZ_SECONDS_MAX,
                env=self.environment,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(
                f"{self.program} was not done within {AZ_SECONDS_MAX} s: try again"
            ) from None
        except OSError as error:
            raise Malformed(
                f"{self.program} cannot be run ({error.strerror}): give --az another"
            ) from error


def az_setup(
    *, az: Path | None = None, name: str = "forewarn", connection: Connection = ANY
) -> None:
    """Make az know the service, and log in there.

    It registers the service as a cloud of its own, in a directory apart: what
    your az knows of Azure stays as it is. It may be done again at any time, and
    must be after the service has moved or your secret has changed.

    For example:

        forewarn az-setup
        eval "$(forewarn env)"
        az vm list

    Args:
        az: The az to set up; the one on PATH, if not given.
        name: What az shall call the cloud.
    """
    program = _program(az)
    cloud = clouds.reach(connection)
    client = _Az(program, inherited({**cloud.variables, "AZURE_CORE_COLLECT_TELEMETRY": "0"}))
    verb = "update" if client.knows(name) else "register"
    client.run(["cloud", verb, "--name", name, "--endpoint-resource-manager", cloud.url])
    client.run(["cloud", "set", "--name", name])
    who = cloud.service.credentials
    login = ["login", "--service-principal", "--username", who.client_id, _SECRET_BY_STDIN]
    client.run([*login, "--tenant", cloud.tenant_id], who.client_secret)
    print_line(f"az is logged in as {who.client_id}; in a shell, type:")
    print_line(f'  eval "$(forewarn env{_options(connection)})"')
    print_line("  az vm list --output table")


def _program(given: Path | None) -> str:
    found = shutil.which("az" if given is None else given)
    if found is None:
        raise Malformed(
            f"there is no {given or 'az on PATH'}: install it as "
            "https://aka.ms/azure-cli says, or with `pip install azure-cli`, and name it with "
            "--az PATH"
        )
    return found


def _options(connection: Connection) -> str:
    """The options that lead to the same service."""
    given = {
        "--data": connection.data,
        "--endpoint": connection.endpoint,
        "--ca": connection.ca,
        "--credentials": connection.credentials,
    }
    return "".join(f" {name} {shlex.quote(str(value))}" for name, value in given.items() if value)
