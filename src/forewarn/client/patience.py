"""How long to wait: between two questions, for an answer, and after one that was none.

A Preempt has 30 seconds' notice, so that nobody who failed to hear may sleep for long.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

# How long an errand may take, unless somebody says: enough for the slow first answer, and once more.
WITHIN: Final = timedelta(seconds=150)

_SECONDS: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Pace:
    """Lengths of time; Azure's advice and the field's experience, unless somebody knows better."""

    # Azure recommends to ask each second.
    every: timedelta = timedelta(seconds=1)
    # How long a server that can is asked to wait for news, 300 seconds at most; zero: never.
    wait: timedelta = timedelta(seconds=30)
    # The first such request is this long: if the server cannot, not much was lost on it.
    trial: timedelta = timedelta(seconds=2)
    # A server that answered at once all the same is tried again after that.
    retrial: timedelta = timedelta(minutes=5)
    # So long a document is trusted to be the one of its tag. Where numbers begin anew, one tag
    # may come to stand for two documents.
    fresh: timedelta = timedelta(seconds=10)
    connect: timedelta = timedelta(seconds=3)
    answer: timedelta = timedelta(seconds=10)
    # Azure: up to two minutes, while events are being enabled.
    first_answer: timedelta = timedelta(seconds=130)
    retry_first: timedelta = timedelta(milliseconds=500)
    retry_max: timedelta = timedelta(seconds=5)
    # However long a server asks to be left alone.
    retry_after_max: timedelta = timedelta(seconds=60)


def retry_delay(pace: Pace, failures: int, retry_after: str | None = None) -> timedelta:
    """How long to leave a server alone after so many failures in a row, the last one included."""
    # More doublings than these make no difference, and would overflow one day.
    delay = min(pace.retry_first * (1 << min(failures - 1, 16)), pace.retry_max)
    if retry_after is None or not _SECONDS.fullmatch(retry_after.strip()):
        return delay
    return max(delay, min(timedelta(seconds=int(retry_after)), pace.retry_after_max))


def answer_patience(pace: Pace, timeouts: int, *, has_read: bool) -> timedelta:
    """How long to wait for an answer, after so many in a row that did not come in time.

    A server that has been silent may be about to enable events anew, so that patience grows.
    """
    if not has_read:
        return pace.first_answer
    return max(pace.answer, min(pace.answer * (1 << min(timeouts, 16)), pace.first_answer))
