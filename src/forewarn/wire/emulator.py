"""The emulator's JSON: what is asked of its clock, chance, memory and faults, and what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal

import msgspec

from forewarn.core import periods
from forewarn.errors import Malformed
from forewarn.wire.control import NAME_LENGTH_MAX, Asked
from forewarn.wire.control_forms import Form, Instant

# As far ahead as anything can be announced.
ADVANCED_SECONDS_MAX: Final = int(periods.ANNOUNCED_AHEAD_MAX.total_seconds())
TIMES_MAX: Final = 1_000_000
DELAY_SECONDS_MAX: Final = 24 * 60 * 60

# What can go wrong on purpose: `web.faults.FaultKind` to the letter.
FaultWord = Literal[
    "429",
    "410",
    "500",
    "503",
    "empty",
    "slow",
    "slow-first",
    "reset",
    "truncated",
    "incarnation-restart",
    "webhook-duplicate",
    "webhook-reordered",
]


class Advance(Asked, frozen=True, kw_only=True):
    """How far to advance: by a while, to an instant, or to the next thing that happens."""

    seconds: Annotated[float, msgspec.Meta(ge=0, le=ADVANCED_SECONDS_MAX)] | None = None
    to: Instant | None = None
    next: bool = False

    def until(self, now: datetime) -> datetime | None:
        """The instant that is meant; None: whenever the next thing happens. Raises: Malformed."""
        if (self.seconds is not None) + (self.to is not None) + self.next != 1:
            raise Malformed("give one of seconds, to and next: true")
        if self.seconds is not None:
            return now + timedelta(seconds=self.seconds)
        if self.to is None:
            return None
        if not now <= self.to <= now + periods.ANNOUNCED_AHEAD_MAX:
            raise Malformed(
                f"to is an instant from now, {now:%Y-%m-%dT%H:%M:%SZ}, up to a year ahead: "
                "time does not go back; reset begins anew"
            )
        return self.to


class Seed(Asked, frozen=True, kw_only=True):
    """The number from which the ids of events follow."""

    seed: int


class Wrong(Asked, frozen=True, kw_only=True):
    """What shall go wrong, for whom, how often, for how long; and how long it takes, if it does."""

    kind: FaultWord
    # None: all of them.
    machine: Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH_MAX)] | None = None
    times: Annotated[int, msgspec.Meta(ge=1, le=TIMES_MAX)] | None = None
    seconds: Annotated[float, msgspec.Meta(gt=0, le=ADVANCED_SECONDS_MAX)] | None = None
    delay_seconds: Annotated[float, msgspec.Meta(ge=0, le=DELAY_SECONDS_MAX)] | None = None

    @property
    def lasts(self) -> timedelta | None:
        return None if self.seconds is None else timedelta(seconds=self.seconds)

    @property
    def delay(self) -> timedelta | None:
        return None if self.delay_seconds is None else timedelta(seconds=self.delay_seconds)


class ClockForm(Form, frozen=True, kw_only=True):
    """What the emulator's clock shows, and how fast it goes; 0: it moves only when told."""

    now: Instant
    speed: float


class AdvancedForm(ClockForm, frozen=True, kw_only=True):
    """The same after an advance, and whether anything happened on the way."""

    happened: bool


class RequestForm(Form, frozen=True, kw_only=True):
    """What a guest asked, and the status that it was answered with."""

    at: Instant
    # Nobody's, if the caller is no VM of the fleet.
    machine: str | None
    address: str
    method: str
    # As it was sent, or its beginning; likewise the api-version.
    path: str
    route: str
    api_version: str | None
    status: int


class RequestsForm(Form, frozen=True, kw_only=True):
    """The last requests of guests, oldest first, and how many there were before those."""

    requests: list[RequestForm]
    forgotten: int


class AddressesForm(Form, frozen=True, kw_only=True):
    """Where guests ask: the address that knows VMs by theirs, and for each VM one that plays it."""

    metadata: str
    machines: Mapping[str, str]


class FaultForm(Form, frozen=True, kw_only=True):
    """A fault in force: how often it will still strike, until when, and how long it delays."""

    id: str
    kind: FaultWord
    # None: all of them.
    machine: str | None
    # Both None: until it is removed.
    times: int | None
    until: Instant | None
    delay_seconds: float


class FaultsForm(Form, frozen=True, kw_only=True):
    """The faults in force, oldest first."""

    faults: list[FaultForm]
