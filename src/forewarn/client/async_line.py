"""A way to the endpoint in an event loop, kept from one request to the next."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import TracebackType
from typing import Self

from forewarn.client.discovery import Endpoint
from forewarn.client.line import RECEIVED_SIZE
from forewarn.client.messages import Answer, AnswerReader, Failing, Failure, Outcome, Request
from forewarn.errors import Malformed


class AsyncLine:
    """Asks one thing after another, as `Line` does."""

    def __init__(self) -> None:
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._endpoint: Endpoint | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._hang_up()

    async def exchange(
        self, endpoint: Endpoint, request: Request, *, connect: timedelta, patience: timedelta
    ) -> Outcome:
        """Ask, and wait for the answer. Never raises: not to be answered is an outcome."""
        outcome: Outcome
        try:
            async with asyncio.timeout(patience.total_seconds()):
                outcome = await self._exchange(endpoint, request, connect)
        except TimeoutError:
            outcome = Failure(Failing.TIMED_OUT)
        if isinstance(outcome, Failure) or not outcome.keeps_alive:
            self._hang_up()
        return outcome

    async def _exchange(self, endpoint: Endpoint, request: Request, connect: timedelta) -> Outcome:
        if self._streams is not None and self._endpoint == endpoint:
            reader = AnswerReader()
            outcome = await self._ask(*self._streams, endpoint, request, reader)
            if isinstance(outcome, Answer) or reader.has_begun:
                return outcome
            # A kept connection may have been closed while nobody looked; then nobody heard this.
        self._hang_up()
        try:
            async with asyncio.timeout(connect.total_seconds()):
                self._streams = await asyncio.open_connection(endpoint.host, endpoint.port)
        except OSError as error:
            # One that took too long is one of them.
            return Failure(Failing.UNREACHABLE, str(error))
        self._endpoint = endpoint
        return await self._ask(*self._streams, endpoint, request, AnswerReader())

    async def _ask(
        self,
        incoming: asyncio.StreamReader,
        outgoing: asyncio.StreamWriter,
        endpoint: Endpoint,
        request: Request,
        reader: AnswerReader,
    ) -> Outcome:
        try:
            outgoing.write(request.dump(str(endpoint)))
            await outgoing.drain()
            while True:
                data = await incoming.read(RECEIVED_SIZE)
                answer = reader.feed(data) if data else reader.end()
                if answer is not None:
                    return answer
        except (OSError, Malformed) as error:
            return Failure(Failing.BROKE_OFF, str(error))

    def _hang_up(self) -> None:
        if self._streams is not None:
            # Not waited for: nothing is left to be sent, and whoever was canceled may not wait.
            self._streams[1].transport.abort()
        self._streams = None
