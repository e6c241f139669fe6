"""What may be answered to a hostile exchange, and what of it was answered.

Theory: h11 reads the same bytes on its own, as a server without limits, and tells where each request
ends; another h11, as a client, reads the answers. An answer to a request that h11 does not see is
a smuggled one, and a request without an answer, on a connection that nobody closed, is lost.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import h11

from forewarn.errors import Malformed
from forewarn.testing.hostility import Exchange, Farewell
from forewarn.web import metadata
from forewarn.web.messages import Ending, Request
from forewarn.web.metadata import Decision, ReadDocument, StartEvents
from forewarn.wire import scheduled_events
from forewarn.wire.refusals import Refusal

# What is said to something that is no request, or too much of one, before hanging up.
REFUSALS: Final = frozenset({400, 408, 413, 414, 429, 431})
STRANGER: Final = 403
_ANYTHING: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Asked:
    """One whole request."""

    request: Request
    decision: Decision
    body: bytes

    @property
    def is_last(self) -> bool:
        return self.decision.ending is Ending.CLOSE

    @property
    def statuses(self) -> frozenset[int]:
        """What may be answered to a machine of the fleet."""
        match self.decision.action:
            case Refusal(status=status):
                return frozenset({status})
            case ReadDocument(if_none_match=tags):
                return frozenset({200} if tags is None else {200, 304})
            case StartEvents():
                return frozenset({200, 400} if self.event_ids else {400})
            case _:
                return frozenset({200, 400, 404})

    @property
    def event_ids(self) -> tuple[str, ...]:
        """The events that this approves, if it is an approval."""
        if not isinstance(self.decision.action, StartEvents):
            return ()
        try:
            return scheduled_events.load_start_requests(self.body)
        except Malformed:
            return ()


@dataclass(frozen=True, slots=True)
class Reading:
    """The whole requests in some bytes, up to the last on their connection."""

    asked: tuple[Asked, ...]
    # Whether what follows can never become a request.
    is_broken: bool
    # Whether it ends within a request.
    is_cut_off: bool
    # What may be said to a request without an end, instead of leave to send its body.
    denials: frozenset[int]


def reading(sent: bytes) -> Reading:
    """What h11 makes of these bytes."""
    asked: list[Asked] = []
    heads: list[h11.Request] = []
    is_broken = False
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_ANYTHING)
    connection.receive_data(sent)
    try:
        while (one := _next_request(connection, heads)) is not None:
            asked.append(one)
            if connection.their_state is h11.MUST_CLOSE or one.is_last:
                break
            connection.send(h11.Response(status_code=400, headers=[("Content-Length", "0")]))
            connection.send(h11.EndOfMessage())
            connection.start_next_cycle()
    except h11.RemoteProtocolError:
        is_broken = True
    is_cut_off = not is_broken and connection.their_state is not h11.DONE
    return Reading(
        tuple(asked),
        is_broken,
        is_cut_off and _has_begun(connection),
        _denials(heads[-1]) if len(heads) > len(asked) else frozenset(),
    )


def _denials(head: h11.Request) -> frozenset[int]:
    """Why the guest may be denied leave to send a body; whatever it sends then is not looked at."""
    action = _asked(head, b"").decision.action
    expects = any(
        name == b"expect" and value.lower() == b"100-continue" for name, value in head.headers
    )
    return frozenset({action.status} if expects and isinstance(action, Refusal) else ())


def _has_begun(connection: h11.Connection) -> bool:
    return connection.their_state is h11.SEND_BODY or bool(connection.trailing_data[0])


def _next_request(connection: h11.Connection, heads: list[h11.Request]) -> Asked | None:
    head: h11.Request | None = None
    body = b""
    while True:
        event = connection.next_event()
        match event:
            case h11.Request():
                head = event
                heads.append(event)
            case h11.Data(data=data):
                body += bytes(data)
            case h11.EndOfMessage():
                assert head is not None, "an end has a beginning"
                return _asked(head, body)
            case _:
                return None


def _asked(head: h11.Request, body: bytes) -> Asked:
    request = Request(
        head.method.decode("ascii"),
        head.target.decode("ascii"),
        tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in head.headers),
        head.http_version.decode("ascii"),
    )
    return Asked(request, metadata.decide(request), body)


@dataclass(frozen=True, slots=True)
class Answer:
    """One response, as a strict client reads it."""

    status: int
    body: bytes
    closes: bool


class AnswerReader:
    """Reads responses as strictly as h11 does. Raises: h11.RemoteProtocolError."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        self._methods = [one.request.method for one in asked]
        self.answers: list[Answer] = []
        self._begin(b"")

    def _begin(self, rest: bytes) -> None:
        number = len(self.answers)
        method = self._methods[number] if number < len(self._methods) else "GET"
        self._client = h11.Connection(h11.CLIENT)
        self._client.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
        self._client.send(h11.EndOfMessage())
        self._head: h11.Response | None = None
        self._body = b""
        self._is_begun = bool(rest)
        if rest:
            self._client.receive_data(rest)

    @property
    def is_between(self) -> bool:
        """Whether every answer that has begun is whole."""
        return not self._is_begun

    def feed(self, data: bytes) -> None:
        """Take in what arrived."""
        self._is_begun = True
        self._client.receive_data(data)
        while True:
            event = self._client.next_event()
            match event:
                case h11.Response():
                    self._head = event
                case h11.Data(data=piece):
                    self._body += bytes(piece)
                case h11.EndOfMessage():
                    self._end()
                    if not self._is_begun:
                        return
                case h11.InformationalResponse():
                    # A guest who has leave to send, and goes instead, is owed nothing more.
                    self._is_begun = bool(self._client.trailing_data[0])
                case _:
                    return

    def _end(self) -> None:
        assert self._head is not None, "an end has a beginning"
        names = dict(self._head.headers)
        closes = names.get(b"connection") == b"close"
        rest = bytes(self._client.trailing_data[0])
        status = self._head.status_code
        if closes and status in REFUSALS and not self._body:
            # A HEAD that was refused before it was read to its end may be told why at length.
            rest = rest[int(names.get(b"content-length", b"0")) :]
        self.answers.append(Answer(status, self._body, closes))
        self._begin(rest)


class Outcome:
    """How a connection came to its end, as the guest saw it."""

    def __init__(self, exchange: Exchange, *, is_stranger: bool = False) -> None:
        self.exchange = exchange
        self.is_stranger = is_stranger
        self._reading = reading(exchange.sent)
        self.asked = self._reading.asked
        self._reader = AnswerReader(self.asked)
        self.complaint: str | None = None
        # Whether the server closed, in good order or not.
        self.is_hung_up = False
        self.is_reset = False
        self.is_too_late = False

    @property
    def answers(self) -> Sequence[Answer]:
        return self._reader.answers

    @property
    def is_answered(self) -> bool:
        """Whether there is nothing more to wait for than that the server hangs up."""
        return len(self.answers) >= len(self.asked) + self._reading.is_broken

    @property
    def is_idle(self) -> bool:
        """Whether the server, too, waits for what the guest will do next."""
        return self.is_answered and not self.says_close and not self._reading.is_cut_off

    @property
    def says_close(self) -> bool:
        return bool(self.answers) and self.answers[-1].closes

    def hear(self, data: bytes) -> None:
        """Take in what arrived."""
        try:
            self._reader.feed(data)
        except h11.ProtocolError as error:
            self.complaint = self.complaint or f"not an HTTP response: {error}: {data[-500:]!r}"

    def verdict(self) -> str | None:
        """What is wrong with it; None if nothing is."""
        return self.complaint or self._framing() or self._statuses() or self._completeness()

    def _framing(self) -> str | None:
        if self.is_too_late:
            return "neither answered nor closed in time"
        if any(answer.closes for answer in self.answers[:-1]):
            return "an answer after the last one"
        extra = len(self.answers) - len(self.asked)
        refusals = {*REFUSALS, STRANGER, *self._reading.denials}
        is_refusal = self.says_close and self.answers[-1].status in refusals
        if extra > int(is_refusal):
            return f"{len(self.answers)} answers to {len(self.asked)} requests"
        if self.is_reset and self.exchange.is_heard_out and not self.says_close:
            return "cut off without a word"
        if not self._reader.is_between and self.is_hung_up and not self.is_reset:
            return "half an answer"
        return None

    def _statuses(self) -> str | None:
        for number, answer in enumerate(self.answers):
            asked = self.asked[number] if number < len(self.asked) else None
            may = asked.statuses if asked is not None else self._reading.denials
            if self.is_stranger:
                may = frozenset({STRANGER})
            if answer.status not in may and not (answer.closes and answer.status in REFUSALS):
                return f"answer {number} is {answer.status}, not one of {sorted(may)}"
            if answer.status >= 400 and answer.body and "error" not in json.loads(answer.body):
                return f"answer {number} does not say why"
        return None

    def _completeness(self) -> str | None:
        if not self.exchange.is_heard_out or self.is_reset or self.says_close:
            return None
        if self._reading.is_broken:
            return "what can never become a request was not refused"
        if len(self.answers) >= len(self.asked):
            return None
        action = self.asked[len(self.answers)].decision.action
        # Who hangs up while waiting for news is taken for gone.
        waits = isinstance(action, ReadDocument) and bool(action.wait)
        if waits and self.exchange.farewell is Farewell.FINISH:
            return None
        return f"{len(self.answers)} answers to {len(self.asked)} requests, and no reason why"
