"""DHCP option 245 in the leases that a VM was given: the address of Azure's fabric.

Four forms, as four DHCP clients keep them:

- dhclient (also under NetworkManager): `option unknown-245 a8:3f:81:10;`, the last lease counts; bytes that can be
  printed may stand as text in quotes, with the others escaped;
- systemd-networkd: `OPTION_245=a83f8110`;
- NetworkManager where it does without dhclient: the form of systemd-networkd, if it wrote the option at all;
- dhcpcd: the packet itself.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address
from typing import Final

OPTION: Final = 245
ADDRESS_SIZE: Final = 4

# A packet's fixed part, and the four bytes after it that say that options follow.
_FIXED_SIZE: Final = 236
_COOKIE: Final = bytes((99, 130, 83, 99))
_PAD, _END = 0, 255
_DHCLIENT: Final = re.compile(
    r'option\s+(?:unknown-|private-|option-)?245\s+("(?:[^"\\]|\\.)*"|[^;]+?)\s*;'
)
_NETWORKD: Final = re.compile(r"^OPTION_245=([0-9A-Fa-f]+)\s*$", re.MULTILINE)
_ESCAPED: Final = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)


def fabric_address(lease: bytes) -> IPv4Address | None:
    """The address that a lease of any form names, if it names one."""
    if lease[_FIXED_SIZE : _FIXED_SIZE + len(_COOKIE)] == _COOKIE:
        return _address(_option(lease[_FIXED_SIZE + len(_COOKIE) :]))
    text = lease.decode("latin-1")
    if networkd := _NETWORKD.findall(text):
        return _address(_hexadecimal(networkd[-1]))
    if dhclient := _DHCLIENT.findall(text):
        return _address(_written(dhclient[-1]))
    return None


def _address(value: bytes | None) -> IPv4Address | None:
    return IPv4Address(value) if value is not None and len(value) == ADDRESS_SIZE else None


def _option(options: bytes) -> bytes | None:
    """The value of option 245 among a packet's."""
    at = 0
    while at < len(options) and options[at] != _END:
        if options[at] == _PAD:
            at += 1
            continue
        size = options[at + 1] if at + 1 < len(options) else 0
        if options[at] == OPTION:
            return options[at + 2 : at + 2 + size]
        at += 2 + size
    return None


def _written(value: str) -> bytes | None:
    if value.startswith('"'):
        return _ESCAPED.sub(_unescaped, value[1:-1].encode("latin-1"))
    # A byte below 16 is written with one digit.
    return _hexadecimal("".join(part.zfill(2) for part in value.split(":")))


def _unescaped(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    # \400 and above are no bytes; whoever wrote them meant something else.
    return bytes([int(escaped, 8) & 0xFF]) if escaped.isdigit() else escaped


def _hexadecimal(digits: str) -> bytes | None:
    try:
        return bytes.fromhex(digits)
    except ValueError:
        return None
