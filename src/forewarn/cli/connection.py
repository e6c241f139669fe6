"""Which service is meant, how to get there, and as whom.

What is said on the command line wins over the environment, and an address over a data directory.
A service on this machine is found by its data directory, where it leaves its address, the file by
which its certificate is known, and what its first operator logs in with. An emulator leaves a token
instead, and nobody needs to log in to it.

In this order, the first that says where:

1. --endpoint; --data; the address in a --credentials file
2. FOREWARN_ENDPOINT (before that address, but not before --data); FOREWARN_DATA
3. what `forewarn login` kept
4. ./.forewarn, if it is there; /var/lib/forewarn

Who logs in is said by --credentials, else by the operator.json of --data. Where neither is given,
FOREWARN_CLIENT_ID and FOREWARN_CLIENT_SECRET go with an address, and what `forewarn login` kept with
the one that it was kept for; a data directory has its own. FOREWARN_DATA's never go to an address:
who names a service elsewhere does not mean to show it the secret of the one that is here.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from forewarn.cli import logins
from forewarn.cli.client import Client
from forewarn.cli.transport import NOBODY, Credentials, Service, Transport
from forewarn.config.surroundings import Surroundings
from forewarn.errors import Malformed, Refused, Unavailable

_HERE: Final = Path(".forewarn")
_SYSTEM_WIDE: Final = Path("/var/lib/forewarn")


@Parameter(name="*", group="Which service")
@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The options by which every command finds its service."""

    data: Annotated[
        Path | None,
        Parameter(
            help="Data directory of a service on this machine; else FOREWARN_DATA, what "
            "`forewarn login` kept, ./.forewarn or /var/lib/forewarn."
        ),
    ] = None
    endpoint: Annotated[
        str | None,
        Parameter(
            help="Address of a service elsewhere, such as https://10.0.0.5:8443; else "
            "FOREWARN_ENDPOINT."
        ),
    ] = None
    ca: Annotated[
        Path | None,
        Parameter(
            help="File with the CA certificate to trust, such as the service's ca.pem; else "
            "FOREWARN_CA, or what this system trusts."
        ),
    ] = None
    credentials: Annotated[
        Path | None,
        Parameter(
            help="File that says as whom, such as the service's operator.json; else that of "
            "--data, or with an address FOREWARN_CLIENT_ID and FOREWARN_CLIENT_SECRET."
        ),
    ] = None

    def client(self) -> Client:
        """The way to the service. Raises: Malformed, Refused, Unavailable."""
        return Client(self.transport())

    def transport(self) -> Transport:
        """The same for whoever asks in words of his own. Raises: Malformed, Refused, Unavailable."""
        surroundings = Surroundings.of_this_process()
        service = self.service(surroundings)
        return Transport(service, logins.session(surroundings.config_home, service))

    def service(self, surroundings: Surroundings) -> Service:
        """The service that is meant, and as whom. Raises: Malformed, Refused, Unavailable."""
        place = self.place(surroundings)
        if place.token:
            return place
        return replace(place, credentials=self._credentials(place, surroundings))

    def place(self, surroundings: Surroundings) -> Service:
        """The service that is meant, as nobody yet. Raises: Malformed, Refused, Unavailable."""
        kept = None if self.data else logins.load(surroundings.config_home)
        endpoint = self.endpoint or (None if self.data else surroundings.endpoint)
        if endpoint is None and self.credentials is not None and self.data is None:
            endpoint = _read(self.credentials).get("endpoint")
        data = self.data or surroundings.data_directory
        if endpoint is None and (data is not None or kept is None):
            return self._on_this_machine(data or _usual())
        if kept is not None and endpoint in {None, kept.url}:
            return replace(kept, ca=self.ca or _kept_ca(self.data) or kept.ca)
        assert endpoint is not None, "without one, and without a login, it is on this machine"
        return Service(
            url=endpoint,
            ca=self.ca or _kept_ca(self.data) or surroundings.ca,
            remedy="see that it runs there and that its control address can be reached from here",
        )

    def _on_this_machine(self, data: Path) -> Service:
        remedy = f"start it with `forewarn serve --data {data}`, or name another with --data DIR"
        if data != _usual() and not data.exists():
            remedy = (
                "there is no such directory, and an emulator takes its own with it when it ends: "
                f"start another with `forewarn emulate`, or a service with `forewarn serve --data {data}`"
            )
        found = _published(data, remedy)
        if "token" in found:
            remedy = "start another with `forewarn emulate`, and name it with --data DIR"
        ca = found.get("ca")
        return Service(
            url=found["control"],
            ca=self.ca or (data / ca if ca else None),
            data=data,
            remedy=remedy,
            # Who says who he is means to be nobody else.
            token=found.get("token", "") if self.credentials is None else "",
        )

    def _credentials(self, place: Service, surroundings: Surroundings) -> Credentials:
        if self.credentials is not None:
            return _credentials(self.credentials)
        data = self.data or place.data
        if data is not None:
            return _credentials(data / "operator.json")
        is_told = self.endpoint is not None or surroundings.endpoint is not None
        if is_told and surroundings.client_id and surroundings.client_secret:
            return Credentials(surroundings.client_id, surroundings.client_secret)
        if place.credentials == NOBODY:
            raise Malformed(
                "an address needs to know who you are: give --credentials FILE or --data DIR, "
                "set FOREWARN_CLIENT_ID and FOREWARN_CLIENT_SECRET, or `forewarn login`"
            )
        return place.credentials


ANY: Final = Connection()


def _usual() -> Path:
    return _HERE if _HERE.is_dir() else _SYSTEM_WIDE


def _kept_ca(data: Path | None) -> Path | None:
    file = None if data is None else data / "ca.pem"
    return file if file is not None and file.exists() else None


def _published(data: Path, remedy: str) -> dict[str, str]:
    """What a service on this machine says of itself."""
    file = data / "endpoint.json"
    try:
        content = json.loads(file.read_bytes())
        found = {name: str(content[name]) for name in ("control", "ca", "token") if name in content}
        pid = content.get("pid")
    except FileNotFoundError:
        raise Unavailable(f"no service is running on {data}: {remedy}") from None
    except PermissionError:
        raise Refused(f"you may not read {file}: run this as the user of the service") from None
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise Unavailable(f"{file} tells no address: {remedy}") from error
    if "control" not in found:
        raise Unavailable(f"{file} tells no address: {remedy}")
    if not _lives(pid) and "token" in found:
        raise Unavailable(f"the emulator on {data} has died: start another with `forewarn emulate`")
    if not _lives(pid):
        # Whoever has its port by now must not be shown the secret.
        raise Unavailable(f"the service on {data} has died: {remedy}")
    return found


def _lives(pid: object) -> bool:
    """Whether a process lives; one that nobody named is taken to."""
    if not isinstance(pid, int):
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        # Another user's.
        return True
    return True


def _credentials(file: Path) -> Credentials:
    content = _read(file)
    try:
        return Credentials(content["client_id"], content["client_secret"])
    except KeyError:
        raise _not_credentials(file) from None


def _read(file: Path) -> dict[str, str]:
    try:
        content = json.loads(file.read_bytes())
        return {str(name): str(value) for name, value in content.items()}
    except FileNotFoundError:
        raise Malformed(f"there is no {file}: say who you are with --credentials FILE") from None
    except PermissionError:
        raise Refused(
            f"you may not read {file}: run this as the user of the service, or give --credentials"
        ) from None
    except (OSError, ValueError, AttributeError) as error:
        raise _not_credentials(file) from error


def _not_credentials(file: Path) -> Malformed:
    return Malformed(
        f"{file} says nobody's client_id and client_secret: give another --credentials"
    )
