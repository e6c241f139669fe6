"""Sockets that are heard through an epoll of our own, on either event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvloop

from forewarn.web.hall import READ_BYTES_MAX, Hall, Link
from forewarn.web.listeners import KERNEL_BUFFER_BYTES

UNSENT_BYTES_MAX = 16 * 1024
MUCH = bytes(range(256)) * 64 * 1024
PATIENCE_SECONDS = 10

Loop = Callable[[], asyncio.AbstractEventLoop]


class Scribe(Link):
    """Writes down what it is told."""

    def __init__(self, hall: Hall, descriptor: int) -> None:
        super().__init__(hall, descriptor)
        self.heard = b""
        self.told: list[str] = []
        self.stays_after_the_end = False

    def data_received(self, data: bytes) -> None:
        assert data != b"bug", "a bug"
        self.heard += data

    def eof_received(self) -> bool:
        self.told.append("end")
        return self.stays_after_the_end

    def connection_lost(self) -> None:
        self.told.append("lost")

    def relieved(self) -> None:
        self.told.append("relieved")


@contextmanager
def guest(hall: Hall) -> Iterator[tuple[socket.socket, Scribe]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        # Inherited, so that what a guest does not read is felt soon.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER_BYTES)
        theirs = socket.create_connection(server.getsockname(), PATIENCE_SECONDS)
        ours, _ = server.accept()
    with theirs:
        theirs.settimeout(0)
        ours.settimeout(0)
        scribe = Scribe(hall, ours.detach())
        scribe.settle()
        yield theirs, scribe
        scribe.drop()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 - many things are waited for
            await asyncio.sleep(0.001)


async def received(theirs: socket.socket, size: int) -> bytes:
    found = b""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(found) < size:
            found += await asyncio.get_running_loop().sock_recv(theirs, 65536)
    return found


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop])
def new_loop(request: pytest.FixtureRequest) -> Loop:
    loop: Loop = request.param
    return loop


def play(new_loop: Loop, story: Callable[[Hall], Awaitable[Any]]) -> list[dict[str, Any]]:
    """Have this happen in a hall; what the loop was told of bugs."""
    bugs: list[dict[str, Any]] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: bugs.append(context))
        hall = Hall(loop, unsent_bytes_max=UNSENT_BYTES_MAX)
        try:
            await story(hall)
            await asyncio.sleep(0)
        finally:
            hall.close()
            hall.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())
    return bugs


def test_bytes_and_the_end_that_come_together_are_both_heard(new_loop: Loop) -> None:
    async def story(hall: Hall) -> None:
        with guest(hall) as (theirs, scribe):
            theirs.send(b"last words")
            theirs.shutdown(socket.SHUT_WR)
            await until(lambda: "lost" in scribe.told)
            assert (scribe.heard, scribe.told) == (b"last words", ["end", "lost"])

    assert not play(new_loop, story)


def test_more_than_one_reading_is_heard_to_its_end(new_loop: Loop) -> None:
    async def story(hall: Hall) -> None:
        with guest(hall) as (theirs, scribe):
            sent = theirs.send(MUCH[: 3 * READ_BYTES_MAX])
            await until(lambda: len(scribe.heard) == sent)

    assert not play(new_loop, story)


def test_whoever_paused_hears_what_came_meanwhile(new_loop: Loop) -> None:
    async def story(hall: Hall) -> None:
        with guest(hall) as (theirs, scribe):
            scribe.pause()
            theirs.send(b"meanwhile")
            await asyncio.sleep(0.05)
            heard_before = scribe.heard
            scribe.resume()
            await until(lambda: scribe.heard)
            assert (heard_before, scribe.heard) == (b"", b"meanwhile")

    assert not play(new_loop, story)


def test_what_a_guest_does_not_read_is_sent_when_it_does(new_loop: Loop) -> None:
    async def story(hall: Hall) -> None:
        with guest(hall) as (theirs, scribe):
            scribe.write(MUCH)
            scribe.write(b"!")
            was_congested = scribe.is_congested
            # Words are heard all the same.
            theirs.send(b"well?")
            await until(lambda: scribe.heard)
            assert await received(theirs, len(MUCH) + 1) == MUCH + b"!"
            await until(lambda: scribe.told)
            assert was_congested
            assert not scribe.is_congested
            assert scribe.told == ["relieved"]

    assert not play(new_loop, story)


@pytest.mark.parametrize("last", [Scribe.end, Scribe.shut])
def test_the_end_comes_after_all_that_was_sent(
    new_loop: Loop, last: Callable[[Scribe], None]
) -> None:
    async def story(hall: Hall) -> None:
        with guest(hall) as (theirs, scribe):
            scribe.write(MUCH)
            last(scribe)
            assert await received(theirs, len(MUCH)) == MUCH
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert not await asyncio.get_running_loop().sock_recv(theirs, 1)

    assert not play(new_loop, story)


def test_whoever_leaves_while_much_is_unsent_is_lost(new_loop: Loop) -> None:
    async def story(hall: Hall) -> None:
        with guest(hall) as (theirs, scribe):
            scribe.write(MUCH)
            scribe.end()
            theirs.close()
            await until(lambda: "lost" in scribe.told)
            scribe.write(b"too late")
            scribe.shut()
            scribe.resume()
            assert scribe.told == ["lost"]

    assert not play(new_loop, story)


def test_whoever_stays_after_the_end_is_answered(new_loop: Loop) -> None:
    async def story(hall: Hall) -> None:
        with guest(hall) as (theirs, scribe):
            scribe.stays_after_the_end = True
            theirs.shutdown(socket.SHUT_WR)
            await until(lambda: scribe.told)
            scribe.write(b"answer")
            assert await received(theirs, 6) == b"answer"

    assert not play(new_loop, story)


def test_a_bug_costs_one_guest_and_not_the_hall(new_loop: Loop) -> None:
    async def story(hall: Hall) -> None:
        with guest(hall) as (one, unlucky), guest(hall) as (other, lucky):
            one.send(b"bug")
            other.send(b"well")
            await until(lambda: unlucky.told and lucky.heard)
            assert (unlucky.told, lucky.told) == (["lost"], [])

    (bug,) = play(new_loop, story)
    assert isinstance(bug["exception"], AssertionError)
