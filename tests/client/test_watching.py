"""The watch, in simulated time before servers of every manner: nothing missed, nothing made up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.client import watching
from forewarn.client.changes import Change, Kind
from forewarn.client.documents import dump_event
from forewarn.client.messages import Answer, Failing, Failure, Outcome
from forewarn.client.patience import Pace
from forewarn.client.watching import Ask, Offer, Watch

ZERO = timedelta()
LATENCY = timedelta(milliseconds=2)
PACE = Pace()
# So that thirty answers that never come take minutes.
HASTY = Pace(first_answer=timedelta(seconds=12))
# More than once a second for an hour is too often for any of these stories.
ASKED_MAX = 3600
DOCUMENTS = ((), ("A",), ("A", "B"), ("B",))


class Manner(Enum):
    """What servers make of `wait` and tags."""

    WAITS = "waits, as forewarn does"
    IGNORES = "answers at once, as Azure does"
    REFUSES = "answers 400 to a parameter that it does not know"
    DEAF = "does not look at tags"
    TAGLESS = "has no tags"


TAGGED = [Manner.WAITS, Manner.IGNORES, Manner.REFUSES]


@dataclass(frozen=True, slots=True)
class Posted:
    """From when on which events are shown, under which tag."""

    at: timedelta
    events: Sequence[str]
    tag: str


@dataclass(slots=True)
class SimulatedServer:
    """A server whose documents are known beforehand, and whose failures too, by number of question."""

    manner: Manner
    posted: Sequence[Posted]
    failures: dict[int, Outcome] = field(default_factory=dict)
    asked: list[Ask] = field(default_factory=list)

    def shown(self, at: timedelta) -> Posted:
        return [one for one in self.posted if one.at <= at][-1]

    def answer(self, ask: Ask) -> tuple[Outcome, timedelta]:
        """The outcome, and when it is there."""
        number, at = len(self.asked), ask.at
        assert number < ASKED_MAX, "it asks as fast as it can"
        self.asked.append(ask)
        if number in self.failures:
            outcome = self.failures[number]
            is_late = isinstance(outcome, Failure) and outcome.failing is Failing.TIMED_OUT
            return outcome, at + (ask.patience if is_late else LATENCY)
        if ask.request.target.startswith("/metadata/instance"):
            return Answer(200, body=b'{"compute":{"name":"web-0"}}'), at + LATENCY
        waits = re.search(r"&wait=([0-9]+)$", ask.request.target)
        if waits and self.manner is Manner.REFUSES:
            return Answer(400), at + LATENCY
        tag = ask.request.headers.get("If-None-Match")
        if self.manner in TAGGED and tag == self.shown(at).tag:
            wait = timedelta(seconds=int(waits[1])) if waits else ZERO
            return self._later(tag, at, wait if self.manner is Manner.WAITS else ZERO)
        return self._document(at), at + LATENCY

    def _later(self, tag: str, at: timedelta, wait: timedelta) -> tuple[Outcome, timedelta]:
        for one in self.posted:
            if at < one.at <= at + wait and one.tag != tag:
                return self._document(one.at), one.at + LATENCY
        return Answer(304), at + wait + LATENCY

    def _document(self, at: timedelta) -> Answer:
        shown = self.shown(at)
        headers = {} if self.manner is Manner.TAGLESS else {"etag": shown.tag}
        events = [
            {"EventId": name, "EventStatus": "Scheduled", "Resources": ["web-0"]}
            for name in shown.events
        ]
        body = json.dumps({"DocumentIncarnation": 1, "Events": events}).encode()
        return Answer(200, headers, body)


@dataclass(frozen=True, slots=True)
class Told:
    """A change, and when the watch told it."""

    at: timedelta
    change: Change


def watched(server: SimulatedServer, until: timedelta, pace: Pace = PACE) -> Iterator[Told]:
    watch = Watch(pace)
    now = ZERO
    while now < until:
        ask = watching.ask(watch, now)
        outcome, now = server.answer(ask)
        heard = watching.heard(watch, ask, outcome, began=ask.at, now=now)
        watch = heard.watch
        yield from (Told(now, change) for change in heard.changes)


def replayed(told: Sequence[Told]) -> list[str]:
    known: list[str] = []
    for one in told:
        if one.change.kind is Kind.GONE:
            known.remove(one.change.event.id)
        else:
            known.append(one.change.event.id)
    return sorted(known)


FAILURES = st.sampled_from(
    [
        *(Failure(failing) for failing in Failing),
        *(Answer(status) for status in (400, 403, 404, 410, 500, 503)),
        Answer(429, {"retry-after": "7"}),
        # The empty 200, half a document, and a 304 that may not have been asked for.
        Answer(200),
        Answer(200, body=b'{"DocumentIncarnation":1,"Eve'),
        Answer(304),
    ]
)


@st.composite
def timelines(draw: st.DrawFn, *, restarts: bool, gap: float = 1.1) -> list[Posted]:
    at = ZERO
    posted = [Posted(ZERO, draw(st.sampled_from(DOCUMENTS)), "1")]
    for number in range(2, draw(st.integers(2, 10))):
        at += timedelta(seconds=draw(st.floats(gap, gap + 1) | st.floats(gap, 100)))
        # Where incarnations restart, any of them may come back, for other events.
        tag = str(draw(st.integers(1, 3))) if restarts else str(number)
        others = [events for events in DOCUMENTS if events != posted[-1].events]
        posted.append(Posted(at, draw(st.sampled_from(others)), tag))
    return posted


@given(
    st.sampled_from(Manner),
    timelines(restarts=True),
    st.dictionaries(st.integers(0, 60), FAILURES, max_size=30),
)
def test_whatever_goes_wrong_the_watch_ends_up_knowing_the_document(
    manner: Manner, posted: list[Posted], failures: dict[int, Outcome]
) -> None:
    server = SimulatedServer(manner, posted, failures)

    told = list(watched(server, posted[-1].at + timedelta(minutes=30), HASTY))

    assert replayed(told) == sorted(posted[-1].events)


@given(
    st.sampled_from(Manner),
    timelines(restarts=True),
    st.dictionaries(st.integers(0, 60), FAILURES, max_size=30),
)
def test_nothing_is_told_that_was_never_shown(
    manner: Manner, posted: list[Posted], failures: dict[int, Outcome]
) -> None:
    server = SimulatedServer(manner, posted, failures)
    known: set[str] = set()

    for told in watched(server, posted[-1].at + timedelta(minutes=5)):
        shown_by_then = [set(one.events) for one in posted if one.at <= told.at]
        is_gone = told.change.kind is Kind.GONE
        known ^= {told.change.event.id}
        assert any((told.change.event.id not in events) == is_gone for events in shown_by_then)

    assert known <= {"A", "B"}


@given(st.sampled_from([m for m in Manner if m is not Manner.WAITS]), timelines(restarts=False))
def test_a_server_that_does_not_wait_is_asked_each_second(
    manner: Manner, posted: list[Posted]
) -> None:
    server = SimulatedServer(manner, posted)

    told = list(watched(server, posted[-1].at + timedelta(seconds=5)))

    assert replayed(told) == sorted(posted[-1].events)
    for one in told:
        assert one.at - server.shown(one.at).at <= PACE.every + 4 * LATENCY


@given(timelines(restarts=False, gap=0.05))
def test_a_server_that_waits_is_heard_at_once(posted: list[Posted]) -> None:
    """Keeps N4, the client's half: news comes when it is there, whatever the second."""
    server = SimulatedServer(Manner.WAITS, posted)

    told = list(watched(server, posted[-1].at + timedelta(seconds=5)))

    assert replayed(told) == sorted(posted[-1].events)
    for one in told:
        assert one.at - server.shown(one.at).at <= 4 * LATENCY


@given(
    st.sampled_from(Manner),
    timelines(restarts=True),
    st.dictionaries(st.integers(0, 60), FAILURES, max_size=30),
)
def test_no_server_is_asked_more_than_once_a_second_but_for_news(
    manner: Manner, posted: list[Posted], failures: dict[int, Outcome]
) -> None:
    server = SimulatedServer(manner, posted, failures)
    until = posted[-1].at + timedelta(minutes=10)

    told = list(watched(server, until))

    trials = until / PACE.retrial
    assert len(server.asked) <= (
        until / PACE.every + 2 * len(failures) + 3 * len(told) + 2 * trials + 5
    )


def test_news_that_this_version_does_not_show_is_heard_and_waited_on() -> None:
    """An incarnation counts changes to events of types that an api-version hides."""
    posted = [Posted(timedelta(seconds=number), (), str(number)) for number in range(60)]
    server = SimulatedServer(Manner.WAITS, [*posted, Posted(timedelta(minutes=2), (), "60")])

    assert not list(watched(server, timedelta(minutes=3)))

    assert len(server.asked) < 100


def test_a_part_of_a_second_is_not_asked_for() -> None:
    server = SimulatedServer(Manner.WAITS, [Posted(ZERO, (), "1")])

    list(watched(server, timedelta(minutes=1), Pace(wait=timedelta(seconds=1.5))))

    assert {ask.wait for ask in server.asked} == {ZERO, timedelta(seconds=1)}


def test_an_idle_server_that_waits_is_asked_rarely() -> None:
    server = SimulatedServer(Manner.WAITS, [Posted(ZERO, (), "1")])

    assert not list(watched(server, timedelta(hours=1)))

    # Once to wait, and once to see that the tag means what it meant, each half minute.
    assert len(server.asked) < 250


@pytest.mark.parametrize("manner", [Manner.IGNORES, Manner.REFUSES, Manner.DEAF])
def test_a_server_that_does_not_wait_is_tried_rarely(manner: Manner) -> None:
    server = SimulatedServer(manner, [Posted(ZERO, (), "1")])

    list(watched(server, timedelta(minutes=12)))

    assert sum("wait" in ask.request.target for ask in server.asked) == 3


def test_a_client_that_is_told_not_to_waits_at_no_server() -> None:
    server = SimulatedServer(Manner.WAITS, [Posted(ZERO, (), "1")])

    list(watched(server, timedelta(minutes=1), Pace(wait=ZERO)))

    assert not any("wait" in ask.request.target for ask in server.asked)
    assert 55 < len(server.asked) < 65


def test_a_tag_that_came_to_stand_for_another_document_hides_it_for_ten_seconds_only() -> None:
    """The incarnation began anew and rose to the number that it had: Azure does so after a day."""
    minute = timedelta(minutes=1)
    posted = [Posted(ZERO, (), "1"), Posted(minute, ("A",), "1")]

    (told,) = watched(SimulatedServer(Manner.IGNORES, posted), 2 * minute)

    assert told.at - minute <= PACE.fresh + PACE.every + 4 * LATENCY


def test_the_first_answer_of_events_may_take_two_minutes_though_the_name_came_at_once() -> None:
    server = SimulatedServer(Manner.IGNORES, [Posted(ZERO, (), "1")])

    list(watched(server, timedelta(seconds=1)))

    name, first, second, *_ = server.asked
    assert name.request.target.startswith("/metadata/instance")
    assert first.patience > timedelta(minutes=2)
    assert second.patience == PACE.answer + PACE.trial


def test_an_early_304_of_a_server_that_waits_is_tried_once_more() -> None:
    """A service that is about to end lets go of all who wait."""
    watch = Watch(PACE, name="web-0", tag="1", read_at=ZERO, offer=Offer.WAITS)
    ask = watching.ask(watch, ZERO)
    assert ask.wait == PACE.wait

    once = watching.heard(watch, ask, Answer(304), began=ZERO, now=LATENCY).watch
    again = watching.ask(once, LATENCY)
    twice = watching.heard(once, again, Answer(304), began=again.at, now=again.at + LATENCY).watch

    assert again.wait == PACE.trial
    assert again.at == PACE.every
    assert twice.offer is Offer.ANSWERS_AT_ONCE
    assert watching.ask(twice, again.at).wait == ZERO
    assert watching.ask(twice, twice.retrial).tag is None


@pytest.mark.parametrize("outcome", [Failure(Failing.TIMED_OUT), Answer(503), Answer(200)])
def test_trouble_is_told_and_makes_no_event_gone(outcome: Outcome) -> None:
    server = SimulatedServer(Manner.IGNORES, [Posted(ZERO, ("A",), "1")])
    (told,) = watched(server, timedelta(seconds=1))
    watch = Watch(PACE, name="web-0", known=(told.change.event,), tag="1", read_at=ZERO)

    heard = watching.heard(watch, watching.ask(watch, ZERO), outcome, began=ZERO, now=LATENCY)

    assert heard.trouble
    assert not heard.changes
    assert heard.watch.known == watch.known
    assert heard.watch.tag is None
    assert dump_event(told.change.event)["EventId"] == "A"
