"""What a VM is answered at the guests' endpoint, whatever is wrong with it."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

PATH: Final = "/metadata/scheduledevents?api-version=2020-07-01"
ANSWER_SECONDS_MAX: Final = 5.0
_HEADERS: Final = {"Metadata": "true"}


@dataclass(frozen=True, slots=True)
class GuestAnswer:
    """An answer in a word (a status, or "empty", "broken", "none"), and the document if it is one."""

    word: str
    document: dict[str, Any] | None = None


def read(url: str, seconds_max: float = ANSWER_SECONDS_MAX) -> GuestAnswer:
    """What the VM behind this address reads."""
    try:
        status, body = _exchange(url, "GET", None, seconds_max)
    except TimeoutError:
        return GuestAnswer("none")
    except (OSError, http.client.HTTPException):
        return GuestAnswer("broken")
    if status != HTTPStatus.OK:
        return GuestAnswer(str(status))
    if not body:
        return GuestAnswer("empty")
    try:
        return GuestAnswer("200", json.loads(body))
    except ValueError:
        return GuestAnswer("broken")


def approve(url: str, event_id: str) -> str:
    """Approve an event as the VM behind this address; the answer in a word."""
    body = json.dumps({"StartRequests": [{"EventId": event_id}]}).encode()
    try:
        status, _ = _exchange(url, "POST", body, ANSWER_SECONDS_MAX)
    except TimeoutError:
        return "none"
    except (OSError, http.client.HTTPException):
        return "broken"
    return str(int(status))


def _exchange(url: str, method: str, body: bytes | None, seconds: float) -> tuple[int, bytes]:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=seconds)
    try:
        connection.request(method, PATH, body, _HEADERS)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
