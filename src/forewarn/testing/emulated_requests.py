"""What VMs of an emulated world asked, as a test looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from forewarn.web.visits import Visit


@dataclass(frozen=True, slots=True)
class Request:
    """What a VM asked, and how it was answered."""

    at: datetime
    machine: str | None
    address: str
    method: str
    # As it was sent, or its beginning; likewise the api-version.
    path: str
    # "scheduledevents", "instance", "versions", or "other" for what there is not.
    route: str
    api_version: str | None
    status: int


def request(visit: Visit) -> Request:
    """A visit, to somebody who knows nothing of the service's own values."""
    return Request(
        at=visit.at,
        machine=visit.machine,
        address=visit.address,
        method=visit.method,
        path=visit.path,
        route=visit.route,
        api_version=visit.api_version,
        status=visit.status,
    )
