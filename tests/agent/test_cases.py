"""Cases: what is known of one event, and by when hooks must be over."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.agent.cases_at_hand import EVENT, FIRST, NOW, STARTED, after, opened

from forewarn.agent import cases
from forewarn.agent.cases import Case, Result, Run
from forewarn.agent.hooks import Phase
from forewarn.agent.rules import Readiness

GOING = Run(FIRST, attempt=1, began=NOW)


def ended(result: Result) -> Run:
    return replace(GOING, result=result)


def case(**phases: tuple[Run, ...]) -> Case:
    return replace(opened(), phases={Phase(name): runs for name, runs in phases.items()})


@pytest.mark.parametrize(
    ("found", "readiness"),
    [
        (case(), Readiness.UNDER_WAY),
        (case(prepare=()), Readiness.WITHOUT),
        (case(prepare=(ended(Result.READY), GOING)), Readiness.UNDER_WAY),
        (case(prepare=(ended(Result.READY), ended(Result.NOTHING_TO_DO))), Readiness.READY),
        *(
            (case(prepare=(ended(Result.READY), ended(result))), Readiness.FAILED)
            for result in set(Result) - cases.WELL
        ),
    ],
)
def test_a_vm_is_ready_once_all_hooks_said_so(found: Case, readiness: Readiness) -> None:
    assert found.readiness is readiness


@pytest.mark.parametrize(
    ("found", "is_touched"),
    [
        (case(), False),
        (case(prepare=(Run(FIRST),)), False),
        (case(prepare=(ended(Result.NOTHING_TO_DO),)), False),
        (case(prepare=(GOING,)), True),
        (case(prepare=(ended(Result.NOTHING_TO_DO), ended(Result.FAILED))), True),
        (case(prepare=(Run(FIRST, attempt=1, has_done=True),)), True),
        (case(started=(ended(Result.CUT_OFF),)), True),
        (case(undo=(GOING,)), False),
    ],
)
def test_what_hooks_did_or_may_have_done_is_to_be_undone(found: Case, is_touched: bool) -> None:  # noqa: FBT001
    assert found.is_touched is is_touched


def test_a_hook_that_says_nothing_to_do_the_second_time_may_have_done_it_the_first() -> None:
    """Keeps N7: one that was cut off after it had left the load balancer, say."""
    again = ended(Result.CUT_OFF).anew

    assert (again.attempt, again.began, again.is_over) == (1, None, False)
    assert replace(again, began=NOW, result=Result.NOTHING_TO_DO).is_touched
    assert not ended(Result.NOTHING_TO_DO).anew.is_touched


@pytest.mark.parametrize(
    ("found", "states"),
    [
        (case(), (False, False, True)),
        (case(prepare=(GOING,)), (False, False, False)),
        (case(undo=(Run(FIRST),)), (False, False, True)),
        (case(undo=(GOING,)), (False, True, True)),
        (case(undo=(ended(Result.READY), Run(FIRST))), (False, True, True)),
        (case(undo=(ended(Result.READY),)), (True, False, True)),
        (case(undo=()), (True, False, True)),
    ],
)
def test_a_case_is_closed_when_undoing_is_over(
    found: Case, states: tuple[bool, bool, bool]
) -> None:
    assert (found.is_closed, found.is_undoing, found.is_at_rest) == states


def test_an_event_is_pending_until_it_starts_or_is_gone() -> None:
    assert opened().is_pending
    assert not opened(STARTED).is_pending
    assert not replace(opened(), is_over=True).is_pending


MINUTE = timedelta(minutes=1)
LATEST = after(15 * 60 - 1)


@pytest.mark.parametrize(
    ("limit", "began", "not_before", "phase", "due"),
    [
        # Its own limit, or what the event leaves it, whichever is earlier.
        (MINUTE, NOW, EVENT.not_before, Phase.PREPARE, after(60)),
        (MINUTE, after(14.5 * 60), EVENT.not_before, Phase.PREPARE, LATEST),
        (None, NOW, EVENT.not_before, Phase.PREPARE, LATEST),
        # Without either, ten minutes.
        (None, NOW, None, Phase.PREPARE, after(600)),
        (None, NOW, EVENT.not_before, Phase.STARTED, after(600)),
        (None, NOW, EVENT.not_before, Phase.UNDO, after(600)),
        (MINUTE, NOW, EVENT.not_before, Phase.UNDO, after(60)),
        # Begun when the event was being held.
        (None, after(15 * 60 + 9), EVENT.not_before, Phase.PREPARE, after(15 * 60 + 609)),
    ],
)
def test_a_deadline_is_the_hooks_own_or_the_events(
    limit: timedelta | None,
    began: datetime,
    not_before: datetime | None,
    phase: Phase,
    due: datetime,
) -> None:
    run = Run(replace(FIRST, limit=limit), attempt=1, began=began)
    found = replace(opened(), not_before=not_before)

    assert cases.deadline(found, phase, run) == due


def test_a_hook_is_asked_to_end_before_it_is_killed() -> None:
    long = replace(GOING, hook=replace(FIRST, limit=MINUTE))
    short = replace(GOING, hook=replace(FIRST, limit=timedelta(seconds=10)))

    assert cases.stopped_at(opened(), Phase.UNDO, long) == after(55)
    assert cases.stopped_at(opened(), Phase.UNDO, short) == after(8)
    assert cases.killed_at(opened(), Phase.UNDO, replace(long, stopped=after(57))) == after(62)


def test_a_hook_that_was_asked_late_is_killed_in_time_for_its_event() -> None:
    asked = replace(GOING, stopped=after(15 * 60 - 3))
    too_late = replace(GOING, stopped=after(15 * 60 + 3))

    assert cases.killed_at(opened(), Phase.PREPARE, asked) == LATEST
    assert cases.killed_at(opened(), Phase.PREPARE, too_late) == too_late.stopped


@pytest.mark.parametrize(
    ("at", "is_last"), [(0, False), (898, False), (899, True), (904, True), (905, False)]
)
def test_from_a_second_before_not_before_nothing_is_begun_until_the_event_is_held(
    at: float,
    is_last: bool,  # noqa: FBT001
) -> None:
    assert cases.is_last_moment(opened(), after(at)) is is_last
    assert not cases.is_last_moment(opened(STARTED), after(at))


def test_preparing_waits_for_undoing_for_half_its_notice_at_most() -> None:
    assert cases.yields_until(opened()) == after(450)
    assert cases.yields_until(opened(STARTED)) == NOW


def test_one_looks_again_when_a_hook_is_to_be_stopped_killed_or_begun() -> None:
    stopping = replace(GOING, stopped=after(100))

    assert cases.wake(opened(), NOW) is None
    assert cases.wake(case(prepare=(GOING, Run(FIRST))), NOW) == after(15 * 60 - 6)
    assert cases.wake(case(prepare=(stopping,)), NOW) == after(105)
    assert cases.wake(case(undo=(GOING,), prepare=(stopping,)), NOW) == after(105)
    assert cases.wake(case(prepare=(Run(FIRST),)), after(900)) == after(905)
    # One that does not even heed SIGKILL is no reason to be busy.
    assert cases.wake(case(prepare=(stopping,)), after(200)) == after(200.1)
