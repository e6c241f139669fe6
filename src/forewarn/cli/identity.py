"""`forewarn login`, `logout` and `whoami`: as whom this user speaks to which service."""

from __future__ import annotations

import sys
from dataclasses import replace
from getpass import getpass
from pathlib import Path
from typing import Final

from forewarn.cli import logins
from forewarn.cli.answers import Caller
from forewarn.cli.client import Client
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.options import AsJson
from forewarn.cli.phrases import spell, when_from
from forewarn.cli.tables import Table, print_json, print_line, print_table
from forewarn.cli.transport import Credentials, Service, Transport
from forewarn.clocks import SystemClock
from forewarn.config.surroundings import Surroundings
from forewarn.errors import Malformed, Refused

_SECRET_BYTES_MAX: Final = 4096


def login(
    *,
    client_id: str | None = None,
    secret_file: Path | None = None,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Log in to a service, and stay logged in.

    The secret is asked for, or read from the standard input if that is no
    terminal. It is tried, then kept for you alone, with a copy of the CA
    certificate; later commands need no options. `forewarn logout` forgets it.

    For example:

        forewarn login --endpoint https://10.0.0.5:8443 --ca ca.pem --client-id ann
        forewarn login --endpoint https://10.0.0.5:8443 --credentials ann.json
        forewarn login --data /var/lib/forewarn

    Args:
        client_id: Who you are; else as the file of --credentials says, or that of --data.
        secret_file: A file with the secret alone.
    """
    surroundings = Surroundings.of_this_process()
    service = _asked(client_id, secret_file, connection, surroundings)
    client = Client(Transport(service))
    # Before it is kept, it must be good.
    caller = client.caller()
    file = logins.keep(surroundings.config_home, service)
    _keep_token(surroundings, client)
    if as_json:
        print_json(_form(caller, client))
    else:
        print_line(f"logged in to {service.url} as {caller['name']} ({caller['role']})")
        print_line(f"kept in {file}; `forewarn logout` forgets it")


def logout(*, as_json: AsJson = False) -> None:
    """Forget what `forewarn login` kept.

    The secret stays good; `forewarn principal rotate` ends it.

    For example:

        forewarn logout
    """
    was_kept = logins.forget(Surroundings.of_this_process().config_home)
    if as_json:
        print_json({"was_logged_in": was_kept})
    else:
        print_line("logged out" if was_kept else "you were not logged in")


def whoami(*, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """Say as whom you speak to which service.

    For example:

        forewarn whoami
        forewarn whoami --json
    """
    client = connection.client()
    caller = client.caller()
    if as_json:
        print_json(_form(caller, client))
        return
    expires_at = client.transport.session.expires_at
    rows = [
        ("Name", caller["name"]),
        ("Role", caller["role"]),
        ("Resource groups", ", ".join(caller["groups"]) or "all"),
        ("Client id", caller["id"]),
        ("Endpoint", client.transport.service.url),
        (
            "Token until",
            when_from(spell(expires_at), SystemClock().now()) if expires_at else "not told",
        ),
    ]
    print_table(Table(rows=rows, unfolded=2))


def _asked(
    client_id: str | None,
    secret_file: Path | None,
    connection: Connection,
    surroundings: Surroundings,
) -> Service:
    """The service to log in to, and as whom. Raises: Malformed, Refused, Unavailable."""
    if client_id is None:
        if secret_file is not None:
            raise Malformed("a secret alone says nothing: give --client-id too")
        service = connection.service(surroundings)
        if service.token:
            raise Refused(
                f"an emulator needs no login: commands find its token with --data {service.data}"
            )
        return service
    if connection.credentials is not None:
        raise Malformed("say who you are once: either --client-id or --credentials")
    place = connection.place(surroundings)
    return replace(place, credentials=Credentials(client_id, _secret(secret_file)))


def _secret(file: Path | None) -> str:
    """Never an argument: everybody on the machine can read those. Raises: Malformed."""
    if file is None and sys.stdin.isatty():
        secret = getpass("Client secret: ")
    else:
        try:
            with sys.stdin if file is None else file.open(encoding="utf-8") as stream:
                secret = stream.read(_SECRET_BYTES_MAX)
        except (OSError, ValueError) as error:
            raise Malformed(
                f"no secret can be read from {file or 'the input'} ({error})"
            ) from error
    if not secret.strip():
        raise Malformed("the secret is empty: type it, or give --secret-file FILE")
    return secret.strip()


def _keep_token(surroundings: Surroundings, client: Client) -> None:
    got = client.transport.session
    logins.session(surroundings.config_home, client.transport.service).keep(got)


def _form(caller: Caller, client: Client) -> dict[str, object]:
    expires_at = client.transport.session.expires_at
    return {
        **caller,
        "endpoint": client.transport.service.url,
        "token_expires_at": spell(expires_at) if expires_at else None,
    }
