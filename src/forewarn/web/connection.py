"""One guest's connection: bytes in, decisions up; bytes down, bytes out. It never waits.

Theory: a request is answered before the next one is looked at, in the order of their arrival.
What arrives meanwhile is kept, within limits. A connection that is refused in the middle of a
request lingers: closing a socket with unread bytes would reset it, and the guest might never
read why.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from forewarn.web import metadata
from forewarn.web.allowances import BODY, PARSING, Allowance
from forewarn.web.gate import Admission, Gate
from forewarn.web.hall import Hall, Link
from forewarn.web.hatch import Answer
from forewarn.web.limits import Limits
from forewarn.web.memo import Heads, Memo
from forewarn.web.messages import Ending
from forewarn.web.metadata import Decision, Manners
from forewarn.web.parsing import Progress, RequestParser
from forewarn.web.phases import Phase
from forewarn.web.responses import CONTINUE
from forewarn.wire import refusals
from forewarn.wire.refusals import Refusal

# Looking a member up costs more than comparing it, and the quick way compares for every request.
_IDLE: Final = Phase.IDLE
_ANSWERING: Final = Phase.ANSWERING
_CLOSE: Final = Ending.CLOSE
_NEVER: Final = math.inf
_PARSING: Final = (Phase.IDLE, Phase.HEAD, Phase.BODY)


class Reception(Protocol):
    """What a connection needs from its server."""

    limits: Limits
    manners: Manners
    memo: Memo[Decision]
    heads: Heads
    gate: Gate
    # Of the memo.
    recall: Callable[[bytes], Decision | None]

    def admit(self, connection: Connection) -> Admission:
        """Count a new connection, and say whether it is served."""
        ...

    def take(self, connection: Connection, decision: Decision, body: bytes) -> None:
        """Answer a request, now or later."""
        ...

    def refuse(self, connection: Connection, refusal: Refusal) -> None:
        """Answer what is no request."""
        ...

    def end_wait(self, connection: Connection) -> None:
        """Answer a long poll whose time is over."""
        ...

    def forget(self, connection: Connection) -> None:
        """Take note that a connection is over."""
        ...


class Connection(Link):
    """The state of one connection."""

    __slots__ = (
        "_ahead",
        "_answer",
        "_at_eof",
        "_deaf",
        "_gate",
        "_in_line",
        "_parser",
        "_recall",
        "_reception",
        "address",
        "allowance",
        "deadline",
        "is_known",
        "is_last",
        "listener",
        "phase",
    )

    def __init__(
        self,
        hall: Hall,
        descriptor: int,
        reception: Reception,
        answer: Answer,
        listener: str,
        address: str,
    ) -> None:
        super().__init__(hall, descriptor)
        self._reception = reception
        self._answer = answer
        self._recall = reception.recall
        self._gate = reception.gate
        self._parser: RequestParser | None = None
        self._ahead = b""
        self._at_eof = False
        # We do not read what the guest sends.
        self._deaf = False
        # What is in `_ahead` waits for its turn, not for an answer.
        self._in_line = False
        # Set by the gate, before anything arrives.
        self.allowance: Allowance
        self.listener = listener
        self.address = address
        self.deadline = self._gate.idle_by
        self.phase = Phase.IDLE
        # Whether it was a machine of the fleet that connected.
        self.is_known = False
        # Whether the next answer is the last one, whatever the guest wishes.
        self.is_last = False

    @property
    def place(self) -> tuple[str, str]:
        """Where it comes from: for everybody there, one quota."""
        return self.listener, self.address

    # -- what the network does ---------------------------------------------------------------

    def begin(self, said: bytes) -> None:
        """Be admitted or not, and take what was read before there was a connection."""
        admission = self._reception.admit(self)
        if admission is Admission.TOO_MANY:
            self._reception.refuse(self, refusals.THROTTLED)
        elif admission is Admission.SHUT_OUT:
            self.abort()
        elif said:
            self.data_received(said)
        self.settle()

    def data_received(self, data: bytes) -> None:
        # This is the way that nearly all requests take; it is written out for the sake of speed.
        allowance = self.allowance
        left = allowance.left = allowance.left - 1
        if self.phase is _IDLE and not self._in_line and (left >= 0 or allowance.renew()):
            # Calling what is no method by way of its owner would look for a method first.
            recall = self._recall
            decision = recall(data)
            if decision is not None:
                if not self.is_last:
                    answer = self._answer
                    response = answer(decision, self.address)
                    if response is not None:
                        self.write(response)
                        if decision.ending is _CLOSE or self.is_congested:
                            self._after(decision.ending)
                        else:
                            self.deadline = self._gate.idle_by
                        return
                self.phase = _ANSWERING
                self._reception.take(self, decision, b"")
                return
        self._receive(data)

    def eof_received(self) -> bool:
        # Some guests say that they are done as soon as they have asked: they still get an answer.
        self._at_eof = True
        is_asking = self._in_line and self.phase in _PARSING
        if self.phase not in (Phase.ANSWERING, Phase.DRAINING) and not is_asking:
            return False
        self.is_last = self.is_last or not self._ahead
        return True

    def connection_lost(self) -> None:
        self._reception.forget(self)
        self.phase = Phase.CLOSED
        self._parser = None
        self._ahead = b""

    def relieved(self) -> None:
        if self.phase is Phase.DRAINING:
            self.allowance.line_up(self)

    # -- what the server does ----------------------------------------------------------------

    def send(self, response: bytes, ending: Ending) -> None:
        """Send the answer to the request at hand."""
        if self.phase is Phase.CLOSED:
            return
        self.write(response)
        self._after(ending)

    def send_off(self, response: bytes) -> None:
        """Send a last word, and listen no more."""
        if self.phase is Phase.CLOSED:
            return
        self.write(response)
        self._linger()

    def suspend(self) -> None:
        """The answer takes as long as it takes."""
        self.deadline = _NEVER

    def wait(self, until: float) -> None:
        """The answer comes with the next document, or at that time."""
        self.phase = Phase.WAITING
        self.deadline = until

    def expire(self) -> None:
        """End what has lasted too long."""
        match self.phase:
            case Phase.IDLE | Phase.HEAD | Phase.BODY if self._in_line:
                # It is we who are late: what has arrived is looked at first.
                pass
            case Phase.IDLE:
                self._close()
            case Phase.HEAD | Phase.BODY:
                self._refuse(refusals.TOO_SLOW)
            case Phase.WAITING:
                self._reception.end_wait(self)
            case _:
                self.abort()

    def retire(self) -> None:
        """Close as soon as what is under way is answered, or at once."""
        self.is_last = True
        if self.phase is Phase.IDLE and not self._in_line:
            self._close()

    def abort(self) -> None:
        """Drop the connection, whatever is under way."""
        self.deadline = _NEVER
        self.drop()

    # -- between the two ---------------------------------------------------------------------

    def _after(self, ending: Ending) -> None:
        """Go on after an answer."""
        if ending is _CLOSE:
            self._finish()
        elif self._ahead or self.is_congested:
            self.phase = Phase.DRAINING
            self.deadline = self._gate.write_by
            if not self.is_congested:
                # In a turn of its own: whoever sends much ahead does not hold up the others.
                self.allowance.line_up(self)
        else:
            self.phase = _IDLE
            self.deadline = self._gate.idle_by

    def _receive(self, data: bytes) -> None:
        self.allowance.charge_bytes(len(data))
        if self.phase in _PARSING:
            if self.allowance.left >= 0 and not self._in_line:
                self._parse(data)
            else:
                self._stand_in_line(data)
        elif self.phase in (Phase.ANSWERING, Phase.WAITING, Phase.DRAINING):
            self._ahead += data
            if len(self._ahead) > self._reception.limits.ahead_bytes_max:
                self._stop_hearing()
        elif self.allowance.left < 0:
            self._stand_in_line(b"")

    def _stand_in_line(self, data: bytes) -> None:
        """Look at this when it is the caller's turn again; hear no more than that until then."""
        self._ahead += data
        if self._in_line:
            self._stop_hearing()
        else:
            self._in_line = True
            self.allowance.line_up(self)

    def _stop_hearing(self) -> None:
        if not self._deaf:
            self._deaf = True
            self.pause()

    def _parse(self, data: bytes) -> None:
        self.allowance.left -= PARSING
        begins = self._parser is None
        known = self._reception.heads.recall(data) if begins else None
        if known is not None:
            self.allowance.left -= BODY
            self._pass_on(*known)
            return
        parser = self._parser = self._parser or RequestParser(self._reception.limits)
        match parser.feed(data):
            case Refusal() as refusal:
                self._refuse(refusal)
            case Progress.COMPLETE:
                self._complete(parser, data if begins else b"")
            case Progress.HEAD_INCOMPLETE:
                self._expect_more(Phase.HEAD, self._gate.head_by)
            case Progress.BODY_INCOMPLETE:
                begins_body = self.phase is not Phase.BODY
                self._expect_more(Phase.BODY, self._gate.body_by)
                if begins_body and parser.is_waiting_for_continue:
                    self._give_leave(parser)

    def _refuse(self, refusal: Refusal) -> None:
        # Whoever asked for a head takes a body for the beginning of the next answer.
        is_head = self._parser is not None and self._parser.method == b"HEAD"
        self._reception.refuse(self, replace(refusal, body=b"") if is_head else refusal)

    def _complete(self, parser: RequestParser, sent_at_once: bytes) -> None:
        assert parser.request is not None
        self._parser = None
        self._ahead = parser.rest
        if parser.has_body:
            self.allowance.left -= BODY
        decision = metadata.decide(parser.request, self._reception.manners)
        # Only what stands alone is remembered; what is part of something may be part of a trick.
        if sent_at_once and self.is_known and not self._ahead:
            if not parser.has_body:
                self._reception.memo.remember(sent_at_once, decision, by=self.place)
            elif not parser.is_chunked:
                body = parser.body
                self._reception.heads.remember(sent_at_once, body, decision, by=self.place)
        self._pass_on(decision, parser.body)

    def _pass_on(self, decision: Decision, body: bytes) -> None:
        self.is_last = self.is_last or (self._at_eof and not self._ahead)
        self.phase = Phase.ANSWERING
        self._reception.take(self, decision, body)

    def _expect_more(self, phase: Phase, deadline: float) -> None:
        if self._at_eof:
            self.end()
        # The time for a head or a body counts from its beginning, not from its latest byte.
        if self.phase is not phase:
            self.phase = phase
            self.deadline = deadline

    def _give_leave(self, parser: RequestParser) -> None:
        assert parser.request is not None
        decision = metadata.decide(parser.request, self._reception.manners)
        if isinstance(decision.action, Refusal):
            self._refuse(decision.action)
        else:
            self.write(CONTINUE)

    def go_on(self) -> None:
        """Look at what was sent ahead."""
        was_in_line, self._in_line = self._in_line, False
        if self.phase is Phase.DRAINING and not self.is_congested:
            self.phase = Phase.IDLE
            self.deadline = self._gate.idle_by
        elif not was_in_line:
            return
        elif self.phase not in _PARSING:
            self._hear_again()
            return
        data, self._ahead = self._ahead, b""
        if data:
            self._parse(data)
            # What was kept shrinks by one request a turn; more is read once there is room.
            if len(self._ahead) <= self._reception.limits.ahead_bytes_max:
                self._hear_again()
        elif self._at_eof or self.is_last:
            self._close()

    def _hear_again(self) -> None:
        if self._deaf and not self.is_over:
            self._deaf = False
            self.resume()

    def _finish(self) -> None:
        if self._ahead:
            self._linger()
        else:
            self._close()

    def _close(self) -> None:
        # Closing waits until the guest has read; not for ever.
        self.end()
        self.phase = Phase.LINGERING
        self.deadline = self._gate.write_by

    def _linger(self) -> None:
        self._parser = None
        self._ahead = b""
        self.phase = Phase.LINGERING
        self.deadline = self._gate.linger_by
        self._hear_again()
        if self._at_eof:
            self.end()
        else:
            self.shut()
