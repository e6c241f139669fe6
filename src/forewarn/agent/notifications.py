"""Notifications: whoever is to be told of news is, in threads of their own that the agent never waits for."""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from email.utils import format_datetime
from types import TracebackType
from typing import Final, Self, TypeAlias

from forewarn.agent import deliveries
from forewarn.agent.news import News
from forewarn.agent.settings import JSON, PLAIN, TEMPLATE, Notification
from forewarn.client.documents import dump_event
from forewarn.errors import ForewarnError, Malformed, Refused, Unavailable

# News that wait for one receiver; if there are more, the newest are not told.
QUEUE_SIZE_MAX: Final = 100
# Between one try and the next; after the last, the news is given up.
DELAYS_SECONDS: Final = (1.0, 3.0, 9.0)
# What is still to be told when the agent ends has so long.
CLOSING_SECONDS: Final = 3.0

_TROUBLE_TEMPLATE: Final = "{name}: {what}"

_log: Final = logging.getLogger("forewarn.agent")

# Tells one receiver of one news. Raises: Unavailable, if it is worth another try, else another one.
Deliver: TypeAlias = Callable[[Notification, News], None]


def words(news: News) -> dict[str, str]:
    """Every word that a template may have; those of an event are empty where there is none."""
    event = news.event
    told = {"name": news.name, "kind": news.kind.value, "what": news.what}
    if event is None:
        names = ("id", "type", "status", "source", "not_before", "duration", "description")
        return {**told, **dict.fromkeys((*names, "resources"), "")}
    not_before, duration = event.not_before, event.duration
    return {
        **told,
        "id": event.id,
        "type": event.type,
        "status": event.status,
        "source": event.source,
        "not_before": "" if not_before is None else format_datetime(not_before, usegmt=True),
        "duration": "" if duration is None else f"{duration.total_seconds():g}s",
        "description": event.description,
        "resources": ", ".join(event.resources),
    }


def text(template: str, news: News) -> str:
    """A template, filled in. The usual one has words that trouble, which is of no event, has not."""
    is_bare = news.event is None and template == TEMPLATE
    return (_TROUBLE_TEMPLATE if is_bare else template).format_map(words(news))


def members(news: News) -> Mapping[str, object]:
    """What a program is told besides: the event as its document has it."""
    told: dict[str, object] = {"name": news.name, "kind": news.kind.value, "what": news.what}
    event = news.event
    if event is not None:
        told |= {**dump_event(event), "NotBefore": words(news)["not_before"]}
    return told


def deliver(receiver: Notification, news: News) -> None:
    """Tell a receiver by what its URL says. Raises: Malformed, Refused, Unavailable."""
    said = text(receiver.template, news)
    if not deliveries.is_http(receiver.url):
        deliveries.tell_by_apprise(receiver.url, f"{news.name}: {news.kind.value}", said)
        return
    # Most agents never tell anybody, and need not carry what that takes.
    from forewarn.agent.posting import post  # noqa: PLC0415

    if receiver.content_type == PLAIN:
        post(receiver.url, f"{PLAIN}; charset=utf-8", said.encode())
    else:
        post(receiver.url, JSON, json.dumps({"text": said, **members(news)}).encode())


class Notifications:
    """All who are to be told."""

    def __init__(
        self,
        receivers: tuple[Notification, ...],
        deliver: Deliver = deliver,
        delays: tuple[float, ...] = DELAYS_SECONDS,
    ) -> None:
        self._carriers = tuple(_Carrier(receiver, deliver, delays) for receiver in receivers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        until = time.monotonic() + CLOSING_SECONDS
        for carrier in self._carriers:
            carrier.close()
        for carrier in self._carriers:
            carrier.join(until - time.monotonic())

    def tell(self, news: News) -> None:
        """Have everybody told who wants to know; returns at once."""
        for carrier in self._carriers:
            if news.kind in carrier.receiver.on:
                carrier.take(news)


class _Carrier:
    """Tells one receiver, one news after another; its thread begins with the first."""

    def __init__(self, receiver: Notification, deliver: Deliver, delays: tuple[float, ...]) -> None:
        self.receiver = receiver
        self._deliver = deliver
        self._delays = delays
        self._waiting: queue.Queue[News | None] = queue.Queue(QUEUE_SIZE_MAX)
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        # Whether the last thing that was logged of it is that it fails.
        self._is_failing = False

    def take(self, news: News) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._carry, name="notification", daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(news)
        except queue.Full:
            self._complain(f"{QUEUE_SIZE_MAX} news wait already")

    def close(self) -> None:
        """Have what waits told, each with one try, and nothing after it."""
        self._closing.set()
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            _log.warning("not all news were told to %s", deliveries.shown(self.receiver.url))

    def join(self, seconds: float) -> None:
        if self._thread is not None:
            self._thread.join(max(seconds, 0))

    def _carry(self) -> None:
        while (news := self._waiting.get()) is not None:
            error = self._attempt(news)
            if error is not None:
                self._complain(str(error))
            elif self._is_failing:
                self._is_failing = False
                _log.info("%s is told of news again", deliveries.shown(self.receiver.url))

    def _attempt(self, news: News) -> ForewarnError | None:
        """What came of all tries; None if one of them was well."""
        error: ForewarnError | None = None
        for delay in (0.0, *self._delays):
            # Not waited for, if the agent is about to end; nor tried again then.
            if delay and self._closing.wait(delay):
                break
            try:
                self._deliver(self.receiver, news)
            except Unavailable as passing:
                error = passing
            except (Malformed, Refused) as final:
                return final
            else:
                return None
        return error

    def _complain(self, why: str) -> None:
        if not self._is_failing:
            self._is_failing = True
            _log.error("%s cannot be told of news: %s", deliveries.shown(self.receiver.url), why)
