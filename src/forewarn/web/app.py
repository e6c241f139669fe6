"""The control plane on Starlette and uvicorn: HTTP in, HTTP out, and all the waiting.

Handlers are synchronous and may commit, so they run in threads of their own, never in the loop.
A call that waits for news holds no thread meanwhile: it is asked again every now and then.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Final, Protocol, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from forewarn.core.rights import Right
from forewarn.errors import Unavailable
from forewarn.ports.trust import Authority
from forewarn.service.suspicion import network
from forewarn.web import calls, routes
from forewarn.web.admission import Admission, Connection
from forewarn.web.calls import Answer, Call
from forewarn.web.routes import Found, Route
from forewarn.web.streaming import Pace, Streams, response

THREADS: Final = 16
# Under way at one time, those that wait included.
CALLS_MAX: Final = 256
# Of those, from callers who show no token, in all and from one network: they cannot keep others out.
STRANGERS_MAX: Final = 128
STRANGERS_OF_ONE_MAX: Final = 32
LOOK_AGAIN_SECONDS: Final = 0.25
BODY_SECONDS_MAX: Final = 30
STRANGERS_BODY_SECONDS_MAX: Final = 5
SHUTDOWN_SECONDS_MAX: Final = 10
# A refusal is written down, but not whatever a stranger likes to send.
PATH_NOTED_MAX: Final = 200
# What handlers may know of a request's headers.
HEADERS_READ: Final = frozenset(
    {"authorization", "accept", "content-type", "if-match", "if-none-match", "last-event-id"}
)

DEFAULT_PACE: Final = Pace()

_WorkT = TypeVar("_WorkT")


class Paths(Protocol):
    """What is to be found at which path; a Table, or what stands for one."""

    def find(self, path: str) -> Found | None:
        """What is at a path."""
        ...


def build_app(table: Paths, authority: Authority, pace: Pace = DEFAULT_PACE) -> Starlette:
    """The control plane as an ASGI application. Calls that wait end once `state.closing` is set."""
    reception = _Reception(table, authority, pace)
    app = Starlette(
        exception_handlers={Exception: _broken},
        lifespan=reception.open,
    )
    # Not as a route: Starlette's own patterns know paths with which they have nothing to do, such as
    # those with a line break.
    app.router.default = reception
    app.state.closing = reception.closing
    app.state.streams = reception.streams
    return app


class ControlServer:
    """Serves the control plane on a socket that is bound already.

    Over TLS; without it, only behind something else that speaks it.
    """

    def __init__(
        self, app: Starlette, bound: socket.socket, tls: ssl.SSLContext | None = None
    ) -> None:
        self._closing: threading.Event = app.state.closing
        self._bound = bound
        self._server = _Server(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                lifespan="on",
                log_config=None,
                # What strangers send is no news: it must not fill a disk.
                log_level="error",
                access_log=False,
                # The journal names the true address of the caller, not what a header claims.
                proxy_headers=False,
                server_header=False,
                ssl_context_factory=None if tls is None else lambda _config, _default: tls,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS_MAX,
            )
        )
        app.state.streams.hang_up = self._server.hang_up

    async def serve(self) -> None:
        """Serve until `stop`; then give the answers under way, and close the socket."""
        await self._server.serve([self._bound])

    def stop(self) -> None:
        """Let `serve` come to its end. Safe to call from any thread."""
        self._closing.set()
        self._server.should_exit = True


class _Server(uvicorn.Server):
    """A uvicorn that leaves the signals alone, which the service as a whole hears, and who gets in."""

    _admitting: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve; connections come in by our own door."""
        await super().startup([])
        assert sockets is not None, "bound by whoever knows the address"
        (bound,) = sockets
        self._admission = Admission(self._connection, self.config.ssl)
        self._admitting = asyncio.create_task(self._admission.admit(bound))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let nobody in any more, and give the answers under way."""
        assert self._admitting is not None, "started before it is stopped"
        self._admitting.cancel()
        with suppress(asyncio.CancelledError):
            await self._admitting
        self._admission.close()
        await super().shutdown(sockets)

    def _connection(self) -> Connection:
        return Connection(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def hang_up(self, client: tuple[str, int]) -> None:
        """End the connection of whoever is at this address and port."""
        for connection in tuple(self.server_state.connections):
            if isinstance(connection, H11Protocol) and connection.client == client:
                connection.transport.abort()


class _Reception:
    """Where calls come in and answers go out."""

    def __init__(self, table: Paths, authority: Authority, pace: Pace) -> None:
        self._table = table
        self._authority = authority
        self.closing = threading.Event()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="control")
        # Touched by the loop's thread only.
        self._under_way = 0
        self._strangers: Counter[str] = Counter()
        self.streams = Streams(authority, self._in_a_thread, self.closing, pace)

    @asynccontextmanager
    async def open(self, _app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self._threads.shutdown()

    async def __call__(self, connection: Scope, receive: Receive, send: Send) -> None:
        request = Request(connection, receive)
        answer = await self._answer(request)
        if answer.stream is None:
            await response(answer)(connection, receive, send)
        else:
            await self.streams.tell(answer, answer.stream, connection, receive, send)

    async def _answer(self, request: Request) -> Answer:
        call = _call(request)
        found = self._table.find(call.path)
        if found is None:
            return routes.no_path(call)
        route = found.route(call.method)
        if route is None:
            return routes.no_method(call, found)
        if route.at_once:
            return routes.answer(route, call)
        if self._under_way >= CALLS_MAX:
            return calls.too_busy()
        if route.right is Right.ANYBODY:
            return await self._attended_as_stranger(route, routes.addressed(call, found), request)
        self._under_way += 1
        try:
            return await self._attended(route, routes.addressed(call, found), request)
        finally:
            self._under_way -= 1

    async def _attended_as_stranger(self, route: Route, call: Call, request: Request) -> Answer:
        place = network(call.address)
        if (
            self._strangers[place] >= STRANGERS_OF_ONE_MAX
            or self._strangers.total() >= STRANGERS_MAX
        ):
            return calls.too_busy()
        self._strangers[place] += 1
        try:
            return await self._attended(route, call, request)
        finally:
            self._strangers[place] -= 1
            # Nobody is remembered who has gone.
            self._strangers += Counter()

    async def _attended(self, route: Route, call: Call, request: Request) -> Answer:
        # Before the body is read: who may not ask is not listened to.
        admitted = await self._admitted(route, call)
        if isinstance(admitted, Answer):
            return admitted
        is_known = admitted.principal is not None
        body = await _body(request, BODY_SECONDS_MAX if is_known else STRANGERS_BODY_SECONDS_MAX)
        if isinstance(body, Answer):
            return body
        if body and not self._is_welcome(admitted):
            return calls.no_token(admitted)
        answer = await self._patiently(route, replace(admitted, body=body), request)
        if answer.status == HTTPStatus.FORBIDDEN:
            # Only what was named told whose it is.
            await self._note_refusal(admitted, "no right to what was named")
        return answer

    async def _admitted(self, route: Route, call: Call) -> Call | Answer:
        """The call, with whoever makes it; or the answer to somebody who may not."""
        if route.right is Right.ANYBODY:
            return call
        principal = self._authority.principal(calls.bearer(call.headers))
        call = replace(call, principal=principal)
        reason = "no valid token" if principal is None else routes.why_not(route, call)
        if reason is None:
            return call
        await self._note_refusal(call, reason)
        return calls.no_token(call) if principal is None else calls.no_right(reason)

    def _is_welcome(self, call: Call) -> bool:
        """Whether whoever was admitted still is: revoked while it sent a body, or while it waited."""
        if call.principal is None:
            return True
        return self._authority.principal(calls.bearer(call.headers)) == call.principal

    async def _note_refusal(self, call: Call, reason: str) -> None:
        what = f"{call.method} {call.path[:PATH_NOTED_MAX]}: {reason}"
        # Nobody is kept from being refused by a store that is away.
        with suppress(Unavailable):
            await self._in_a_thread(
                partial(self._authority.note_refusal, call.principal, call.address, what)
            )

    async def _patiently(self, route: Route, call: Call, request: Request) -> Answer:
        """Answer a call; where there is nothing to tell yet, ask again while it may wait."""
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        answer = await self._in_a_thread(partial(routes.answer, route, call))
        while answer.later is not None and not self.closing.is_set():
            left = asked_at + answer.later.wait.total_seconds() - loop.time()
            if left <= 0 or await request.is_disconnected():
                break
            await asyncio.sleep(min(LOOK_AGAIN_SECONDS, left))
            if not self._is_welcome(call):
                return calls.no_token(call)
            answer = await self._in_a_thread(partial(routes.answer, route, answer.later.call))
        return answer

    async def _in_a_thread(self, work: Callable[[], _WorkT]) -> _WorkT:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _call(request: Request) -> Call:
    return Call(
        method=request.method,
        path=request.scope["path"],
        query=request.scope["query_string"].decode("latin-1"),
        address=request.client.host if request.client is not None else "",
        base=f"{request.url.scheme}://{request.headers.get('host') or request.url.netloc}",
        headers={name: value for name, value in request.headers.items() if name in HEADERS_READ},
    )


async def _body(request: Request, seconds: float) -> bytes | Answer:
    """The body of a request, or the answer to one that is too large or too slow."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
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
