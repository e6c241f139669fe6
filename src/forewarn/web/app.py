"""The operators' API on Starlette and uvicorn: HTTP in, HTTP out, and all the waiting.

Handlers are synchronous and may commit, so they run in threads of their own, never in the loop.
A call that waits for news holds no thread meanwhile: it is asked again every now and then.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from forewarn.web import calls, control
from forewarn.web.calls import Answer, Call
from forewarn.web.control import ControlParts

THREADS: Final = 16
# Under way at one time, those that wait included.
CALLS_MAX: Final = 256
LOOK_AGAIN_SECONDS: Final = 0.25
BODY_SECONDS_MAX: Final = 30
SHUTDOWN_SECONDS_MAX: Final = 10


def build_app(parts: ControlParts) -> Starlette:
    """The operators' API as an ASGI application. Calls that wait end once `state.closing` is set."""
    reception = _Reception(parts)
    app = Starlette(
        routes=[Mount("", app=reception)],
        exception_handlers={Exception: _broken},
        lifespan=reception.open,
    )
    app.state.closing = reception.closing
    return app


class ControlServer:
    """Serves the operators' API on a socket that is bound already."""

    def __init__(self, app: Starlette, bound: socket.socket) -> None:
        self._closing: threading.Event = app.state.closing
        self._bound = bound
        self._server = _Server(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                # The journal names the true address of the caller, not what a header claims.
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS_MAX,
            )
        )

    async def serve(self) -> None:
        """Serve until `stop`; then give the answers under way, and close the socket."""
        await self._server.serve([self._bound])

    def stop(self) -> None:
        """Let `serve` come to its end. Safe to call from any thread."""
        self._closing.set()
        self._server.should_exit = True


class _Server(uvicorn.Server):
    """A uvicorn that leaves the signals alone: the service as a whole hears them."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Reception:
    """Where calls come in and answers go out."""

    def __init__(self, parts: ControlParts) -> None:
        self._parts = parts
        # Counts from the start, not from the first scrape.
        _ = parts.metrics
        self.closing = threading.Event()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="control")
        # Touched by the loop's thread only.
        self._under_way = 0

    @asynccontextmanager
    async def open(self, _app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self._threads.shutdown()

    async def __call__(self, connection: Scope, receive: Receive, send: Send) -> None:
        request = Request(connection, receive)
        answer = await self._answer(request)
        headers = {"Cache-Control": "no-store", **dict(answer.headers)}
        response = Response(
            answer.body, answer.status, headers=headers, media_type=answer.content_type
        )
        await response(connection, receive, send)

    async def _answer(self, request: Request) -> Answer:
        call = _call(request)
        # Before the body is read: who may not ask is not listened to.
        refusal = calls.admission(call, request.headers.get("authorization", ""), self._parts.token)
        if refusal is not None:
            return refusal
        if call.path in calls.AT_ONCE:
            return control.answer(self._parts, call)
        if self._under_way >= CALLS_MAX:
            return calls.too_busy()
        self._under_way += 1
        try:
            body = await _body(request)
            if isinstance(body, Answer):
                return body
            return await self._patiently(replace(call, body=body), request)
        finally:
            self._under_way -= 1

    async def _patiently(self, call: Call, request: Request) -> Answer:
        """Answer a call; where there is nothing to tell yet, ask again while it may wait."""
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        answer = await self._in_a_thread(call)
        while answer.later is not None and not self.closing.is_set():
            left = asked_at + answer.later.wait.total_seconds() - loop.time()
            if left <= 0 or await request.is_disconnected():
                break
            await asyncio.sleep(min(LOOK_AGAIN_SECONDS, left))
            answer = await self._in_a_thread(answer.later.call)
        return answer

    async def _in_a_thread(self, call: Call) -> Answer:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, control.answer, self._parts, call)


def _call(request: Request) -> Call:
    return Call(
        method=request.method,
        path=request.scope["path"],
        query=request.scope["query_string"].decode("latin-1"),
        address=request.client.host if request.client is not None else "",
    )


async def _body(request: Request) -> bytes | Answer:
    """The body of a request, or the answer to one that is too large or too slow."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            async for chunk in request.stream():
                body += chunk
                if len(body) > calls.BODY_BYTES_MAX:
                    return calls.too_large()
    except (TimeoutError, ClientDisconnect):
        text = "the body did not arrive in time"
        return calls.error(HTTPStatus.REQUEST_TIMEOUT, "Malformed", text)
    return bytes(body)


async def _broken(_request: Request, _error: Exception) -> Response:
    """The last word on a bug; uvicorn logs it with its traceback."""
    text = "forewarn made a mistake: its log says which; please report it"
    answer = calls.error(HTTPStatus.INTERNAL_SERVER_ERROR, "Broken", text)
    return Response(answer.body, answer.status, media_type=answer.content_type)
