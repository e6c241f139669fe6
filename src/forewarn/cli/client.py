"""The client of the control API, over the standard library's HTTP.

Rule: errors arrive here as JSON and leave as the families of `forewarn.errors`; no exception of
the network crosses this file.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from forewarn.cli.answers import (
    AddedWebhook,
    Announcement,
    DeadLetter,
    Event,
    Events,
    Fleet,
    Page,
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
_KINDS: Final = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}


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
    "Conflict": ConflictTold,
    "Unavailable": Unavailable,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Where a service is, what to show to it, and what to do if nobody answers there."""

    url: str
    token: str = field(repr=False)
    remedy: str


@dataclass(frozen=True, slots=True)
class Client:
    """Asks a service. Every method raises the families, whoever found the fault."""

    service: Service

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
        connection, prefix = self._connection(seconds)
        headers = {"Authorization": f"Bearer {self.service.token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            with _patience(PATIENCE_SECONDS + seconds - ANSWER_SECONDS_MAX):
                connection.request(method, f"{prefix}{_ROOT}{target}", body, headers)
                response = connection.getresponse()
                content = response.read()
            return self._understood(response.status, content)
        except TimeoutError:
            raise Unavailable(
                f"the service at {self.service.url} gave no answer within {seconds:g} s: try again"
            ) from None
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
                f"{self.service.url!r} is not an address: write it like http://127.0.0.1:8170"
            )
        kind = _KINDS[parts.scheme]
        return kind(parts.hostname or "", parts.port, timeout=seconds), parts.path.rstrip("/")

    def _understood(self, status: int, body: bytes) -> object:
        if status == http.client.UNAUTHORIZED:
            raise Refused(
                f"the service at {self.service.url} does not accept this token: "
                "give its own with --data DIR or --token-file FILE"
            )
        try:
            content = json.loads(body)
            if status < http.client.BAD_REQUEST:
                return content
            told = content["error"]
            error = FAMILIES[told["code"]](str(told["message"]))
        except (ValueError, KeyError, TypeError):
            raise Unavailable(
                f"what answers at {self.service.url} (with status {status}) is no service that "
                "this command line understands: compare `forewarn --version` with the service's"
            ) from None
        assert isinstance(error, ForewarnError)
        raise error


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
    return parts if is_whole and parts.scheme in _KINDS else None
