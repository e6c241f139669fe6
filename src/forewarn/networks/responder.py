"""A socket on which a link's guests are answered by DHCP."""

from __future__ import annotations

import errno
import socket
from typing import Final

from forewarn.errors import ForewarnError, Refused, Unavailable
from forewarn.networks import dhcp
from forewarn.networks.dhcp import Link
from forewarn.networks.links import Bridge

SERVER_PORT: Final = 67
CLIENT_PORT: Final = 68
DATAGRAM_BYTES_MAX: Final = 1500
# Then others have their turn, however much a guest asks.
BATCH: Final = 16


def link_of(bridge: Bridge, endpoint: str) -> Link:
    """A bridge as its guests are told of it: each has the first of its addresses."""
    addresses = {guest.mac: guest.addresses[0] for guest in bridge.guests}
    return Link(endpoint=endpoint, addresses=addresses, prefix=bridge.prefix)


class Responder:
    """Answers those who ask on one device; nobody else hears of it."""

    def __init__(self, device: str, link: Link) -> None:
        """Take the port. Raises: Refused, Unavailable."""
        self.device = device
        self.answered = 0
        self._link = link
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            self._socket.setblocking(False)  # noqa: FBT003 - the socket's own words
            self._socket.bind(("", SERVER_PORT))
        except OSError as error:
            self._socket.close()
            raise _sorted(device, error) from error

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def answer(self) -> None:
        """Answer what has come, or the first of it."""
        for _ in range(BATCH):
            try:
                datagram = self._socket.recv(DATAGRAM_BYTES_MAX)
            except OSError:
                # Nothing more came; or the device is gone, and with it whoever might ask.
                return
            answer = dhcp.answer(self._link, datagram)
            if answer is not None:
                self._send(answer)

    def _send(self, answer: dhcp.Answer) -> None:
        try:
            self._socket.sendto(answer.datagram, (answer.to, CLIENT_PORT))
        except OSError:
            # Clients ask again, as they do when a datagram is lost on the way.
            return
        self.answered += 1


def _sorted(device: str, error: OSError) -> ForewarnError:
    where = f"cannot answer DHCP on {device}"
    if error.errno == errno.EADDRINUSE:
        return Unavailable(
            f"{where}: another server does: have it give option 245, and take dhcp_245 out of the "
            "network file"
        )
    if error.errno == errno.ENODEV:
        return Refused(f"{where}: there is no such device: `forewarn host prepare` first")
    if error.errno in (errno.EACCES, errno.EPERM):
        return Refused(
            f"{where}: this user may not: grant CAP_NET_BIND_SERVICE and CAP_NET_RAW, or take "
            "dhcp_245 out of the network file"
        )
    return Refused(f"{where}: {error}")
