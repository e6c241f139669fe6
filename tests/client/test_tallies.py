"""The client's tally: what it counts, and what it does not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from forewarn.client import Client
from forewarn.client.tallies import BOUNDS, Tally
from forewarn.errors import Refused, Unavailable
from forewarn.testing.scheduled_events import ScheduledEvents


def test_an_answer_is_counted_under_every_bound_that_it_keeps() -> None:
    tally = Tally().with_answer(timedelta(seconds=0.25)).with_answer(timedelta(seconds=11))

    counted = dict(zip(BOUNDS, tally.within, strict=True))

    assert (counted[0.1], counted[0.25], counted[10.0]) == (0, 1, 1)
    assert (tally.answered, tally.took, tally.failed) == (2, timedelta(seconds=11.25), 0)


def test_errands_are_counted_with_what_came_of_them(scheduled_events: ScheduledEvents) -> None:
    with Client(scheduled_events.url) as client:
        client.name()
        client.events()
        with pytest.raises(Refused):
            client.approve("00000000-0000-0000-0000-000000000000")

        assert (client.tally.answered, client.tally.failed) == (2, 1)
    with Client("http://127.0.0.1:1") as client:
        with pytest.raises(Unavailable):
            client.events(within=timedelta(seconds=0.1))
        assert (client.tally.answered, client.tally.failed) == (0, 1)


def test_a_question_that_was_asked_to_wait_says_nothing_of_how_soon_answers_come(
    scheduled_events: ScheduledEvents,
) -> None:
    with Client(scheduled_events.url) as client:
        documents = client.documents()
        next(documents)
        # Its name, and a whole document.
        before = client.tally
        scheduled_events.reboot("web-0")
        next(documents)

        # The news came while it waited for them.
        assert before.answered == 2
        assert client.tally == before
