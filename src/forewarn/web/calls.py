"""One call of an operator and its answer, as values; and every way to say no.

What a caller must show, how large and how patient a call may be, and which status each family of
errors has are decided here. What can be asked for is in `routes` and the faces behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from forewarn.core import rights
from forewarn.core.journal import Actor
from forewarn.core.rights import Principal
from forewarn.errors import (
    Conflict,
    Forbidden,
    ForewarnError,
    Malformed,
    Refused,
    Unavailable,
    Unknown,
)
from forewarn.wire import control as wire
from forewarn.wire import control_forms as forms
from forewarn.wire.control_forms import Form

BODY_BYTES_MAX: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request of an operator, of an owner, or of something that watches the service."""

    method: str
    path: str
    query: str = ""
    body: bytes = b""
    address: str = ""
    # The service as the caller addressed it, such as https://localhost:8170.
    base: str = ""
    # Names are in lower case.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    # What the path names, by the route's own words.
    names: Mapping[str, str] = field(default_factory=dict)
    # What the query says, where the route describes what it may say.
    asked: Mapping[str, str] = field(default_factory=dict)
    # Who calls; None where anybody may.
    principal: Principal | None = None

    @property
    def actor(self) -> Actor:
        """Who calls, as the journal names it."""
        return rights.actor(self.caller, self.address)

    @property
    def caller(self) -> Principal:
        """Who calls, where a right was asked for."""
        assert self.principal is not None, "this takes a right, so somebody has it"
        return self.principal

    def sees(self, group: str | None) -> bool:
        """Whether a resource group concerns the caller; None is the service as a whole."""
        return rights.sees(self.caller, group)

    def insist(self, group: str | None) -> None:
        """Refuse whoever has no right to this resource group. Raises: Forbidden."""
        if not self.sees(group):
            name = "the service as a whole" if group is None else f"the resource group {group}"
            raise Forbidden(f"{self.caller.name} has no right to {name}")


@dataclass(frozen=True, slots=True)
class Later:
    """What to ask in a moment, for at most that long: there was nothing to tell."""

    call: Call
    wait: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """How an answer goes on while its reader stays: part by part, each asked for in its time."""

    call: Call
    # What to send when there was nothing to tell for a while.
    beat: bytes
    # Whether the next part is there for sure.
    is_behind: bool
    # Whether it may be; a guess from memory, so that nobody asks the store in vain.
    is_news: Callable[[], bool]
    # The next part; one without a stream is the last.
    more: Callable[[], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What to reply."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    later: Later | None = None
    stream: Stream | None = None


# The narrower family first: an Unknown is a Refused too.
STATUS_OF: Final[Mapping[type[ForewarnError], HTTPStatus]] = {
    Malformed: HTTPStatus.BAD_REQUEST,
    Unknown: HTTPStatus.NOT_FOUND,
    Forbidden: HTTPStatus.FORBIDDEN,
    Refused: HTTPStatus.CONFLICT,
    Conflict: HTTPStatus.SERVICE_UNAVAILABLE,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}


def bearer(headers: Mapping[str, str]) -> str:
    """The token that a caller shows; "" for none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def no_token(call: Call) -> Answer:
    """To whoever shows no token that is valid."""
    return error(
        HTTPStatus.UNAUTHORIZED,
        "AuthenticationFailed",
        "send `Authorization: Bearer` with a token of this service that is not over",
        ("WWW-Authenticate", f'Bearer authorization_uri="{call.base}/adfs"'),
    )


def no_right(reason: str) -> Answer:
    """To whoever may not ask this."""
    return error(HTTPStatus.FORBIDDEN, "AuthorizationFailed", f"{reason}: ask an operator")


def reply(form: Form, *, status: HTTPStatus = HTTPStatus.OK, later: Later | None = None) -> Answer:
    """An answer in our JSON."""
    return Answer(status=status, body=wire.dump(form), later=later)


def error(status: HTTPStatus, code: str, message: str, *headers: tuple[str, str]) -> Answer:
    """An answer that says why not."""
    form = forms.ErrorForm(error=forms.Fault(code=code, message=message))
    return Answer(status=status, body=wire.dump(form), headers=headers)


def too_large() -> Answer:
    """To a body that is not read to its end."""
    text = f"the body is larger than {BODY_BYTES_MAX} bytes"
    return error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Malformed", text)


def too_busy() -> Answer:
    """To a call beyond what is answered at one time."""
    return refused(Unavailable("too many calls at one time: try again"))


def too_many() -> Answer:
    """To a reader beyond those who may follow at one time."""
    text = "too many streams at one time: close one of yours, or try again later"
    status = HTTPStatus.TOO_MANY_REQUESTS
    return error(status, "TooManyStreams", text, ("Retry-After", "10"))


def refused(refusal: ForewarnError) -> Answer:
    """The answer that an error's family has."""
    for family, status in STATUS_OF.items():
        if isinstance(refusal, family):
            wait = (("Retry-After", "1"),) if status is HTTPStatus.SERVICE_UNAVAILABLE else ()
            return error(status, family.__name__, str(refusal), *wait)
    raise AssertionError(f"{type(refusal).__name__} belongs to no family") from refusal


def parameters(call: Call, *names: str) -> dict[str, str]:
    """The parameters of a call, each given once. Raises: Malformed."""
    try:
        pairs = parse_qsl(
            call.query, keep_blank_values=True, errors="strict", max_num_fields=len(names) + 1
        )
    except ValueError as problem:
        raise Malformed(f"the query cannot be understood: {problem}") from problem
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in names:
            known = f"there are {', '.join(names)}" if names else "there is none"
            raise Malformed(f"no parameter is called {name[:50]!r} here: {known}")
        if name in found:
            raise Malformed(f"{name} is given more than once")
        found[name] = value
    return found


def whole_number(
    asked: Mapping[str, str], name: str, *, default: int, least: int, most: int
) -> int:
    """A parameter that is a number within bounds. Raises: Malformed."""
    text = asked.get(name, str(default))
    if re.fullmatch(r"[0-9]{1,9}", text) is None or not least <= int(text) <= most:
        raise Malformed(f"{name} is a whole number from {least} to {most}, not {text[:50]!r}")
    return int(text)
