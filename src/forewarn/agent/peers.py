"""The other VMs: whether they are ready, or well, as their agents or a command of the owner's say.

Whoever decides is never kept waiting: `peers` says what is known, and has asked what is not. Questions go out in a few
threads, each at most about once a second and only while somebody wants to know; an answer counts for `STALE`, and no
answer is a no. The bell is rung when one makes a difference.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final, TypeAlias
from urllib.parse import quote

from forewarn.agent.inquiries import says_yes
from forewarn.agent.rules import Condition, Peers, Rule
from forewarn.agent.settings import PeerSettings
from forewarn.client.discovery import Endpoint, parse_endpoint
from forewarn.client.documents import Event
from forewarn.client.line import Line
from forewarn.client.messages import Answer, Request
from forewarn.errors import Malformed

# A little less than the second after which the agent looks again.
EVERY_SECONDS: Final = 0.9
STALE_SECONDS: Final = 3.0
THREADS_MAX: Final = 16
# What nobody has asked for so long is forgotten.
FORGOTTEN_SECONDS: Final = 60.0

_CONNECT: Final = timedelta(seconds=1)
_ANSWER: Final = timedelta(seconds=2)
_OK: Final = 200

_log: Final = logging.getLogger("forewarn.agent")


class Question(Enum):
    """What is asked of a peer."""

    # Whether it has made ready for the event.
    READY = "ready"
    # Whether it does its duty, with no event before it.
    HEALTHY = "healthy"


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One question to one peer."""

    # As the event, or the file, spells it.
    peer: str
    question: Question
    event_id: str


# Asks, and waits for the answer.
Ask: TypeAlias = Callable[[Inquiry], bool]


def asking(settings: PeerSettings, environment: Mapping[str, str]) -> Ask:
    """The way in which the settings have peers asked."""
    if settings.command is None:
        return HttpAsk(settings)
    return _by_command(settings.command, environment)


def _by_command(command: tuple[str, ...], environment: Mapping[str, str]) -> Ask:
    def ask(inquiry: Inquiry) -> bool:
        told = {
            "PEER": inquiry.peer,
            "EVENT_ID": inquiry.event_id,
            "QUESTION": inquiry.question.value,
        }
        return says_yes(command, {**environment, **told})

    return ask


class HttpAsk:
    """Asks the peers' agents at their endpoints."""

    def __init__(self, settings: PeerSettings) -> None:
        self._settings = settings
        self._unplaced: set[str] = set()

    def __call__(self, inquiry: Inquiry) -> bool:
        endpoint = self._endpoint(inquiry.peer)
        if endpoint is None:
            self._complain(inquiry.peer)
            return False
        is_about_event = inquiry.question is Question.READY
        query = f"?event={quote(inquiry.event_id, safe='')}" if is_about_event else ""
        with Line() as line:
            outcome = line.exchange(
                endpoint, Request(f"/readyz{query}"), connect=_CONNECT, patience=_ANSWER
            )
        return isinstance(outcome, Answer) and outcome.status == _OK

    def _endpoint(self, peer: str) -> Endpoint | None:
        url = dict(self._settings.urls).get(peer.casefold(), self._settings.url)
        try:
            return None if url is None else parse_endpoint(url.replace("{name}", peer))
        except Malformed:
            # A name that cannot be a host's.
            return None

    def _complain(self, peer: str) -> None:
        if peer not in self._unplaced:
            self._unplaced.add(peer)
            _log.warning("nothing says where the agent of %s is: name it in [peers.urls]", peer)


class AskedNeighborhood:
    """What the peers said, and who asks them."""

    def __init__(
        self,
        name: str,
        members: tuple[str, ...],
        ask: Ask,
        ring: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`ring` is called, in any thread, when something is known to be otherwise than it was."""
        self._name = name.casefold()
        self._members = members
        self._ask = ask
        self._ring = ring
        self._clock = clock
        self._lock = threading.Lock()
        # When each was last asked, and when each last said yes.
        self._asked: dict[Inquiry, float] = {}
        self._yes: dict[Inquiry, float] = {}
        self._pending: deque[Inquiry] = deque()
        self._under_way: set[Inquiry] = set()
        self._threads = 0

    def peers(self, event: Event, rule: Rule) -> Peers:
        wanted = tuple(self._wanted(event, rule))
        with self._lock:
            now = self._clock()
            self._forget(now)
            for inquiry in wanted:
                self._want(inquiry, now)
            known = {inquiry for inquiry in wanted if self._is_yes(inquiry, now)}
        return Peers(ready=_who(known, Question.READY), healthy=_who(known, Question.HEALTHY))

    def _wanted(self, event: Event, rule: Rule) -> Iterator[Inquiry]:
        hit = {one.casefold(): one for one in event.resources}
        if Condition.PEERS_READY in rule.only:
            for key, peer in hit.items():
                if key != self._name:
                    yield Inquiry(peer, Question.READY, event.id)
        if Condition.NOT_LAST in rule.only:
            for key, member in {one.casefold(): one for one in self._members}.items():
                if key not in hit and key != self._name:
                    yield Inquiry(member, Question.HEALTHY, event.id)

    def _want(self, inquiry: Inquiry, now: float) -> None:
        asked = self._asked.get(inquiry)
        is_due = asked is None or now - asked >= EVERY_SECONDS
        if not is_due or inquiry in self._under_way:
            return
        self._asked[inquiry] = now
        self._under_way.add(inquiry)
        self._pending.append(inquiry)
        if self._threads < THREADS_MAX:
            self._threads += 1
            threading.Thread(target=self._work, name="peers", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._pending:
                    self._threads -= 1
                    return
                inquiry = self._pending.popleft()
            try:
                is_yes = self._ask(inquiry)
            except Exception:  # noqa: BLE001 - logged
                # A name that no resolver takes, say: it must not be the end of all questions.
                _log.exception("peer %s could not be asked", inquiry.peer)
                is_yes = False
            self._note(inquiry, is_yes=is_yes)

    def _note(self, inquiry: Inquiry, *, is_yes: bool) -> None:
        with self._lock:
            now = self._clock()
            was_yes = self._is_yes(inquiry, now)
            self._under_way.discard(inquiry)
            if is_yes:
                self._yes[inquiry] = now
            else:
                self._yes.pop(inquiry, None)
        if is_yes != was_yes:
            _log.info(
                "peer %s says %s: %s for event %s",
                inquiry.peer, "yes" if is_yes else "no", inquiry.question.value, inquiry.event_id,
            )  # fmt: skip
            self._ring()

    def _is_yes(self, inquiry: Inquiry, now: float) -> bool:
        said = self._yes.get(inquiry)
        return said is not None and now - said <= STALE_SECONDS

    def _forget(self, now: float) -> None:
        for inquiry in [one for one, at in self._asked.items() if now - at > FORGOTTEN_SECONDS]:
            if inquiry not in self._under_way:
                del self._asked[inquiry]
                self._yes.pop(inquiry, None)


def _who(inquiries: Collection[Inquiry], question: Question) -> frozenset[str]:
    return frozenset(one.peer.casefold() for one in inquiries if one.question is question)
