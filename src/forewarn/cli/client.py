"""The client of the control API, over the standard library's HTTP and TLS.

Rule: errors arrive here as JSON and leave as the families of `forewarn.errors`; no exception of
the network crosses this file.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from forewarn.cli.answers import (
    AddedWebhook,
    Announcement,
    DeadLetter,
    Event,
    Events,
    Fleet,
    NewSecret,
    Page,
    Principal,
    Principals,
    Webhook,
    Webhooks,
)
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
PAGE_COMMITS: Final = 500
# Shorter than the patience of whatever may stand in between.
FOLLOW_SECONDS: Final = 20

_ROOT: Final = "/fabric/v1"
_LOGIN: Final = "/adfs/oauth2/v2.0/token"
_FORM: Final = "application/x-www-form-urlencoded"


class ConflictTold(Conflict):
    """A conflict of which the service told in words."""

    def __init__(self, message: str) -> None:
        super().__init__(())
        self.args = (message,)


FAMILIES: Final[Mapping[str, type[Exception]]] = {
    "Malformed": Malformed,
    "Refused": Refused,
    "Unknown": Unknown,
    "Forbidden": Forbidden,
    "AuthorizationFailed": Forbidden,
    "AuthenticationFailed": Refused,
    "Conflict": ConflictTold,
    "Unavailable": Unavailable,
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who logs in, and with what."""

    client_id: str
    client_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Where a service is, as whom to speak to it, and what to do if nobody answers there."""

    url: str
    credentials: Credentials
    # The file by which its certificate is known; None: what the system trusts.
    ca: Path | None = None
    remedy: str


@dataclass(slots=True)
class Session:
    """The token that was got; "" before the first login."""

    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Client:
    """Asks a service. Every method raises the families, whoever found the fault."""

    service: Service
    session: Session = field(default_factory=Session)

    def fleet(self) -> Fleet:
        return cast("Fleet", self._get("/fleet"))

    def apply_fleet(self, toml: str, name: str) -> list[str]:
        """Put a fleet file in force; what changed by it."""
        return self._changes("/fleet", {"toml": toml, "name": name})

    def reload_fleet(self) -> list[str]:
        """Have the service read its own fleet file again; what changed by it."""
        return self._changes("/fleet/reload", {})

    def events(self, status: str) -> list[Event]:
        return cast("Events", self._get("/events", status=status))["events"]

    def event(self, event_id: str) -> Event:
        return cast("Event", self._get(f"/events/{quote(event_id, safe='')}"))

    def announce(self, wish: Mapping[str, object]) -> Announcement:
        return cast("Announcement", self._post("/events", wish))

    def step(self, event_id: str, verb: str, body: Mapping[str, object]) -> Event:
        """Have a step taken; the event as it is afterwards."""
        return cast("Event", self._post(f"/events/{quote(event_id, safe='')}/{verb}", body))

    def journal(
        self, after: str, *, wait: int = 0, event: str | None = None, scope: str | None = None
    ) -> Page:
        """The wanted entries among the next commits after a cursor."""
        answer = self._get(
            "/journal",
            patience=wait,
            after=after or None,
            limit=str(PAGE_COMMITS),
            wait=str(wait) if wait else None,
            event=event,
            scope=scope,
        )
        return cast("Page", answer)

    def journal_pages(
        self, after: str, *, event: str | None = None, scope: str | None = None
    ) -> Iterator[Page]:
        """All pages up to the newest entry."""
        page = self.journal(after, event=event, scope=scope)
        while not page["is_last"]:
            yield page
            page = self.journal(page["cursor"], event=event, scope=scope)
        yield page

    def prune(self, before: str) -> int:
        answer = cast("Mapping[str, int]", self._post("/journal/prune", {"before": before}))
        return answer["pruned"]

    def backup(self, path: str) -> str:
        return cast("Mapping[str, str]", self._post("/backup", {"path": path}))["path"]

    def principals(self) -> list[Principal]:
        return cast("Principals", self._get("/principals"))["principals"]

    def add_principal(self, wanted: Mapping[str, object]) -> NewSecret:
        return cast("NewSecret", self._post("/principals", wanted))

    def rotate_principal(self, word: str, keep_old_seconds: float) -> NewSecret:
        path = f"/principals/{quote(word, safe='')}/rotate"
        return cast("NewSecret", self._post(path, {"keep_old_seconds": keep_old_seconds}))

    def revoke_principal(self, word: str) -> Principal:
        return cast("Principal", self._post(f"/principals/{quote(word, safe='')}/revoke", {}))

    def webhooks(self) -> list[Webhook]:
        return cast("Webhooks", self._get("/webhooks"))["webhooks"]

    def add_webhook(self, wish: Mapping[str, object]) -> AddedWebhook:
        """Add a webhook; its secret is told this once."""
        return cast("AddedWebhook", self._post("/webhooks", wish))

    def patch_webhook(self, webhook: str, *, paused: bool) -> Webhook:
        body = json.dumps({"paused": paused}).encode()
        target = f"/webhooks/{quote(webhook, safe='')}"
        return cast("Webhook", self._ask("PATCH", target, body, ANSWER_SECONDS_MAX))

    def remove_webhook(self, webhook: str) -> None:
        target = f"/webhooks/{quote(webhook, safe='')}"
        self._ask("DELETE", target, None, ANSWER_SECONDS_MAX)

    def try_webhook(self, webhook: str) -> str:
        """Have a message sent that tells of nothing; its id."""
        answer = self._post(f"/webhooks/{quote(webhook, safe='')}/test", {})
        return cast("Mapping[str, str]", answer)["id"]

    def dead_letters(self, webhook: str) -> list[DeadLetter]:
        answer = self._get(f"/webhooks/{quote(webhook, safe='')}/dead-letters")
        return cast("Mapping[str, list[DeadLetter]]", answer)["dead_letters"]

    def redeliver(self, webhook: str, number: int) -> None:
        self._post(f"/webhooks/{quote(webhook, safe='')}/dead-letters/{number}/redeliver", {})

    def discard(self, webhook: str, number: int) -> None:
        target = f"/webhooks/{quote(webhook, safe='')}/dead-letters/{number}"
        self._ask("DELETE", target, None, ANSWER_SECONDS_MAX)

    def _changes(self, path: str, body: Mapping[str, object]) -> list[str]:
        return cast("Mapping[str, list[str]]", self._post(path, body))["changes"]

    def _get(self, path: str, *, patience: float = 0, **query: str | None) -> object:
        given = {name: value for name, value in query.items() if value is not None}
        target = f"{path}?{urlencode(given)}" if given else path
        return self._ask("GET", target, None, ANSWER_SECONDS_MAX + patience)

    def _post(self, path: str, body: Mapping[str, object]) -> object:
        return self._ask("POST", path, json.dumps(body).encode(), ANSWER_SECONDS_MAX)

    def _ask(self, method: str, target: str, body: bytes | None, seconds: float) -> object:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        fresh = not self.session.token
        while True:
            if not self.session.token:
                self.session.token = self._login()
            headers["Authorization"] = f"Bearer {self.session.token}"
            status, content = self._exchange(method, f"{_ROOT}{target}", body, headers, seconds)
            if status != http.client.UNAUTHORIZED or fresh:
                return self._understood(status, content)
            # It is over, or the service has another key by now: once more with a new one.
            self.session.token, fresh = "", True

    def _login(self) -> str:
        who = self.service.credentials
        form = {
            "grant_type": "client_credentials",
            "client_id": who.client_id,
            "client_secret": who.client_secret,
            "resource": self.service.url,
        }
        body = urlencode(form).encode()
        headers = {"Accept": "application/json", "Content-Type": _FORM}
        status, content = self._exchange("POST", _LOGIN, body, headers, ANSWER_SECONDS_MAX)
        try:
            answer = json.loads(content)
            if status < http.client.BAD_REQUEST:
                return str(answer["access_token"])
            reason = str(answer["error_description"])
        except (ValueError, KeyError, TypeError):
            raise self._stranger(status) from None
        if status == http.client.UNAUTHORIZED:
            raise Refused(
                f"the service at {self.service.url} does not know {who.client_id} by this secret: "
                "give others with --data DIR or --credentials FILE"
            )
        family = Malformed if status == http.client.BAD_REQUEST else Unavailable
        raise family(reason)

    def _exchange(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        seconds: float,
    ) -> tuple[int, bytes]:
        """One request on a connection of its own: status and content of the answer."""
        connection, prefix = self._connection(seconds)
        try:
            with _patience(PATIENCE_SECONDS + seconds - ANSWER_SECONDS_MAX):
                connection.request(method, prefix + path, body, dict(headers))
                response = connection.getresponse()
                return response.status, response.read()
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

    def _connection(self, seconds: float) -> tuple[http.client.HTTPSConnection, str]:
        parts = _split(self.service.url)
        if parts is None:
            raise Malformed(
                f"{self.service.url!r} is not an address: write it like https://127.0.0.1:8443"
            )
        ca = self.service.ca
        try:
            context = ssl.create_default_context(cafile=ca)
        except OSError as error:
            raise Malformed(
                f"{ca} cannot be used ({_reason(error)}): give --ca a file of certificates in PEM"
            ) from error
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        host, port = parts.hostname or "", parts.port
        connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=context)
        return connection, parts.path.rstrip("/")

    def _understood(self, status: int, body: bytes) -> object:
        try:
            content = json.loads(body)
            if status < http.client.BAD_REQUEST:
                return content
            told = content["error"]
            error = FAMILIES[told["code"]](str(told["message"]))
        except (ValueError, KeyError, TypeError):
            raise self._stranger(status) from None
        assert isinstance(error, ForewarnError)
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


def _split(url: str) -> SplitResult | None:
    """The parts of an address; None for what is none."""
    try:
        parts = urlsplit(url)
        # A port is looked at only when it is asked for.
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_whole and parts.scheme == "https" else None
