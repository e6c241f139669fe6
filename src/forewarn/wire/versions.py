"""The api-versions, and what each one shows.

Two lists, and they differ: scheduledevents has seven versions of its own (four of which the
rest of the metadata service has never heard of); everything else has the general list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Final

from forewarn.core.events import EventType
from forewarn.core.scopes import ScopeKind


class Version(Enum):
    """An api-version of scheduledevents, oldest first."""

    V2017_03_01 = "2017-03-01"
    V2017_08_01 = "2017-08-01"
    V2017_11_01 = "2017-11-01"
    V2019_01_01 = "2019-01-01"
    V2019_04_01 = "2019-04-01"
    V2019_08_01 = "2019-08-01"
    V2020_07_01 = "2020-07-01"


class Unsupported(Enum):
    """Why an api-version is refused; the two are answered differently."""

    # Missing, `latest`, or anything else that is not a date.
    MALFORMED = "malformed"
    # A date, but no version of ours. Clients probe for newer versions, and count on 404.
    UNKNOWN = "unknown"


# The members of an event in the order of the wire, which clients with grep and sed rely on, and
# the version that introduced each. Before that version a member is absent, not null or empty.
MEMBERS_SINCE: Final[Mapping[str, Version]] = {
    "EventId": Version.V2017_03_01,
    "EventStatus": Version.V2017_03_01,
    "EventType": Version.V2017_03_01,
    "ResourceType": Version.V2017_03_01,
    "Resources": Version.V2017_03_01,
    "NotBefore": Version.V2017_03_01,
    "Description": Version.V2019_04_01,
    "EventSource": Version.V2019_08_01,
    "DurationInSeconds": Version.V2020_07_01,
}

TYPES_SINCE: Final[Mapping[EventType, Version]] = {
    EventType.FREEZE: Version.V2017_03_01,
    EventType.REBOOT: Version.V2017_03_01,
    EventType.REDEPLOY: Version.V2017_03_01,
    EventType.PREEMPT: Version.V2017_11_01,
    EventType.TERMINATE: Version.V2019_01_01,
}

# Of /metadata/instance and /metadata/versions, newest first, as Azure documents them.
INSTANCE_VERSIONS: Final = (
    *("2025-04-07", "2024-07-17", "2024-03-15", "2023-11-15", "2023-07-01", "2021-12-13"),
    *("2021-11-15", "2021-11-01", "2021-10-01", "2021-08-01", "2021-05-01", "2021-03-01"),
    *("2021-02-01", "2021-01-01", "2020-12-01", "2020-10-01", "2020-09-01", "2020-07-15"),
    *("2020-06-01", "2019-11-01", "2019-08-15", "2019-08-01", "2019-06-04", "2019-06-01"),
    *("2019-04-30", "2019-03-11", "2019-02-01", "2018-10-01", "2018-04-02", "2018-02-01"),
    *("2017-12-01", "2017-10-01", "2017-08-01", "2017-04-02", "2017-03-01"),
)
# What a refusal recommends; clients take the first and try again.
NEWEST_VERSIONS: Final = INSTANCE_VERSIONS[:3]

_BY_NAME: Final = {version.value: version for version in Version}
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def classify(name: str | None) -> Version | Unsupported:
    """Which version of scheduledevents a request means; None: it named none."""
    if name is None or not _DATE.fullmatch(name):
        return Unsupported.MALFORMED
    return _BY_NAME.get(name, Unsupported.UNKNOWN)


def is_instance_version(name: str | None) -> bool:
    """Whether /metadata/instance speaks that version."""
    return name in INSTANCE_VERSIONS


def members(version: Version) -> tuple[str, ...]:
    """The members of an event, in the order of the wire."""
    return tuple(name for name, since in MEMBERS_SINCE.items() if _has(version, since))


def shows(version: Version, event_type: EventType) -> bool:
    """Whether events of that type appear; older versions never show newer types.

    What owners do to their own machines appears in none.
    """
    since = TYPES_SINCE.get(event_type)
    return since is not None and _has(version, since)


def enforces_header(version: Version) -> bool:
    """Whether a request must carry `Metadata: true`."""
    return version is not Version.V2017_03_01


def resource_name(name: str, version: Version, kind: ScopeKind) -> str:
    """A machine's name as an event's Resources have it.

    The preview put an underscore before the names of IaaS machines. Role instances of a cloud
    service never had one.
    """
    if version is Version.V2017_03_01 and kind is not ScopeKind.CLOUD_SERVICE:
        return f"_{name}"
    return name


def _has(version: Version, since: Version) -> bool:
    # Dates of this form compare as text.
    return version.value >= since.value
