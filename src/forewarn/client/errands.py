"""Questions that want one answer, such as an approval: asked again until there is one, or time is over.

Pure, as the watch is. What is asked here may be asked twice: reading changes nothing, and an approval
that was given is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Generic, TypeVar

from forewarn.client import questions
from forewarn.client.documents import Event, load_document, load_name
from forewarn.client.messages import Answer, Failing, Failure, Outcome, Request
from forewarn.client.patience import Pace, answer_patience, retry_delay
from forewarn.errors import Malformed, Refused, Unavailable

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Errand(Generic[T_co]):
    """A question, and how to read its answer."""

    request: Request
    # Raises: Malformed, if the answer is none.
    read: Callable[[Answer], T_co]


@dataclass(frozen=True, slots=True)
class Attempt:
    """The next try of an errand."""

    pace: Pace
    # When to give up.
    until: timedelta
    at: timedelta
    has_read: bool
    failures: int = 0
    timeouts: int = 0

    @property
    def patience(self) -> timedelta:
        """How long the answer may take."""
        patience = answer_patience(self.pace, self.timeouts, has_read=self.has_read)
        return min(patience, self.until - self.at)


@dataclass(frozen=True, slots=True)
class Done(Generic[T_co]):
    """The errand is over, and this came of it."""

    value: T_co


NAME: Final[Errand[str]] = Errand(questions.NAME, lambda answer: load_name(answer.body))
EVENTS: Final[Errand[tuple[Event, ...]]] = Errand(
    questions.DOCUMENT, lambda answer: load_document(answer.body).events
)


def approval(events: tuple[Event | str, ...]) -> Errand[None]:
    """The errand of approving events, by themselves or by their ids. Raises: Malformed."""
    if not events:
        raise Malformed("there is nothing to approve: name an event")
    event_ids = tuple(event if isinstance(event, str) else event.id for event in events)
    # Whatever is said along with 200, it was approved.
    return Errand(questions.approval(event_ids), lambda _: None)


def is_answer(outcome: Outcome) -> bool:
    """Whether an outcome looks like an answer; what it says may yet be none."""
    return isinstance(outcome, Answer) and outcome.status == questions.OK


def judge(
    errand: Errand[T], attempt: Attempt, outcome: Outcome, now: timedelta
) -> Done[T] | Attempt:
    """What came of an attempt: the answer, or the next attempt.

    Raises: Refused, if there is no use in asking again; Unavailable, if there is no time to.
    """
    if isinstance(outcome, Failure):
        return _again(attempt, str(outcome), now, is_timeout=outcome.failing is Failing.TIMED_OUT)
    if questions.is_final(outcome):
        raise Refused(f"the metadata service {questions.complaint(outcome)}")
    if outcome.status != questions.OK:
        return _again(attempt, questions.complaint(outcome), now, outcome)
    try:
        return Done(errand.read(outcome))
    except Malformed as error:
        return _again(attempt, str(error), now)


def _again(
    attempt: Attempt,
    why: str,
    now: timedelta,
    answer: Answer | None = None,
    *,
    is_timeout: bool = False,
) -> Attempt:
    failures = attempt.failures + 1
    retry_after = None if answer is None else answer.headers.get("retry-after")
    at = now + retry_delay(attempt.pace, failures, retry_after)
    if at >= attempt.until:
        raise Unavailable(f"the metadata service was asked {failures} times: it {why}")
    timeouts = attempt.timeouts + 1 if is_timeout else 0
    return replace(attempt, at=at, failures=failures, timeouts=timeouts)
