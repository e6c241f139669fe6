"""What wants one answer: asked again while that may help, and given up when time is over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from forewarn.client import errands
from forewarn.client.documents import Event
from forewarn.client.errands import Attempt, Done, Errand
from forewarn.client.messages import Answer, Failing, Failure, Outcome
from forewarn.client.patience import Pace
from forewarn.errors import Malformed, Refused, Unavailable

PACE = Pace()
NOW = timedelta(seconds=100)
EVENT = Event("ABC", "Reboot", "Scheduled")


def attempt(*, within: float = 60, has_read: bool = True) -> Attempt:
    return Attempt(PACE, until=NOW + timedelta(seconds=within), at=NOW, has_read=has_read)


def test_an_approval_names_events_by_themselves_or_by_their_ids() -> None:
    errand = errands.approval((EVENT, "def"))

    assert errand.request.body == b'{"StartRequests": [{"EventId": "ABC"}, {"EventId": "def"}]}'


def test_there_must_be_something_to_approve() -> None:
    with pytest.raises(Malformed, match="nothing to approve"):
        errands.approval(())


@pytest.mark.parametrize("body", [b"", b"{}", b"ok"])
def test_approved_is_approved_whatever_is_said_along(body: bytes) -> None:
    errand = errands.approval((EVENT,))

    assert errands.judge(errand, attempt(), Answer(200, body=body), NOW) == Done(None)


def test_events_and_the_name_are_read() -> None:
    name = Answer(200, body=b'{"compute":{"name":"web-0"}}')
    document = Answer(200, body=b'{"DocumentIncarnation":1,"Events":[]}')

    assert errands.judge(errands.NAME, attempt(), name, NOW) == Done("web-0")
    assert errands.judge(errands.EVENTS, attempt(), document, NOW) == Done(())


@pytest.mark.parametrize("status", [400, 401, 403, 405])
def test_what_is_refused_is_not_asked_again(status: int) -> None:
    answer = Answer(status, body=b'{"error": "no such event"}')

    with pytest.raises(Refused, match=f"{status}: no such event"):
        errands.judge(errands.approval((EVENT,)), attempt(), answer, NOW)


AGAIN: list[tuple[Errand[object], Outcome]] = [
    *((errands.approval((EVENT,)), Failure(failing)) for failing in Failing),
    *((errands.approval((EVENT,)), Answer(s)) for s in (404, 408, 410, 429, 500, 503, 304)),
    (errands.EVENTS, Answer(200)),
    (errands.EVENTS, Answer(200, body=b'{"DocumentInc')),
    (errands.NAME, Answer(200, body=b"{}")),
]


@pytest.mark.parametrize(("errand", "outcome"), AGAIN)
def test_what_may_pass_is_asked_again(errand: Errand[object], outcome: Outcome) -> None:
    later = errands.judge(errand, attempt(), outcome, NOW)

    assert isinstance(later, Attempt)
    assert later.at == NOW + PACE.retry_first
    assert later.failures == 1


def test_a_server_may_say_when() -> None:
    later = errands.judge(errands.EVENTS, attempt(), Answer(429, {"retry-after": "9"}), NOW)

    assert isinstance(later, Attempt)
    assert later.at == NOW + timedelta(seconds=9)


@pytest.mark.parametrize(("errand", "outcome"), AGAIN)
def test_when_time_is_over_it_is_given_up(errand: Errand[object], outcome: Outcome) -> None:
    with pytest.raises(Unavailable, match="asked 1 times"):
        errands.judge(errand, attempt(within=0.1), outcome, NOW)


def test_no_answer_is_waited_for_beyond_the_end() -> None:
    assert attempt(within=3).patience == timedelta(seconds=3)
    assert attempt().patience == PACE.answer
    assert attempt(within=600, has_read=False).patience == PACE.first_answer
    late = errands.judge(errands.EVENTS, attempt(), Failure(Failing.TIMED_OUT), NOW)
    assert isinstance(late, Attempt)
    assert late.patience == 2 * PACE.answer
