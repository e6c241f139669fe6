"""Answers that go on: told part by part for as long as their reader stays, and reads.

A stream holds no thread while there is nothing to tell. How many there are, for each caller and in
all, is bounded; whoever does not read is hung up on, and comes back where it left off.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPMethod

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from forewarn.ports.trust import Authority
from forewarn.web import calls
from forewarn.web.calls import Answer, Stream

# Work that may wait for a disk, done in a thread.
Errand = Callable[[Callable[[], Answer]], Awaitable[Answer]]
# Ends the connection of whoever is at this address and port, without another word.
HangUp = Callable[[tuple[str, int]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often streams are looked after, and how many of them."""

    look_again: timedelta = timedelta(milliseconds=250)
    # Asked even if nobody heard of news: polling is the truth.
    ask_anyway: timedelta = timedelta(seconds=5)
    # Whatever stands in between takes a connection for dead that is silent for long.
    beat: timedelta = timedelta(seconds=15)
    # For whoever does not read.
    patience: timedelta = timedelta(seconds=30)
    streams_max: int = 128
    streams_of_one_max: int = 16


@dataclass(frozen=True, slots=True)
class _Reader:
    """Whoever is at the other end."""

    send: Send
    gone: asyncio.Task[None]


class Streams:
    """The streams that are under way. Touched by the loop's thread only."""

    def __init__(
        self, authority: Authority, errand: Errand, closing: threading.Event, pace: Pace
    ) -> None:
        self._authority = authority
        self._errand = errand
        self._closing = closing
        self._pace = pace
        # By the id of the caller.
        self._under_way: Counter[str] = Counter()
        # Set by whoever owns the connections.
        self.hang_up: HangUp = lambda _client: None

    async def tell(
        self, answer: Answer, stream: Stream, connection: Scope, receive: Receive, send: Send
    ) -> None:
        """Tell an answer and all that follows, until one side has enough."""
        caller = stream.call.caller.id
        if self._is_full(caller):
            await response(calls.too_many())(connection, receive, send)
            return
        self._under_way[caller] += 1
        gone = asyncio.create_task(_gone(receive))
        try:
            await send(_start(answer))
            if connection["method"] == HTTPMethod.HEAD:
                await send(_part(b"", more=False))
            else:
                await self._tell(answer, stream, _Reader(send, gone))
        except TimeoutError:
            self.hang_up(connection["client"])
            # Until the server has noticed, it would call this an answer that was left unfinished.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pace.patience.total_seconds()):
                    await gone
        finally:
            gone.cancel()
            self._under_way[caller] -= 1
            self._under_way += Counter()

    async def _tell(self, answer: Answer, stream: Stream, reader: _Reader) -> None:
        # Closed here, not whenever somebody collects what was left.
        async with aclosing(self._parts(answer, stream, reader)) as parts:
            async for part in parts:
                async with asyncio.timeout(self._pace.patience.total_seconds()):
                    await reader.send(_part(part, more=True))
        async with asyncio.timeout(self._pace.patience.total_seconds()):
            await reader.send(_part(b"", more=False))

    async def _parts(
        self, answer: Answer, stream: Stream, reader: _Reader
    ) -> AsyncGenerator[bytes]:
        loop = asyncio.get_running_loop()
        asked_at = told_at = loop.time()
        yield answer.body
        following: Stream | None = stream
        while following is not None and self._is_welcome(following):
            pause = 0 if following.is_behind else self._pace.look_again.total_seconds()
            await asyncio.wait((reader.gone,), timeout=pause)
            if reader.gone.done():
                return
            now, part = loop.time(), b""
            if now - told_at >= self._pace.beat.total_seconds():
                part = following.beat
            is_late = now - asked_at >= self._pace.ask_anyway.total_seconds()
            if following.is_behind or following.is_news() or is_late:
                more = await self._errand(following.more)
                asked_at = now
                part, following = more.body or part, more.stream
            if part:
                told_at = now
                yield part

    def _is_welcome(self, stream: Stream) -> bool:
        """Whether to go on: whoever lost the token, or a right, since then is not told any more."""
        shown = calls.bearer(stream.call.headers)
        same = self._authority.principal(shown) == stream.call.principal
        return same and not self._closing.is_set()

    def _is_full(self, caller: str) -> bool:
        return (
            self._under_way[caller] >= self._pace.streams_of_one_max
            or self._under_way.total() >= self._pace.streams_max
        )


def response(answer: Answer) -> Response:
    """An answer that is told at once."""
    headers = {"Cache-Control": "no-store", **dict(answer.headers)}
    return Response(answer.body, answer.status, headers=headers, media_type=answer.content_type)


def _start(answer: Answer) -> dict[str, object]:
    return {
        "type": "http.response.start",
        "status": int(answer.status),
        "headers": [
            (b"content-type", answer.content_type.encode()),
            (b"cache-control", b"no-store"),
            # Proxies that keep a stream until it is over make it worthless.
            (b"x-accel-buffering", b"no"),
        ],
    }


def _part(body: bytes, *, more: bool) -> dict[str, object]:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _gone(receive: Receive) -> None:
    """Come back when the reader has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
