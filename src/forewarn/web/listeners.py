"""Addresses to listen on, and why one of them cannot be had."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from forewarn.errors import ForewarnError, Refused, Unavailable

PORT_MAX: Final = 65535
# What the kernel may hold of one connection in each direction. Left to itself it grows to
# megabytes, which a guest that does not read could multiply by its connections.
KERNEL_BUFFER_BYTES: Final = 64 * 1024

_REMEDIES: Final[Mapping[int, str]] = {
    errno.EACCES: (
        "this user may not use ports below 1024: grant CAP_NET_BIND_SERVICE, or choose another port"
    ),
    errno.EADDRNOTAVAIL: (
        "no interface of this machine has that address: `forewarn host prepare` gives it to the links "
        "of a network file, which --network listens on; or choose another address"
    ),
    errno.EADDRINUSE: "another process listens there: stop it, or choose another port",
    errno.ENODEV: (
        "this machine has no such device: make it first, as `forewarn host prepare` does, or choose "
        "another"
    ),
    errno.EPERM: "this user may not bind to a device: grant CAP_NET_RAW, or leave the device out",
}


@dataclass(frozen=True, slots=True)
class Listener:
    """Where to listen; port 0 means any free one.

    With a machine, everybody who comes there is taken for that machine. With a device, nobody comes
    there but by that device; whoever binds it has to be in its namespace.
    """

    host: str
    port: int
    machine: str | None = None
    device: str | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """An address that is ours, by the name under which callers are identified."""

    name: str
    host: str
    port: int
    machine: str | None
    socket: socket.socket
    device: str | None = None

    @property
    def url(self) -> str:
        """Where guests ask; with a device, only those at its other end."""
        return f"http://{spell(self.host, self.port)}"

    @property
    def told(self) -> str:
        """The same for people."""
        return f"{self.url} on {self.device}" if self.device else self.url


def bind(listeners: Sequence[Listener]) -> tuple[Bound, ...]:
    """Take all addresses, or none. Nobody is answered yet. Raises: Refused, Unavailable."""
    bound: list[Bound] = []
    try:
        bound.extend(_bind(listener) for listener in listeners)
    except ForewarnError:
        for taken in bound:
            taken.socket.close()
        raise
    return tuple(bound)


def adopt(descriptor: int) -> socket.socket:
    """A socket that was bound elsewhere, as we use those that are bound here."""
    bound = socket.socket(fileno=descriptor)
    _tune(bound)
    return bound


def spell(host: str, port: int) -> str:
    """An address and a port as one word."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _bind(listener: Listener) -> Bound:
    where = _named(listener, listener.port)
    not_an_address = Refused(
        f"cannot listen on {where}: give an IP address and a port from 0 to {PORT_MAX}"
    )
    # Some resolvers take a port that is too large, and cut it to size.
    if not 0 <= listener.port <= PORT_MAX:
        raise not_an_address
    try:
        # Addresses only: what a name means may change while we listen.
        found = socket.getaddrinfo(
            listener.host,
            listener.port,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE | socket.AI_NUMERICHOST,
        )
    except (socket.gaierror, UnicodeError) as error:
        raise not_an_address from error
    family, kind, protocol, _, address = found[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _tune(bound)
        if family == socket.AF_INET6:
            # So that the same port can be had for both kinds of address, each by its own listener.
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if listener.device is not None:
            name = listener.device.encode()
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise _sorted(where, error) from error
    port = bound.getsockname()[1]
    return Bound(
        _named(listener, port),
        listener.host,
        port,
        listener.machine,
        bound,
        listener.device,
    )


def _named(listener: Listener, port: int) -> str:
    where = spell(listener.host, port)
    if listener.device is None:
        return where
    # Two hosts in namespaces may well have devices of one name, for a machine that moves.
    inside = "" if listener.namespace is None else f"{listener.namespace}/"
    return f"{where}%{inside}{listener.device}"


def _tune(bound: socket.socket) -> None:
    # Connections inherit these.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER_BYTES)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BUFFER_BYTES)
    # An answer is one write; nothing is gained by holding its end back.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    bound.settimeout(0)


def _sorted(where: str, error: OSError) -> ForewarnError:
    remedy = _REMEDIES.get(error.errno or 0, str(error))
    family = Unavailable if error.errno == errno.EADDRINUSE else Refused
    return family(f"cannot listen on {where}: {remedy}")
