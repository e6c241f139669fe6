"""The hall: the sockets of the guests that stay, all heard through one epoll of our own.

A transport of asyncio costs as much as the poll that arrives on it, in time and in memory. So a
connection is its own transport here: it reads, writes and ends its socket itself. The event loop
watches the epoll, and hears of all that arrived at once.

Theory: the epoll tells of a change once (edge-triggered), which saves it from looking at every
socket again after each answer. So what was not read to its end is asked for again: arming a socket
anew tells of all that is there. A socket that is read to its end, short of what there was room for,
tells of what comes next by itself.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import struct
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Final

# Sockets that are heard in one turn of the loop; then others have theirs.
HEARD_AT_ONCE: Final = 256
# More than any request whose bytes are remembered, and than nearly all others.
READ_BYTES_MAX: Final = 16 * 1024

_ARRIVED: Final = select.EPOLLIN
_WRITABLE: Final = select.EPOLLOUT
# An end that arrives together with the last bytes tells of itself only this way.
_HEARING: Final = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
# What has waited for the guest goes on as soon as most of it is gone.
_RELIEF: Final = 4
# Linger, for no time at all.
_AT_ONCE: Final = struct.pack("ii", 1, 0)


class Hall:
    """Hears all sockets that are let in, from within the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, unsent_bytes_max: int) -> None:
        self.loop = loop
        # What may lie in our memory of one socket before its writer is told to wait.
        self.unsent_bytes_max = unsent_bytes_max
        self.epoll: Final = select.epoll()
        # By descriptor, which is always the smallest number that is free.
        self.links: Final[list[Link | None]] = []
        loop.add_reader(self.epoll.fileno(), self._hear)

    def close(self) -> None:
        """Hear nobody any more."""
        if self.epoll.closed:
            return
        self.loop.remove_reader(self.epoll.fileno())
        self.epoll.close()

    def _hear(self) -> None:
        links, read = self.links, os.read
        for descriptor, signs in self.epoll.poll(0, HEARD_AT_ONCE):
            # Whoever was heard before in this turn may have ended it.
            link = links[descriptor]
            if link is None:
                continue
            try:
                if signs != _ARRIVED or not link.is_hearing:
                    link.stir(signs)
                    continue
                try:
                    said = read(descriptor, READ_BYTES_MAX)
                except BlockingIOError:
                    # It was told of twice.
                    continue
                # This is the way that nearly all requests take.
                if said and len(said) < READ_BYTES_MAX:
                    link.data_received(said)
                else:
                    link.hear(said)
            except Exception as error:  # noqa: BLE001 - the others are told of what arrived only once
                self._lose(link, error)

    def _lose(self, link: Link, error: Exception) -> None:
        link.drop()
        # Guests leave without a word all the time; anything else is a bug, and costs one of them.
        if not isinstance(error, OSError):
            self.loop.call_exception_handler({"message": "a guest broke", "exception": error})


class Link(ABC):
    """One guest's socket: what asyncio calls a transport, and the protocol in one."""

    __slots__ = (
        "_descriptor",
        "_hall",
        "_is_ending",
        "_shuts",
        "_unsent",
        "is_congested",
        "is_hearing",
    )

    def __init__(self, hall: Hall, descriptor: int) -> None:
        """Take over a socket that does not block. Nothing is heard before `settle`."""
        self._hall = hall
        self._descriptor = descriptor
        hall.links.extend([None] * (descriptor - len(hall.links) + 1))
        hall.links[descriptor] = self
        # What the kernel had no room for.
        self._unsent = b""
        # Ended by us; only what is unsent is still to go.
        self._is_ending = False
        # Our own direction is shut as soon as nothing is unsent.
        self._shuts = False
        # Whether the guest does not read, and much is unsent.
        self.is_congested = False
        # Whether what arrives is wanted.
        self.is_hearing = True

    # -- what is told to whoever is connected ------------------------------------------------

    @abstractmethod
    def data_received(self, data: bytes) -> None:
        """These bytes arrived."""

    @abstractmethod
    def eof_received(self) -> bool:
        """Nothing more will arrive; whether to leave our own direction open."""

    @abstractmethod
    def connection_lost(self) -> None:
        """It is over, whoever ended it. Told in a turn of the loop of its own."""

    @abstractmethod
    def relieved(self) -> None:
        """The guest has read: little is unsent of what was much."""

    # -- what the hall does ------------------------------------------------------------------

    def settle(self) -> None:
        """Be heard from now on, unless it is over already."""
        if self._descriptor >= 0:
            try:
                self._hall.epoll.register(self._descriptor, self._wanted())
            except OSError:
                # The kernel counts these too.
                self.drop()

    def stir(self, signs: int) -> None:
        """Something changed, beyond the arrival of bytes. Raises: OSError."""
        if self._unsent:
            self._flush()
        if self.is_hearing and signs != _WRITABLE:
            try:
                said = os.read(self._descriptor, READ_BYTES_MAX)
            except BlockingIOError:
                return
            self.hear(said)

    def hear(self, said: bytes) -> None:
        """Take what was read; there may be more, or the end."""
        if said:
            self.data_received(said)
            self._arm()
            return
        self.is_hearing = False
        if not self.eof_received():
            self.end()

    # -- what whoever is connected does ------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether we have ended it, or lost it."""
        return self._is_ending or self._descriptor < 0

    def write(self, data: bytes) -> None:
        """Send this, now or when there is room."""
        if self._is_ending or self._descriptor < 0:
            return
        if not self._unsent:
            try:
                sent = os.write(self._descriptor, data)
            except BlockingIOError:
                sent = 0
            except OSError:
                # The guest is gone.
                self.drop()
                return
            if sent == len(data):
                return
            self._unsent = data[sent:]
            self._arm()
        else:
            self._unsent += data
        if len(self._unsent) > self._hall.unsent_bytes_max:
            self.is_congested = True

    def shut(self) -> None:
        """Send nothing after what was sent; what arrives is still heard."""
        if self._unsent:
            self._shuts = True
        elif self._descriptor >= 0:
            # The guest may be gone, and nobody has told us yet.
            with suppress(OSError), socket.socket(fileno=os.dup(self._descriptor)) as ours:
                ours.shutdown(socket.SHUT_WR)

    def pause(self) -> None:
        """Hear nothing for the time being."""
        self.is_hearing = False

    def resume(self) -> None:
        """Hear again, first of all what has arrived meanwhile."""
        if not self.is_over:
            self.is_hearing = True
            self._arm()

    def end(self) -> None:
        """Hear no more, and hang up as soon as all is sent."""
        self._is_ending = True
        self.is_hearing = False
        if not self._unsent:
            self.drop()

    def drop(self) -> None:
        """Hang up, whatever is under way."""
        if self._descriptor >= 0:
            self._hall.links[self._descriptor] = None
            self._hall.loop.call_soon(self._leave, self._descriptor)
            self._descriptor = -1
            self._unsent = b""
            self.is_hearing = False

    def reset(self) -> None:
        """Hang up so that the guest is not told of an end, but of a reset."""
        if self._descriptor >= 0:
            with suppress(OSError), socket.socket(fileno=os.dup(self._descriptor)) as ours:
                ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.drop()

    def _leave(self, descriptor: int) -> None:
        # Once the guest sees the end, it does not count any more: it may come again at once.
        try:
            self.connection_lost()
        finally:
            os.close(descriptor)

    # -- between the two ---------------------------------------------------------------------

    def _wanted(self) -> int:
        return _HEARING | _WRITABLE if self._unsent else _HEARING

    def _arm(self) -> None:
        """Be told of what there is now, and of what changes after that."""
        # Who has not settled yet will be told then.
        if self._descriptor >= 0:
            with suppress(FileNotFoundError):
                self._hall.epoll.modify(self._descriptor, self._wanted())

    def _flush(self) -> None:
        with suppress(BlockingIOError):
            self._unsent = self._unsent[os.write(self._descriptor, self._unsent) :]
        if not self._unsent:
            if self._is_ending:
                self.drop()
                return
            self._arm()
            if self._shuts:
                self.shut()
        if self.is_congested and len(self._unsent) <= self._hall.unsent_bytes_max // _RELIEF:
            self.is_congested = False
            self.relieved()
