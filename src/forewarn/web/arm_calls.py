"""What all of Azure Resource Manager's calls have in common.

Every call names an api-version, any one, and nearly every one a subscription, the one there is;
lists come in pages; what takes its time is answered 202 with the address of an operation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

from forewarn.core.operations import Operation
from forewarn.core.rights import Right
from forewarn.core.scopes import Enabling
from forewarn.errors import (
    Conflict,
    Forbidden,
    ForewarnError,
    Malformed,
    Refused,
    Unavailable,
    Unknown,
)
from forewarn.service.desk import Desk
from forewarn.service.operations import Operations
from forewarn.service.registrar import Registrar
from forewarn.web.calls import Answer, Call
from forewarn.web.routes import Route
from forewarn.wire import arm, arm_frames
from forewarn.wire.arm import Json, Names

# The first parts of the paths, as routes spell them.
SUBSCRIPTION: Final = "/subscriptions/{subscription}"
GROUP: Final = f"{SUBSCRIPTION}/resourceGroups/{{group}}"
COMPUTE: Final = f"{GROUP}/providers/Microsoft.Compute"
ALL_COMPUTE: Final = f"{SUBSCRIPTION}/providers/Microsoft.Compute"

PAGE_DEFAULT: Final = 100
PAGE_MAX: Final = 1000
PARAMETERS_MAX: Final = 30
# azure-core sleeps half a minute between polls where this is absent, or 0.
RETRY_AFTER: Final = ("Retry-After", "1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmParts:
    """What the owners' API stands on."""

    desk: Desk
    registrar: Registrar
    operations: Operations
    subscription_id: str
    tenant_id: str
    # When new scopes are told of events.
    enabling: Enabling = Enabling.ON_REQUEST

    @property
    def names(self) -> Names:
        return Names(self.subscription_id)


Handler = Callable[[ArmParts, Call], Answer]
Shown = tuple[str, Callable[[], Json]]


class Saying(Refused):
    """A refusal for which Azure has a status and a code of its own."""

    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


# The narrower family first: an Unknown is a Refused too.
CODE_OF: Final[Mapping[type[ForewarnError], tuple[HTTPStatus, str]]] = {
    Malformed: (HTTPStatus.BAD_REQUEST, "InvalidRequestContent"),
    Unknown: (HTTPStatus.NOT_FOUND, "ResourceNotFound"),
    Forbidden: (HTTPStatus.FORBIDDEN, "AuthorizationFailed"),
    Refused: (HTTPStatus.CONFLICT, "OperationNotAllowed"),
    Conflict: (HTTPStatus.CONFLICT, "Conflict"),
    Unavailable: (HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable"),
}


def route(parts: ArmParts, method: str, path: str, right: Right, handler: Handler) -> Route:
    """A route of the owners' API."""
    handle = partial(_within, parts, handler)
    return Route(method=method, path=path, right=right, handle=handle, refused=refused)


def refused(refusal: ForewarnError) -> Answer:
    """The answer that Azure's clients understand."""
    if isinstance(refusal, Saying):
        return fault(refusal.status, refusal.code, str(refusal))
    for family, (status, code) in CODE_OF.items():
        if isinstance(refusal, family):
            wait = (RETRY_AFTER,) if status is HTTPStatus.SERVICE_UNAVAILABLE else ()
            return fault(status, code, str(refusal), *wait)
    raise AssertionError(f"{type(refusal).__name__} belongs to no family") from refusal


def fault(status: HTTPStatus, code: str, message: str, *headers: tuple[str, str]) -> Answer:
    """An answer that says why not."""
    return shown(arm_frames.fault(code, message), status, *headers)


def _within(parts: ArmParts, handler: Handler, call: Call) -> Answer:
    """Answer a call within the one subscription, of whichever api-version."""
    if not query(call).get("api-version"):
        raise Saying(
            HTTPStatus.BAD_REQUEST,
            "MissingApiVersionParameter",
            "The api-version query parameter (?api-version=) is required for all requests.",
        )
    asked = call.names.get("subscription", parts.subscription_id)
    if asked.lower() != parts.subscription_id.lower():
        raise Saying(
            HTTPStatus.NOT_FOUND,
            "SubscriptionNotFound",
            f"The subscription '{asked}' could not be found.",
        )
    return handler(parts, call)


# -- what is asked ---------------------------------------------------------------------------


def query(call: Call) -> dict[str, str]:
    """The parameters of a call, by name in lower case; nobody minds those that mean nothing."""
    try:
        pairs = parse_qsl(
            call.query, keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX
        )
    except ValueError as problem:
        raise Malformed(f"the query cannot be understood: {problem}") from problem
    return {name.lower(): value for name, value in pairs}


def wants_view(call: Call) -> bool:
    """Whether the state of machines is to be shown as well."""
    asked = query(call)
    is_expanded = "instanceview" in asked.get("$expand", "").lower()
    return is_expanded or asked.get("statusonly", "").lower() == "true"


# -- what is answered ------------------------------------------------------------------------


def shown(form: object, status: HTTPStatus = HTTPStatus.OK, *headers: tuple[str, str]) -> Answer:
    """An answer in Azure's JSON."""
    return Answer(status=status, body=arm.dump(form), headers=headers)


def nothing(status: HTTPStatus = HTTPStatus.OK) -> Answer:
    """An answer that says it all by its status."""
    return Answer(status=status)


def listed(call: Call, found: Iterable[Shown]) -> Answer:
    """A page of what was found, which is sorted by its keys, and the address of the next one."""
    asked = query(call)
    after, size = asked.get("$skiptoken", ""), _page_size(asked.get("$top"))
    rest = (one for one in found if one[0] > after)
    page = list(islice(rest, size))
    form: Json = {"value": [show() for _, show in page]}
    if next(rest, None) is not None:
        again = {**asked, "$skiptoken": page[-1][0]}
        form["nextLink"] = f"{call.base}{quote(call.path)}?{urlencode(again)}"
    return shown(form)


def _page_size(text: str | None) -> int:
    if text is None:
        return PAGE_DEFAULT
    # Bounded before it is read: a number of thousands of digits cannot be.
    if re.fullmatch(r"[0-9]{1,9}", text) is None or not 1 <= int(text) <= PAGE_MAX:
        raise Malformed(f"$top is a whole number from 1 to {PAGE_MAX}, not {text[:50]!r}")
    return int(text)


def accepted(parts: ArmParts, call: Call, operation: Operation) -> Answer:
    """To a POST or DELETE that goes on: where its progress is told."""
    status, monitor = _addresses(parts, call, operation)
    headers = (("Azure-AsyncOperation", status), ("Location", monitor), RETRY_AFTER)
    return Answer(status=HTTPStatus.ACCEPTED, headers=headers)


def progressing(parts: ArmParts, call: Call, operation: Operation, form: Json) -> Answer:
    """To a PUT or PATCH that goes on. Without a Location: az reads a resource from there."""
    status, _ = _addresses(parts, call, operation)
    return shown(form, HTTPStatus.OK, ("Azure-AsyncOperation", status), RETRY_AFTER)


def _addresses(parts: ArmParts, call: Call, operation: Operation) -> tuple[str, str]:
    """Where an operation's status is, and where its result will be; absolute, as the caller sees us."""
    version = quote(query(call)["api-version"], safe="")
    where = arm.LOCATION_DEFAULT
    root = f"{call.base}{parts.names.root}/providers/Microsoft.Compute/locations/{where}"
    address = f"{root}/operations/{operation.id}"
    return (
        f"{address}?api-version={version}",
        f"{address}?monitor=true&api-version={version}",
    )
