"""Durations as people write them: "90s", "5m", "1h30m", "2d", and ISO 8601's "PT5M"."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from forewarn.errors import Malformed

# Later than this, nobody remembers why; and instants stay far from the end of the calendar.
DURATION_MAX: Final = timedelta(days=3650)
DURATION_FORMS: Final = '"90s", "5m", "1h30m", "2d" or "PT5M"'

_SECONDS = r"[0-9]{1,12}(?:\.[0-9]{1,6})?"
_COUNT = r"[0-9]{1,12}"
_FORMS: Final = (
    re.compile(
        rf"(?=.)(?:(?P<days>{_COUNT})d)?(?:(?P<hours>{_COUNT})h)?"
        rf"(?:(?P<minutes>{_COUNT})m)?(?:(?P<seconds>{_SECONDS})s)?"
    ),
    re.compile(
        rf"P(?=.)(?:(?P<days>{_COUNT})D)?(?:T(?=.)(?:(?P<hours>{_COUNT})H)?"
        rf"(?:(?P<minutes>{_COUNT})M)?(?:(?P<seconds>{_SECONDS})S)?)?"
    ),
)


def parse_duration(text: str) -> timedelta:
    """The duration that is written there.

    Raises: Malformed.
    """
    for form in _FORMS:
        match = form.fullmatch(text.strip())
        if match is not None:
            return _within_reach(text, {k: float(v) for k, v in match.groupdict("0").items()})
    raise Malformed(f"{text!r} is not a duration: write it like {DURATION_FORMS}")


def _within_reach(text: str, amounts: dict[str, float]) -> timedelta:
    try:
        duration = timedelta(**amounts)
    except OverflowError:
        duration = timedelta.max
    if duration > DURATION_MAX:
        raise Malformed(f"{text!r} is too long: give at most {DURATION_MAX.days}d")
    return duration
