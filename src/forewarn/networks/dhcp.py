"""DHCP, as far as it takes to tell a guest where the endpoint is: option 245. Sans-IO.

Guests outside a virtual network learn the endpoint's address that way (docs/protocol). We answer a
guest at one of our ports who asks for option 245, or does not say what it asks for, as an old sample
does; we offer it the one address that it may have anyway. All others are left to whatever server
there may be. Nothing is remembered: there is nothing to lease.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from ipaddress import IPv4Address, IPv4Network
from typing import Final

LEASE: Final = timedelta(hours=1)
EVERYBODY: Final = "255.255.255.255"

_HEADER: Final = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s4s")
_COOKIE: Final = bytes((99, 130, 83, 99))
_ASK, _ANSWER, _ETHERNET, _MAC_LENGTH = 1, 2, 1, 6
# What a client of BOOTP, the older protocol, may take for granted.
_LENGTH_MIN: Final = 300
_PAD, _END = 0, 255
_NOBODY: Final = bytes(4)


class Message(IntEnum):
    """What a message is about: option 53."""

    DISCOVER = 1
    OFFER = 2
    REQUEST = 3
    ACK = 5
    NAK = 6
    INFORM = 8


class Option(IntEnum):
    """The options that we read or write."""

    SUBNET_MASK = 1
    ADDRESS = 50
    LEASE_SECONDS = 51
    MESSAGE = 53
    SERVER = 54
    WANTED = 55
    ROUTES = 121
    # The same, as it was called before there was a standard.
    MICROSOFT_ROUTES = 249
    ENDPOINT = 245


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a client says."""

    message: int
    xid: int
    flags: int
    mac: str
    # The address it has already; "0.0.0.0" if none.
    has: str
    options: Mapping[int, bytes]

    @property
    def wanted(self) -> bytes | None:
        """The options that it wants to be told; None if it does not say."""
        return self.options.get(Option.WANTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link that we answer on: who is there, and what they are told."""

    endpoint: str
    # The one address of each card.
    addresses: Mapping[str, str]
    prefix: int = 32


@dataclass(frozen=True, slots=True)
class Answer:
    """A datagram, and to whom it goes."""

    datagram: bytes
    to: str


def answer(link: Link, datagram: bytes) -> Answer | None:
    """What a datagram is answered; None if it is none of our business."""
    ask = parse(datagram)
    if ask is None:
        return None
    address = link.addresses.get(ask.mac)
    if address is None or (ask.wanted is not None and Option.ENDPOINT not in ask.wanted):
        return None
    if ask.message == Message.DISCOVER:
        return _told(link, ask, Message.OFFER, address)
    if ask.message == Message.INFORM and ask.has == address:
        return _told(link, ask, Message.ACK, None)
    if ask.message == Message.REQUEST:
        return _granted(link, ask, address)
    return None


def parse(datagram: bytes) -> Ask | None:
    """What a client says; None if that is not to be understood, or came from another link."""
    if len(datagram) < _HEADER.size:
        return None
    op, kind, length, _, xid, _, flags, has, _, _, relay, card, _, _, cookie = _HEADER.unpack(
        datagram[: _HEADER.size]
    )
    if (op, kind, length, cookie) != (_ASK, _ETHERNET, _MAC_LENGTH, _COOKIE) or relay != _NOBODY:
        return None
    options = _options(datagram[_HEADER.size :])
    if options is None or len(options.get(Option.MESSAGE, b"")) != 1:
        return None
    return Ask(
        message=options[Option.MESSAGE][0],
        xid=xid,
        flags=flags,
        mac=card[:_MAC_LENGTH].hex(":"),
        has=str(IPv4Address(has)),
        options=options,
    )


def _granted(link: Link, ask: Ask, address: str) -> Answer | None:
    server = ask.options.get(Option.SERVER)
    if server is not None and server != _packed(link.endpoint):
        # It took another server's offer.
        return None
    asked = ask.options.get(Option.ADDRESS, _packed(ask.has))
    if asked == _packed(address):
        return _told(link, ask, Message.ACK, address)
    # Whoever did not name a server may well have an address from another one.
    return None if server is None else _told(link, ask, Message.NAK, None)


def _told(link: Link, ask: Ask, message: Message, address: str | None) -> Answer:
    header = _HEADER.pack(
        *(_ANSWER, _ETHERNET, _MAC_LENGTH, 0, ask.xid, 0, ask.flags),
        _packed(ask.has) if message == Message.ACK else _NOBODY,
        _NOBODY if address is None else _packed(address),
        *(_NOBODY, _NOBODY, bytes.fromhex(ask.mac.replace(":", "")), b"", b"", _COOKIE),
    )
    said: list[tuple[int, bytes]] = [
        (Option.MESSAGE, bytes((message,))),
        (Option.SERVER, _packed(link.endpoint)),
    ]
    if address is not None:
        said += _lease(link)
    if message != Message.NAK:
        said += _places(link, ask)
    options = b"".join(bytes((code, len(value))) + value for code, value in said)
    datagram = (header + options + bytes((_END,))).ljust(_LENGTH_MIN, b"\0")
    has_address = ask.has != str(IPv4Address(0)) and message == Message.ACK
    # Who has no address yet cannot be spoken to by it: all hear what one is told.
    return Answer(datagram, ask.has if has_address else EVERYBODY)


def _lease(link: Link) -> Iterator[tuple[int, bytes]]:
    yield Option.LEASE_SECONDS, int(LEASE.total_seconds()).to_bytes(4)
    yield Option.SUBNET_MASK, IPv4Network((0, link.prefix)).netmask.packed


def _places(link: Link, ask: Ask) -> Iterator[tuple[int, bytes]]:
    # The whole of its address, and no gateway: it is on the link.
    route = bytes((32,)) + _packed(link.endpoint) + _NOBODY
    for code in (Option.ROUTES, Option.MICROSOFT_ROUTES):
        if code in (ask.wanted or b""):
            yield code, route
    yield Option.ENDPOINT, _packed(link.endpoint)


def _options(area: bytes) -> Mapping[int, bytes] | None:
    """Options by their codes; None if one of them is cut off."""
    found: dict[int, bytes] = {}
    at = 0
    while at < len(area) and area[at] != _END:
        if area[at] == _PAD:
            at += 1
            continue
        head, at = area[at : at + 2], at + 2
        value = area[at : at + head[-1]]
        if len(head) < 2 or len(value) < head[1]:  # noqa: PLR2004 - a code and a length
            return None
        # A long one comes in pieces.
        found[head[0]] = found.get(head[0], b"") + value
        at += head[1]
    return found


def _packed(address: str) -> bytes:
    return IPv4Address(address).packed
