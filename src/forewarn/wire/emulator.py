"""The emulator's JSON: what is asked of its clock, its chance and its memory, and what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Final

import msgspec

from forewarn.core import periods
from forewarn.errors import Malformed
from forewarn.wire.control import Asked
from forewarn.wire.control_forms import Form, Instant

# As far ahead as anything can be announced.
ADVANCED_SECONDS_MAX: Final = int(periods.ANNOUNCED_AHEAD_MAX.total_seconds())


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
