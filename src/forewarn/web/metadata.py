"""The guests' endpoint, without a socket: what a request asks for, and what it is answered.

Rule 1: `decide` looks at the request alone, so that its outcome can be remembered.
Rule 2: who is calling and what is true now come in with `answer`, anew for each request.

The order of the checks, first refusal wins: a target that is no path; X-Forwarded-For; a repeated
query parameter; the Metadata header; the path; the method; the api-version; `wait`. The header
comes before the path because Azure's front end asks for it first. Whoever is no machine of the
fleet is turned away whatever it asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from forewarn.errors import Conflict, ForewarnError, Malformed, Refused, Unavailable, UnknownEvent
from forewarn.ports.identities import Caller
from forewarn.service.board import Posting
from forewarn.service.desk import Desk
from forewarn.web.messages import Ending, Reply, Request
from forewarn.wire import instance, refusals, scheduled_events, versions
from forewarn.wire.refusals import Refusal
from forewarn.wire.versions import Unsupported, Version

WAIT_MAX: Final = timedelta(seconds=300)
PARAMETERS_MAX: Final = 64
# What is asked is written down, but not whatever somebody likes to send.
NOTED_MAX: Final = 200

# Names of routes, for the counters; "other" is whatever does not exist.
SCHEDULED_EVENTS: Final = "scheduledevents"
INSTANCE: Final = "instance"
VERSIONS: Final = "versions"
OTHER: Final = "other"

_VERSION: Final = "api-version"
_INSTANCE_PATH: Final = "/metadata/instance"
_NOW: Final = timedelta()
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_NOT_A_PATH: Final = refusals.malformed("The target is not a path: ask directly, not by a proxy")
_TOO_MANY_PARAMETERS: Final = refusals.malformed("Too many query parameters")


@dataclass(frozen=True, slots=True)
class Manners:
    """What we put up with, beyond what Azure promises to put up with."""

    # Many samples approve without the Metadata header, which the documents forbid since 2017-08-01.
    lenient_post: bool = False


STRICT: Final = Manners()


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """Show the document; if it is the one that the guest knows, wait for another for a while."""

    version: Version
    if_none_match: str | None = None
    wait: timedelta = _NOW
    # The version's name: asking a member of an Enum for it is felt where thousands are told at once.
    form: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "form", self.version.name)


# Show it, whatever the guest knows.
UNCONDITIONAL: Final = {version: ReadDocument(version) for version in Version}


@dataclass(frozen=True, slots=True)
class StartEvents:
    """Approve the events that the body names."""


@dataclass(frozen=True, slots=True)
class ReadInstance:
    """Show what the caller is, or a part of it."""

    path: tuple[str, ...]
    version: str
    form: str | None


@dataclass(frozen=True, slots=True)
class ReadVersions:
    """Show the general list of api-versions."""


Action: TypeAlias = ReadDocument | StartEvents | ReadInstance | ReadVersions | Refusal


@dataclass(frozen=True, slots=True)
class Decision:
    """All that follows from a request's bytes alone."""

    method: str
    route: str
    action: Action
    ending: Ending
    # The name of the api-version, if the document is asked for without any condition.
    plain: str | None = None
    # As they were sent, whatever became of it; for whoever keeps a book.
    path: str = ""
    api_version: str | None = None


def decide(request: Request, manners: Manners = STRICT) -> Decision:
    """What a request asks for, whoever sent it."""
    path, _, query = request.target.partition("?")
    route = _route(path.lower())
    action = _action(request, route, manners)
    return Decision(
        request.method,
        route,
        action,
        _ending(request),
        _plain(action),
        path[:NOTED_MAX],
        _sent_version(query),
    )


def answer(
    decision: Decision, caller: Caller, desk: Desk, *, subscription_id: str, body: bytes = b""
) -> Reply:
    """The reply to a machine of the fleet. Total: whatever is asked, the guest gets a reply.

    Approving commits, so that this may take a while; anything else is answered from memory.
    """
    match decision.action:
        case ReadDocument() as action:
            return read(action, desk.posting(caller))
        case StartEvents():
            (reply,) = start_each([(caller, body)], desk)
            if isinstance(reply, Exception):
                raise reply
            return reply
        case ReadInstance() as action:
            return _instance(action, caller, desk.posting(caller), subscription_id)
        case ReadVersions():
            return Reply(200, instance.dump_versions())
        case Refusal() as refusal:
            return refused(refusal)


def read(action: ReadDocument, posting: Posting) -> Reply:
    """The document, or word that the guest knows it."""
    tag = (("ETag", scheduled_events.etag(posting.document.incarnation)),)
    if is_known(action, posting):
        return Reply(304, headers=tag)
    return Reply(200, posting.body(action.version), headers=tag)


def is_known(action: ReadDocument, posting: Posting) -> bool:
    """Whether the guest says that it has this document already."""
    return action.if_none_match is not None and scheduled_events.matches(
        action.if_none_match, posting.document.incarnation
    )


def refused(refusal: Refusal) -> Reply:
    """A refusal as a reply."""
    return Reply(refusal.status, refusal.body, headers=refusal.headers)


def _route(path: str) -> str:
    match path.removesuffix("/"):
        case "/metadata/scheduledevents":
            return SCHEDULED_EVENTS
        case "/metadata/versions":
            return VERSIONS
        case _ if path == _INSTANCE_PATH or path.startswith(f"{_INSTANCE_PATH}/"):
            return INSTANCE
        case _:
            return OTHER


def _plain(action: Action) -> str | None:
    match action:
        case ReadDocument(form=form, if_none_match=None) if not action.wait:
            return form
        case _:
            return None


def _sent_version(query: str) -> str | None:
    """The first api-version that a query names, if it can be read at all."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
    except ValueError:
        return None
    return next((value[:NOTED_MAX] for name, value in pairs if name.lower() == _VERSION), None)


def _ending(request: Request) -> Ending:
    tokens = ",".join(request.values("connection")).lower().split(",")
    if request.http_version != "1.1" or "close" in (token.strip() for token in tokens):
        return Ending.CLOSE
    return Ending.KEEP_ALIVE


def _action(request: Request, route: str, manners: Manners) -> Action:
    path, _, query = request.target.partition("?")
    if not path.startswith("/"):
        return _NOT_A_PATH
    if request.values("x-forwarded-for"):
        return refusals.FORWARDED
    parameters = _parameters(query)
    if isinstance(parameters, Refusal):
        return parameters
    version = parameters.get(_VERSION)
    if not _has_header(request) and not _is_excused(request, route, version, manners):
        return refusals.NO_METADATA_HEADER
    return _ACTIONS[route](request, parameters)


def _parameters(query: str) -> dict[str, str] | Refusal:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
    except ValueError:
        return _TOO_MANY_PARAMETERS
    parameters: dict[str, str] = {}
    for name, value in pairs:
        if name.lower() in parameters:
            return refusals.repeated_parameter(name)
        parameters[name.lower()] = value
    return parameters


def _has_header(request: Request) -> bool:
    # The header proves that no redirect and no careless proxy made this request.
    values = request.values("metadata")
    return bool(values) and all(value.strip().lower() == "true" for value in values)


def _is_excused(request: Request, route: str, version: str | None, manners: Manners) -> bool:
    if route != SCHEDULED_EVENTS:
        return False
    named = versions.classify(version)
    if isinstance(named, Unsupported):
        return False
    return not versions.enforces_header(named) or (
        manners.lenient_post and request.method == "POST"
    )


def _ask_scheduled_events(request: Request, parameters: Mapping[str, str]) -> Action:
    if request.method not in ("GET", "POST"):
        return refusals.method_not_allowed("GET", "POST")
    version = versions.classify(parameters.get(_VERSION))
    if version is Unsupported.MALFORMED:
        return refusals.BAD_VERSION
    if version is Unsupported.UNKNOWN:
        return refusals.UNKNOWN_VERSION
    # Microsoft's sample for Node sends If-None-Match with POST too; there it means nothing.
    if request.method == "POST":
        return StartEvents()
    wait = parameters.get("wait", "0")
    if not _SECONDS.fullmatch(wait) or timedelta(seconds=int(wait)) > WAIT_MAX:
        return refusals.BAD_WAIT
    tags = request.values("if-none-match")
    return ReadDocument(version, ", ".join(tags) if tags else None, timedelta(seconds=int(wait)))


def _ask_instance(request: Request, parameters: Mapping[str, str]) -> Action:
    if request.method != "GET":
        return refusals.method_not_allowed("GET")
    version = parameters.get(_VERSION)
    if version is None or not versions.is_instance_version(version):
        return refusals.BAD_VERSION
    path = request.target.partition("?")[0][len(_INSTANCE_PATH) :]
    return ReadInstance(tuple(path.split("/")[1:]), version, parameters.get("format"))


def _ask_versions(request: Request, _: Mapping[str, str]) -> Action:
    return ReadVersions() if request.method == "GET" else refusals.method_not_allowed("GET")


def _ask_other(_: Request, __: Mapping[str, str]) -> Action:
    return refusals.NO_SUCH_PATH


_ACTIONS: Final[Mapping[str, Callable[[Request, Mapping[str, str]], Action]]] = {
    SCHEDULED_EVENTS: _ask_scheduled_events,
    INSTANCE: _ask_instance,
    VERSIONS: _ask_versions,
    OTHER: _ask_other,
}


def start_each(asked: Sequence[tuple[Caller, bytes]], desk: Desk) -> list[Reply | Exception]:
    """The replies to several approvals, which are committed together; a bug costs one answer."""
    replies: dict[int, Reply | Exception] = {}
    named: dict[int, tuple[Caller, tuple[str, ...]]] = {}
    for place, (caller, body) in enumerate(asked):
        try:
            named[place] = (caller, scheduled_events.load_start_requests(body))
        except ForewarnError as error:
            replies[place] = refused(refusal_of(error))
    errors = desk.approve_each(list(named.values()))
    for (place, (caller, event_ids)), outcome in zip(named.items(), errors, strict=True):
        replies[place] = _started(caller, event_ids, outcome, desk)
    return [replies[place] for place in range(len(asked))]


def _started(
    caller: Caller, event_ids: tuple[str, ...], error: Exception | None, desk: Desk
) -> Reply | Exception:
    match error:
        case None:
            return Reply(200)
        case UnknownEvent():
            ledger = desk.posting(caller).ledger
            unknown = (event_id for event_id in event_ids if ledger.find(event_id) is None)
            return refused(refusals.unknown_event(next(unknown, event_ids[0])))
        case ForewarnError():
            return refused(refusal_of(error))
        case _:
            return error


def refusal_of(error: ForewarnError) -> Refusal:
    """What a guest is told of an error."""
    match error:
        case Malformed() | Refused():
            return refusals.malformed(str(error))
        case Conflict() | Unavailable():
            return refusals.STORE_AWAY
        case _:
            raise AssertionError(f"{type(error).__name__} belongs to no family") from error


def _instance(
    action: ReadInstance, caller: Caller, posting: Posting, subscription_id: str
) -> Reply:
    machine = posting.scope.machine(caller.machine)
    if machine is None:
        return refused(refusals.NO_SUCH_PATH)
    root = instance.instance(posting.scope, machine, subscription_id=subscription_id)
    shown = instance.render(root, action.path, version=action.version, form=action.form)
    if isinstance(shown, Refusal):
        return refused(shown)
    return Reply(200, shown.body, shown.media_type)
