"""The watch over a VM's document: what to ask next and when, and what an answer means.

Pure: `ask` and `heard` are functions of values, and the clock is an argument. Who keeps a watch asks
what `ask` says, at the time it says, and tells `heard` what came of it.

Theory. A server may offer to wait until there is news, and none says so; so it is tried: asked with
the tag of the document that is known, and `wait`. A server that can answers 304 when the time is over,
or the news. One that cannot answers 304 at once, or refuses. Nothing is lost on either, and a server that
was mistaken for one that waits gives itself away with its next answer.

Rule 1: what is known changes with a whole document only; a failure, or an answer that is none, never
makes an event gone.
Rule 2: after a failure, and when a document is no longer fresh, the whole document is asked for: its
tag may have come to stand for another one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from typing import Final

from forewarn.client import questions
from forewarn.client.changes import Change, compare
from forewarn.client.documents import Document, Event, load_document, load_name
from forewarn.client.messages import Answer, Failing, Failure, Outcome, Request
from forewarn.client.patience import Pace, answer_patience, retry_delay
from forewarn.errors import Malformed

_NONE: Final = timedelta()
_SECOND: Final = timedelta(seconds=1)
# A server's clock is not ours.
_ABOUT: Final = 0.9


class Offer(Enum):
    """Whether the server waits for news, as far as we know."""

    UNTRIED = "untried"
    WAITS = "waits"
    ANSWERS_AT_ONCE = "answers at once"


@dataclass(frozen=True, slots=True)
class Watch:
    """What is known, and when to ask again. Instants are those of one clock that never jumps."""

    pace: Pace
    # None until the VM has said who it is.
    name: str | None = None
    known: tuple[Event, ...] = ()
    # The number of the document that was read last.
    incarnation: int = 0
    tag: str | None = None
    # When a whole document was read last.
    read_at: timedelta | None = None
    due: timedelta = _NONE
    offer: Offer = Offer.UNTRIED
    # When a server that answers at once is tried again.
    retrial: timedelta = _NONE
    # In a row, up to now.
    failures: int = 0
    timeouts: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """What to ask, when, and how long an answer may take."""

    request: Request
    at: timedelta
    patience: timedelta
    tag: str | None = None
    wait: timedelta = _NONE


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of a question."""

    watch: Watch
    changes: tuple[Change, ...] = ()
    # Why the answer was none; None if it was one.
    trouble: str | None = None

    @property
    def document(self) -> Document | None:
        """The document as it was read last; None if it was not yet."""
        watch = self.watch
        return None if watch.read_at is None else Document(watch.incarnation, watch.known)


def ask(watch: Watch, now: timedelta) -> Ask:
    """The next question."""
    at = max(watch.due, now)
    patience = answer_patience(watch.pace, watch.timeouts, has_read=watch.read_at is not None)
    if watch.name is None:
        return Ask(questions.NAME, at, patience)
    is_fresh = watch.read_at is not None and at - watch.read_at < watch.pace.fresh
    tag = watch.tag if is_fresh else None
    wait = _NONE if tag is None else _wait(watch, at)
    return Ask(questions.document(tag, wait), at, patience + wait, tag=tag, wait=wait)


def _wait(watch: Watch, now: timedelta) -> timedelta:
    match watch.offer:
        case Offer.WAITS:
            wait = watch.pace.wait
        case Offer.ANSWERS_AT_ONCE if now < watch.retrial:
            wait = _NONE
        case _:
            wait = min(watch.pace.trial, watch.pace.wait)
    # Whole seconds are all that can be asked for.
    return wait // _SECOND * _SECOND


def heard(watch: Watch, asked: Ask, outcome: Outcome, *, began: timedelta, now: timedelta) -> Heard:
    """What the outcome of a question means, which was asked at `began`."""
    if isinstance(outcome, Failure):
        return _failed(watch, str(outcome), now, is_timeout=outcome.failing is Failing.TIMED_OUT)
    if outcome.status == questions.NOT_MODIFIED and asked.tag is not None:
        return Heard(_unchanged(watch, asked, began, now))
    if outcome.status == questions.BAD_REQUEST and asked.wait:
        return Heard(_after(_at_once(watch, now), asked, began, now))
    if outcome.status != questions.OK:
        return _failed(watch, questions.complaint(outcome), now, outcome)
    try:
        return _read(watch, asked, outcome, began, now)
    except Malformed as error:
        return _failed(watch, str(error), now)


def _read(watch: Watch, asked: Ask, answer: Answer, began: timedelta, now: timedelta) -> Heard:
    if watch.name is None:
        return Heard(_well(replace(watch, name=load_name(answer.body), due=now)))
    document = load_document(answer.body)
    changes = compare(watch.known, document.events, watch.name)
    tag = answer.headers.get("etag") or None
    read = replace(
        _well(watch),
        known=document.events,
        incarnation=document.incarnation,
        tag=tag,
        read_at=now,
    )
    if asked.wait and asked.tag == tag:
        # Whoever sends what was known already does not look at tags, and so cannot wait.
        read = _at_once(read, now)
    # One that is known to wait tells nothing else, be it of events that this version does not show.
    is_news = bool(changes) or (read.offer is Offer.WAITS and asked.tag != tag)
    return Heard(_after(read, asked, began, now, is_news=is_news), changes)


def _unchanged(watch: Watch, asked: Ask, began: timedelta, now: timedelta) -> Watch:
    well = _well(watch)
    if not asked.wait:
        return _after(well, asked, began, now)
    if now - began >= asked.wait * _ABOUT:
        return replace(well, offer=Offer.WAITS, due=now)
    if watch.offer is Offer.WAITS:
        # It may be about to end, and lets go of all who wait: tried again with the next question.
        return _after(replace(well, offer=Offer.UNTRIED), asked, began, now)
    return _after(_at_once(well, now), asked, began, now)


def _after(
    watch: Watch, asked: Ask, began: timedelta, now: timedelta, *, is_news: bool = False
) -> Watch:
    """The same with the time of the next question.

    At once if that can wait at the server. But where an answer brought nothing new although the
    question came with a tag, the next one would be answered as soon: there we keep to the pace.
    """
    can_wait = watch.tag is not None and _wait(watch, now) > _NONE
    if can_wait and (asked.tag is None or is_news):
        return replace(watch, due=now)
    return replace(watch, due=max(now, began + watch.pace.every))


def _at_once(watch: Watch, now: timedelta) -> Watch:
    return replace(watch, offer=Offer.ANSWERS_AT_ONCE, retrial=now + watch.pace.retrial)


def _well(watch: Watch) -> Watch:
    return replace(watch, failures=0, timeouts=0)


def _failed(
    watch: Watch,
    why: str,
    now: timedelta,
    answer: Answer | None = None,
    *,
    is_timeout: bool = False,
) -> Heard:
    failures = watch.failures + 1
    retry_after = None if answer is None else answer.headers.get("retry-after")
    after = replace(
        watch,
        tag=None,
        due=now + retry_delay(watch.pace, failures, retry_after),
        failures=failures,
        timeouts=watch.timeouts + 1 if is_timeout else 0,
        # Who comes back after being away may be another, and is worth a try.
        offer=watch.offer if watch.offer is Offer.ANSWERS_AT_ONCE else Offer.UNTRIED,
    )
    return Heard(after, trouble=why)
