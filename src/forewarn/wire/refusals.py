"""What a guest is told when it is not given what it asked for: exact statuses and bodies.

The bodies of Azure that were recorded are repeated to the byte, odd spaces and dots included;
the others are ours, in the same style. Each is a JSON object with the member `error`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from forewarn.wire.versions import NEWEST_VERSIONS

# How much of what a guest sent is repeated to it.
_ECHO_LENGTH_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reply that says no, and why."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


def _refusal(status: int, error: str, **headers: str) -> Refusal:
    body = f'{{ "error": {json.dumps(error)} }}'.encode()
    return Refusal(status, body, tuple((name.replace("_", "-"), v) for name, v in headers.items()))


def _echo(sent: str) -> str:
    return sent if len(sent) <= _ECHO_LENGTH_MAX else f"{sent[:_ECHO_LENGTH_MAX]}..."


# Recorded: https://github.com/MicrosoftDocs/azure-docs/issues/91624
NO_METADATA_HEADER: Final = _refusal(400, "Bad request: . Required metadata header not specified")

# Documented. Clients read `newest-versions` and ask again with the first one. It is the answer
# to a missing or malformed version anywhere, and to an unknown one on /metadata/instance.
BAD_VERSION: Final = Refusal(
    400,
    (
        '{ "error": "Bad request. api-version is invalid or was not specified in the request. '
        'For more information refer to aka.ms/azureimds", '
        f'"newest-versions": [ {", ".join(json.dumps(name) for name in NEWEST_VERSIONS)} ] }}'
    ).encode(),
)
# Recorded: https://github.com/hashicorp/terraform-azurerm-consul/issues/38
# On scheduledevents only: OpenShift probes for versions, and takes nothing but 404 for a no.
UNKNOWN_VERSION: Final = _refusal(404, "Not found. Invalid version requested")

FORWARDED: Final = _refusal(400, "Bad request. X-Forwarded-For is not allowed: ask directly")
UNREADABLE: Final = _refusal(400, "Bad request. This is not an HTTP/1.1 request")
LEAF_IS_TEXT: Final = _refusal(400, "Bad request. A single value needs format=text")
UNKNOWN_FORMAT: Final = _refusal(400, "Bad request. format must be json or text")
BAD_WAIT: Final = _refusal(400, "Bad request. wait must be whole seconds from 0 to 300")
NO_SUCH_PATH: Final = _refusal(404, "Not found")
TOO_SLOW: Final = _refusal(408, "Request timeout. The request did not arrive in time")
GONE: Final = _refusal(410, "Gone. Try again within 70 seconds")
TOO_LARGE: Final = _refusal(413, "Request body too large")
TARGET_TOO_LONG: Final = _refusal(414, "Request target too long")
THROTTLED: Final = _refusal(429, "Too many requests", Retry_After="1")
HEADERS_TOO_LARGE: Final = _refusal(431, "Request header fields too large")
BROKEN: Final = _refusal(500, "Internal server error. Try again later")
AWAY: Final = _refusal(503, "Service unavailable. Try again later")
# Never a false 200: an approval counts only once it is on disk.
STORE_AWAY: Final = _refusal(
    503, "Service unavailable. The approval is not confirmed: try again", Retry_After="1"
)


def repeated_parameter(name: str) -> Refusal:
    """A query that names one parameter twice."""
    return _refusal(400, f"Bad request. Query parameter given more than once: {_echo(name)}")


def method_not_allowed(*allowed: str) -> Refusal:
    """A method that this path does not know."""
    return _refusal(405, "Method not allowed", Allow=", ".join(allowed))


def malformed(reason: str) -> Refusal:
    """A body that cannot be understood; the reason is Malformed's own."""
    return _refusal(400, f"Bad request: {reason}")


def unknown_event(event_id: str) -> Refusal:
    """A request to start an event that the caller's scope never had."""
    return _refusal(
        400, f"Bad request. No event {_echo(event_id)} is known here: nothing was approved"
    )


def stranger(address: str) -> Refusal:
    """A caller that is none of our machines."""
    return _refusal(
        403,
        f"Forbidden. No VM of the fleet has the address {address}: "
        "ask the operator to add it to the fleet",
    )
