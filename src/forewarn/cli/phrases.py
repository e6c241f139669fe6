"""Instants and lengths of time, from and for people.

Times are shown in UTC, which logs and guests use too; how far off they are is said beside them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from forewarn.errors import Malformed


def parse_instant(text: str) -> datetime:
    """The instant that is written there; a day is its first moment in UTC.

    Raises: Malformed.
    """
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Malformed(
            f"{text!r} is not a time: write it like 2026-11-16T09:00:00Z or 2026-11-16"
        ) from None
    if instant.tzinfo is not None:
        return instant.astimezone(UTC)
    if len(text.strip()) > len("2026-11-16"):
        # Whoever is awake at night should not have to guess whose night it is.
        raise Malformed(
            f"{text!r} has no time zone: end it with Z for UTC, or with one like +01:00"
        )
    return instant.replace(tzinfo=UTC)


def spell(instant: datetime) -> str:
    """An instant as the control API reads it."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def seconds(duration: timedelta) -> int | float:
    """A length of time as the control API reads it."""
    amount = duration.total_seconds()
    return int(amount) if amount.is_integer() else amount


def when(text: str | None) -> str:
    """An instant of the control API, for people; nothing for what has not happened."""
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%SZ}" if text else ""


def when_from(text: str | None, now: datetime) -> str:
    """An instant of the control API, and how far off it is."""
    return f"{when(text)} ({away(datetime.fromisoformat(text) - now)})" if text else ""


def when_short(text: str | None, now: datetime) -> str:
    """The same in as little room as possible: a day that is near goes without saying."""
    if not text:
        return ""
    instant = datetime.fromisoformat(text).astimezone(UTC)
    distance = instant - now
    is_near = abs(distance) < timedelta(hours=12)
    day_or_time = f"{instant:%H:%M:%SZ}" if is_near else f"{instant:%Y-%m-%d %H:%MZ}"
    if abs(distance) >= timedelta(minutes=1):
        distance = timedelta(minutes=round(distance / timedelta(minutes=1)))
    return f"{day_or_time} ({away(distance)})"


def away(distance: timedelta) -> str:
    """How far off something is: ahead, or behind us."""
    if abs(distance) < timedelta(seconds=1):
        return "now"
    return f"in {span(distance)}" if distance > timedelta() else f"{span(-distance)} ago"


def span(duration: timedelta) -> str:
    """A length of time in its two largest units."""
    total = int(duration.total_seconds())
    if total == 0 and duration:
        return f"{duration.total_seconds():.3g}s"
    minutes, rest = divmod(total, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    amounts = [(days, "d"), (hours, "h"), (minutes, "m"), (rest, "s")]
    while len(amounts) > 1 and amounts[0][0] == 0:
        amounts.pop(0)
    return " ".join(f"{amount}{unit}" for amount, unit in amounts[:2] if amount) or "0s"
