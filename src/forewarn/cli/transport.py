"""The way to a service: HTTPS by the standard library, and logging in.

An emulator on this machine speaks plain HTTP, on loopback only, and gives its token beforehand.

Rule: errors arrive here as JSON and leave as the families of `forewarn.errors`; no exception of
the network crosses this file.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlencode, urlsplit

from forewarn.errors import (
    Conflict,
    Forbidden,
    ForewarnError,
    Malformed,
    Refused,
    Unavailable,
    Unknown,
)

ANSWER_SECONDS_MAX: Final = 30.0
# After this long without an answer, people like to know that we are still there.
PATIENCE_SECONDS: Final = 3.0

_LOGIN: Final = "/adfs/oauth2/v2.0/token"
_FORM: Final = "application/x-www-form-urlencoded"


class ConflictTold(Conflict):
    """A conflict of which the service told in words."""

    def __init__(self, message: str) -> None:
        super().__init__(())
        self.args = (message,)


FAMILIES: Final[Mapping[str, type[ForewarnError]]] = {
    "Malformed": Malformed,
    "Refused": Refused,
    "Unknown": Unknown,
    "Forbidden": Forbidden,
    "AuthorizationFailed": Forbidden,
    "AuthenticationFailed": Refused,
    "Conflict": ConflictTold,
    "Unavailable": Unavailable,
}
# Azure's codes are many; its statuses say what to do next.
FAMILY_OF: Final[Mapping[int, type[ForewarnError]]] = {
    HTTPStatus.BAD_REQUEST: Malformed,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: Unknown,
    HTTPStatus.CONFLICT: Refused,
    HTTPStatus.TOO_MANY_REQUESTS: Unavailable,
    HTTPStatus.SERVICE_UNAVAILABLE: Unavailable,
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who logs in, and with what."""

    client_id: str
    client_secret: str = field(repr=False)


NOBODY: Final = Credentials("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Where a service is, as whom to speak to it, and what to do if nobody answers there."""

    url: str
    credentials: Credentials = NOBODY
    # The file by which its certificate is known; None: what the system trusts.
    ca: Path | None = None
    # Its data directory, where it is on this machine.
    data: Path | None = None
    remedy: str
    # What an emulator wants to be shown; "" where one logs in.
    token: str = field(default="", repr=False)


@dataclass(slots=True)
class Session:
    """The token that was got, "" before the first login; and until when it is good."""

    token: str = field(default="", repr=False)
    expires_at: datetime | None = None
    # Who else wants to have it.
    keep: Callable[[Session], None] = lambda _session: None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: the headers by their names in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class Transport:
    """Asks a service as somebody. Every method raises the families, whoever found the fault."""

    service: Service
    session: Session = field(default_factory=Session)

    def ask(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        seconds: float = ANSWER_SECONDS_MAX,
    ) -> Reply:
        """One request, and its answer if that is no refusal."""
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        fresh = not self.session.token
        while True:
            if not self.session.token:
                self.log_in()
            headers["Authorization"] = f"Bearer {self.session.token}"
            reply = self._exchange(method, target, body, headers, seconds)
            if reply.status != HTTPStatus.UNAUTHORIZED or fresh:
                return self._granted(reply)
            # It is over, or the service has another key by now: once more with a new one.
            self.session.token, fresh = "", True

    def read(self, reply: Reply) -> object:
        """The JSON of an answer. Raises: Unavailable."""
        try:
            content: object = json.loads(reply.content)
        except ValueError:
            raise self._stranger(reply.status) from None
        return content

    def log_in(self) -> None:
        """Get a new token."""
        who = self.service.credentials
        form = {
            "grant_type": "client_credentials",
            "client_id": who.client_id,
            "client_secret": who.client_secret,
            "resource": self.service.url,
        }
        body = urlencode(form).encode()
        headers = {"Accept": "application/json", "Content-Type": _FORM}
        reply = self._exchange("POST", _LOGIN, body, headers, ANSWER_SECONDS_MAX)
        status = reply.status
        try:
            answer = json.loads(reply.content)
            if status < HTTPStatus.BAD_REQUEST:
                self.session.token = str(answer["access_token"])
                self.session.expires_at = _instant(answer.get("expires_on"))
                self.session.keep(self.session)
                return
            reason = str(answer["error_description"])
        except (ValueError, KeyError, TypeError):
            raise self._stranger(status) from None
        if status == HTTPStatus.UNAUTHORIZED:
            raise Refused(
                f"the service at {self.service.url} does not know {who.client_id} by this secret: "
                "give others with --data DIR or --credentials FILE, or `forewarn login` again"
            )
        family = Malformed if status == HTTPStatus.BAD_REQUEST else Unavailable
        raise family(reason)

    def _exchange(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        seconds: float,
    ) -> Reply:
        """One request on a connection of its own."""
        connection, prefix = self._connection(seconds)
        try:
            with _patience(PATIENCE_SECONDS + seconds - ANSWER_SECONDS_MAX):
                connection.request(method, prefix + path, body, dict(headers))
                response = connection.getresponse()
                names = {name.lower(): value for name, value in response.getheaders()}
                return Reply(response.status, names, response.read())
        except TimeoutError:
            raise Unavailable(
                f"the service at {self.service.url} gave no answer within {seconds:g} s: try again"
            ) from None
        except ssl.SSLCertVerificationError as error:
            raise Refused(
                f"the certificate of {self.service.url} is not to be trusted "
                f"({error.verify_message}): give the service's own ca.pem with --ca FILE"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(
                f"no service answers at {self.service.url} ({_reason(error)}): {self.service.remedy}"
            ) from error
        finally:
            connection.close()

    def _connection(self, seconds: float) -> tuple[http.client.HTTPConnection, str]:
        parts = _split(self.service.url)
        if parts is None:
            raise Malformed(
                f"{self.service.url!r} is not an address: write it like https://127.0.0.1:8443"
            )
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "http":
            plain = http.client.HTTPConnection(host, port, timeout=seconds)
            return plain, parts.path.rstrip("/")
        ca = self.service.ca
        try:
            context = ssl.create_default_context(cafile=ca)
        except OSError as error:
            raise Malformed(
                f"{ca} cannot be used ({_reason(error)}): give --ca a file of certificates in PEM"
            ) from error
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=context)
        return connection, parts.path.rstrip("/")

    def _granted(self, reply: Reply) -> Reply:
        if reply.status < HTTPStatus.BAD_REQUEST:
            return reply
        try:
            told = json.loads(reply.content)["error"]
            family = FAMILIES.get(told["code"]) or FAMILY_OF[reply.status]
            error = family(str(told["message"]))
        except (ValueError, KeyError, TypeError):
            raise self._stranger(reply.status) from None
        raise error

    def _stranger(self, status: int) -> Unavailable:
        return Unavailable(
            f"what answers at {self.service.url} (with status {status}) is no service that "
            "this command line understands: compare `forewarn --version` with the service's"
        )


@contextmanager
def _patience(seconds: float) -> Iterator[None]:
    """Tell whoever sits at a terminal what takes so long, once it does."""
    if not sys.stderr.isatty():
        yield
        return
    timer = threading.Timer(seconds, sys.stderr.write, ["waiting for the service...\n"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _reason(error: Exception) -> str:
    """The words of an error, without its number."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _instant(seconds: object) -> datetime | None:
    """An instant as logins spell it: seconds since 1970, as a number or in digits."""
    digits = str(seconds)
    return datetime.fromtimestamp(int(digits), UTC) if digits.isdecimal() else None


def _split(url: str) -> SplitResult | None:
    """The parts of an address; None for what is none."""
    try:
        parts = urlsplit(url)
        # A port is looked at only when it is asked for.
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    is_ours = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname))
    return parts if is_whole and is_ours else None


def _is_loopback(host: str | None) -> bool:
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return False
