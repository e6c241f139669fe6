"""Plays hostile exchanges on real sockets, many at a time, and sees how each comes to its end."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from forewarn.testing.hostility import Exchange, Farewell
from forewarn.testing.oracle import Outcome

_READ_BYTES: Final = 65536
# Closing with this has the kernel send a reset.
_RESET: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Stage:
    """Where exchanges are played."""

    place: tuple[str, int]
    patience_seconds: float
    at_a_time: int = 64
    # Whether guests who stay do so when there is nothing under way, until they are sent home.
    lets_idle: bool = True


@dataclass(frozen=True, slots=True)
class Role:
    """Who plays an exchange."""

    address: str
    is_stranger: bool = False


def play(stage: Stage, cast: Sequence[tuple[Exchange, Role]]) -> list[Outcome]:
    """Play all of these, and tell how each ended, in the same order."""
    return asyncio.run(_play(stage, cast))


async def _play(stage: Stage, cast: Sequence[tuple[Exchange, Role]]) -> list[Outcome]:
    seats = asyncio.Semaphore(stage.at_a_time)

    async def one(exchange: Exchange, role: Role) -> Outcome:
        async with seats:
            return await _play_one(stage, exchange, role)

    return await asyncio.gather(*(one(exchange, role) for exchange, role in cast))


async def _play_one(stage: Stage, exchange: Exchange, role: Role) -> Outcome:
    outcome = Outcome(exchange, is_stranger=role.is_stranger)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)  # noqa: FBT003 - the signature of sockets
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if exchange.nap_seconds:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.bind((role.address, 0))
        try:
            async with asyncio.timeout(stage.patience_seconds):
                await asyncio.get_running_loop().sock_connect(connection, stage.place)
                await _converse(connection, outcome, lets_idle=stage.lets_idle)
        except TimeoutError:
            outcome.is_too_late = True
        except ConnectionError:
            outcome.is_hung_up = outcome.is_reset = True
        if exchange.farewell is Farewell.RESET:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    return outcome


async def _converse(connection: socket.socket, outcome: Outcome, *, lets_idle: bool) -> None:
    """Send and read at once: who only sends, and is refused, would never read why."""
    exchange = outcome.exchange
    sending = asyncio.create_task(_send(connection, exchange))
    try:
        if exchange.is_heard_out:
            await asyncio.sleep(exchange.nap_seconds)
            await _hear(connection, outcome, sending, lets_idle=lets_idle)
        else:
            await sending
    finally:
        sending.cancel()
        with suppress(asyncio.CancelledError, ConnectionError):
            await sending


async def _send(connection: socket.socket, exchange: Exchange) -> None:
    loop = asyncio.get_running_loop()
    for piece in exchange.pieces:
        await loop.sock_sendall(connection, piece)
        await asyncio.sleep(exchange.pause_seconds)
    if exchange.farewell is Farewell.FINISH:
        # The server may have hung up already.
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)


async def _hear(
    connection: socket.socket, outcome: Outcome, sending: asyncio.Task[None], *, lets_idle: bool
) -> None:
    loop = asyncio.get_running_loop()
    farewell = outcome.exchange.farewell
    while outcome.complaint is None:
        is_content = farewell is Farewell.LISTEN and outcome.is_answered and not outcome.says_close
        is_bored = farewell is Farewell.STAY and outcome.is_idle and not lets_idle
        if is_content or is_bored:
            if sending.done():
                return
            # Until all is sent, there may be an answer to a part of it.
            await asyncio.wait({sending})
            continue
        data = await loop.sock_recv(connection, _READ_BYTES)
        if not data:
            outcome.is_hung_up = True
            return
        outcome.hear(data)
