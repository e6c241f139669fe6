"""The client of the control API: what can be asked of a service, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import quote, urlencode

from forewarn.cli.answers import (
    AddedWebhook,
    Addresses,
    Announcement,
    Caller,
    Clock,
    DeadLetter,
    Event,
    Events,
    Fault,
    Faults,
    Fleet,
    NewSecret,
    Page,
    Principal,
    Principals,
    Requests,
    Webhook,
    Webhooks,
)
from forewarn.cli.transport import ANSWER_SECONDS_MAX, Transport
from forewarn.errors import Refused, Unknown

PAGE_COMMITS: Final = 500
# Shorter than the patience of whatever may stand in between.
FOLLOW_SECONDS: Final = 20

_ROOT: Final = "/fabric/v1"


@dataclass(frozen=True, slots=True)
class Client:
    """Asks a service. Every method raises the families, whoever found the fault."""

    transport: Transport

    def caller(self) -> Caller:
        """Who we are to the service."""
        return cast("Caller", self._get("/whoami"))

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

    def clock(self) -> Clock:
        return cast("Clock", self._get("/emulator/clock"))

    def advance(self, body: Mapping[str, object]) -> Clock:
        """Let time pass in an emulator; the time that it is then."""
        return cast("Clock", self._post("/emulator/clock/advance", body))

    def settle(self) -> Clock:
        """Have an emulator do what is due now."""
        return cast("Clock", self._post("/emulator/idle", {}))

    def reset(self) -> Clock:
        """Have an emulator begin anew."""
        return cast("Clock", self._post("/emulator/reset", {}))

    def seed(self, seed: int) -> Clock:
        """Have an emulator begin anew, with ids that follow from a number."""
        return cast("Clock", self._post("/emulator/seed", {"seed": seed}))

    def requests(self) -> Requests:
        return cast("Requests", self._get("/emulator/requests"))

    def faults(self) -> list[Fault]:
        return cast("Faults", self._get("/emulator/faults"))["faults"]

    def add_fault(self, wanted: Mapping[str, object]) -> Fault:
        return cast("Fault", self._post("/emulator/faults", wanted))

    def remove_fault(self, fault: str) -> None:
        target = f"/emulator/faults/{quote(fault, safe='')}"
        self._ask("DELETE", target, None, ANSWER_SECONDS_MAX)

    def clear_faults(self) -> None:
        self._ask("DELETE", "/emulator/faults", None, ANSWER_SECONDS_MAX)

    def addresses(self) -> Addresses:
        return cast("Addresses", self._get("/emulator/addresses"))

    def take(self, machine: str, impact: str, seconds: float) -> None:
        """Tell a VM of the simulated fabric how long an impact on it takes."""
        body = {"machine": machine, "type": impact, "takes_seconds": seconds}
        self._post("/simulated-fabric", body)

    def _changes(self, path: str, body: Mapping[str, object]) -> list[str]:
        return cast("Mapping[str, list[str]]", self._post(path, body))["changes"]

    def _get(self, path: str, *, patience: float = 0, **query: str | None) -> object:
        given = {name: value for name, value in query.items() if value is not None}
        target = f"{path}?{urlencode(given)}" if given else path
        return self._ask("GET", target, None, ANSWER_SECONDS_MAX + patience)

    def _post(self, path: str, body: Mapping[str, object]) -> object:
        return self._ask("POST", path, json.dumps(body).encode(), ANSWER_SECONDS_MAX)

    def _ask(self, method: str, target: str, body: bytes | None, seconds: float) -> object:
        path = f"{_ROOT}{target}"
        try:
            return self.transport.read(self.transport.ask(method, path, body, seconds))
        except Unknown as error:
            if target.startswith("/emulator/") and str(error) == f"nothing is at {path}":
                raise Refused(
                    "this service is no emulator, which could be told such things: "
                    "`forewarn emulate` starts one"
                ) from error
            raise
