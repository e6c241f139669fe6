"""The addresses of webhooks, and the lines of their allow-list, from text.

Law: read strictly. What two programs could understand differently is refused, since one of them decides
whether it is allowed and another one connects.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from forewarn.core.targets import PORT_OF, AllowedHost, Target
from forewarn.errors import Malformed

URL_LENGTH_MAX: Final = 2000
_URL: Final = re.compile(r"[!-~]+")
_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}")
# "2130706433", "0x7f000001", "10.1": some programs take these for addresses, and others for names.
_NUMERIC: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
_NAME_LENGTH_MAX: Final = 253
_PORT_MAX: Final = 65535


def load_target(text: str) -> Target:
    """The target that an address names. Raises: Malformed."""
    parts = _split(text)
    if parts.scheme not in PORT_OF:
        raise Malformed(f"{text[:200]!r} is not an http or https address: begin with https://")
    if "@" in parts.netloc:
        raise Malformed("the address has a user in it: leave it out, deliveries are signed")
    if parts.fragment or "\\" in text:
        raise Malformed(f"{text[:200]!r} has a # or a backslash in it: leave it out")
    host, port = _place(parts.netloc, text)
    path = parts.path or "/"
    return Target(
        scheme=parts.scheme,
        host=host,
        port=PORT_OF[parts.scheme] if port is None else port,
        path=f"{path}?{parts.query}" if parts.query else path,
    )


def load_allowed(lines: Sequence[str]) -> tuple[AllowedHost, ...]:
    """An allow-list: hosts, each with a port or without, `*.` before a domain. Raises: Malformed."""
    return tuple(_allowed(line.lower()) for line in lines)


def _allowed(line: str) -> AllowedHost:
    star = "*." if line.startswith("*.") else ""
    host, port = _place(line.removeprefix(star), line)
    if star and (_NAME.fullmatch(host) is None or _NUMERIC.fullmatch(host) is not None):
        raise Malformed(f"{line[:200]!r}: a * stands before a domain, such as *.corp.example")
    return AllowedHost(host=star + host, port=port)


def _split(text: str) -> SplitResult:
    if _URL.fullmatch(text) is None or len(text) > URL_LENGTH_MAX:
        raise Malformed(
            f"{text[:200]!r} is not an address: write it like https://hooks.example.org/path, "
            f"in at most {URL_LENGTH_MAX} ASCII characters without spaces"
        )
    try:
        return urlsplit(text)
    except ValueError as error:
        raise Malformed(f"{text[:200]!r} is not an address: {error}") from error


def _place(place: str, text: str) -> tuple[str, int | None]:
    """A host, checked, and its port if there is one. Raises: Malformed."""
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]]*))(?::([0-9]{1,5}))?", place)
    if found is None:
        raise Malformed(
            f"{text[:200]!r} names no host that can be understood: write HOST or HOST:PORT"
        )
    port = None if found[3] is None else int(found[3])
    if port is not None and not 1 <= port <= _PORT_MAX:
        raise Malformed(f"{text[:200]!r} has no possible port: give 1 to {_PORT_MAX}")
    host = (found[1] or found[2]).lower().removesuffix(".")
    return _host(host, text, is_v6=found[1] is not None), port


def _host(host: str, text: str, *, is_v6: bool) -> str:
    try:
        address = str(ip_address(host))
    except ValueError:
        pass
    else:
        if is_v6 == (":" in address):
            return address
    if is_v6 or _NUMERIC.fullmatch(host) is not None:
        raise Malformed(
            f"{text[:200]!r} spells an address unusually: write it like 192.0.2.1 or [2001:db8::1]"
        )
    if len(host) > _NAME_LENGTH_MAX or _NAME.fullmatch(host) is None:
        raise Malformed(f"{text[:200]!r} names no host: use letters, digits, dots and dashes")
    return host
