"""Advancing: what is to be done next about one event, step by step. The stories do it by the thousand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.agent.cases_at_hand import (
    EVENT,
    FIRST,
    SECOND,
    STARTED,
    advanced,
    after,
    opened,
    sight,
)

from forewarn.agent.advancing import Begin, Stop
from forewarn.agent.cases import Case, Result, Run
from forewarn.agent.hooks import Phase
from forewarn.agent.runs import Absent, CutOff, Going, Look, Over

PREPARING = "E/prepare-0-1"


def preparing() -> Case:
    """The first hook of `prepare` goes on."""
    return advanced(opened(), sight()).case


def touched() -> Case:
    """Gone, when all hooks of `prepare` were over."""
    return replace(preparing(), is_over=True, phases={Phase.PREPARE: (ended(FIRST), ended(SECOND))})


def ended(hook: object, result: Result = Result.READY) -> Run:
    assert hook in (FIRST, SECOND)
    return Run(FIRST if hook is FIRST else SECOND, 1, began=after(0), result=result, code=0)


def test_the_first_hook_is_begun_when_the_event_is_seen() -> None:
    advance = advanced(opened(), sight())

    assert advance.begins == (Begin(PREPARING, Phase.PREPARE, FIRST, 1, after(899)),)
    assert advance.case.phases[Phase.PREPARE] == (Run(FIRST, 1, began=after(0)), Run(SECOND))


def test_the_next_one_is_begun_when_that_is_over_even_if_it_failed() -> None:
    still = advanced(preparing(), sight(1, runs={PREPARING: Going()}))
    over = advanced(preparing(), sight(1, runs={PREPARING: Over(1)}))

    assert still.begins == ()
    assert [begin.run for begin in over.begins] == ["E/prepare-1-1"]
    assert over.case.runs(Phase.PREPARE)[0].result is Result.FAILED


@pytest.mark.parametrize(
    ("code", "result"),
    [(0, Result.READY), (70, Result.NOTHING_TO_DO), (1, Result.FAILED), (143, Result.FAILED)],
)
def test_a_hook_says_by_its_status_how_it_went(code: int, result: Result) -> None:
    found = advanced(preparing(), sight(1, runs={PREPARING: Over(code)})).case

    assert (found.runs(Phase.PREPARE)[0].result, found.runs(Phase.PREPARE)[0].code) == (
        result,
        code,
    )


@pytest.mark.parametrize(
    ("look", "result"),
    [
        (Over(0), Result.READY),
        (Over(70), Result.NOTHING_TO_DO),
        (Over(143), Result.TIMED_OUT),
        (CutOff(), Result.TIMED_OUT),
    ],
)
def test_a_hook_whose_time_is_over_is_asked_to_end_and_may_still_say_how_it_went(
    look: Look, result: Result
) -> None:
    asked = advanced(preparing(), sight(894, runs={PREPARING: Going()}))
    found = advanced(asked.case, sight(895, runs={PREPARING: look})).case

    assert asked.stops == (Stop(PREPARING, kills=False),)
    assert found.runs(Phase.PREPARE)[0].result is result


def test_a_hook_that_does_not_end_is_killed() -> None:
    going: dict[str, Look] = {PREPARING: Going()}

    asked = advanced(preparing(), sight(894, runs=going))
    waiting = advanced(asked.case, sight(898, runs=going))
    killed = advanced(waiting.case, sight(899, runs=going))

    assert waiting.stops == ()
    assert killed.stops == (Stop(PREPARING, kills=True),)


def test_nothing_is_begun_at_the_last_moment_but_when_the_event_is_held() -> None:
    over: dict[str, Look] = {PREPARING: Over(0)}

    late = advanced(preparing(), sight(899, runs=over))
    held = advanced(late.case, sight(905))

    assert late.begins == ()
    assert [begin.deadline for begin in held.begins] == [after(905 + 600)]


def test_a_postponed_event_leaves_more_time() -> None:
    later = replace(EVENT, not_before=after(7200))

    found = advanced(preparing(), sight(894, later, {PREPARING: Going()}))

    assert found.stops == ()
    assert found.case.not_before == after(7200)


def test_what_has_started_is_prepared_for_no_more_and_the_deadline_stays() -> None:
    going = advanced(preparing(), sight(5, STARTED, {PREPARING: Going()}))
    over = advanced(going.case, sight(6, STARTED, {PREPARING: Over(0)}))

    assert (going.begins, going.stops) == ((), ())
    assert going.case.not_before == EVENT.not_before
    assert [run.result for run in going.case.runs(Phase.PREPARE)] == [None, Result.SKIPPED]
    assert [begin.run for begin in over.begins] == ["E/started-0-1"]


def test_what_is_seen_started_at_first_has_no_preparing() -> None:
    advance = advanced(opened(STARTED), sight(0, STARTED))

    assert [begin.run for begin in advance.begins] == ["E/started-0-1"]
    assert Phase.PREPARE not in advance.case.phases


def test_what_is_gone_is_stopped_skipped_and_then_undone() -> None:
    gone = advanced(preparing(), sight(5, None, {PREPARING: Going()}))
    undone = advanced(gone.case, sight(6, None, {PREPARING: Over(143)}))

    assert gone.stops == (Stop(PREPARING, kills=False),)
    assert undone.case.runs(Phase.PREPARE)[0].result is Result.CALLED_OFF
    assert undone.case.runs(Phase.PREPARE)[1].result is Result.SKIPPED
    assert [begin.run for begin in undone.begins] == ["E/undo-0-1"]


def test_hooks_of_started_are_heard_out_before_undoing() -> None:
    started = advanced(opened(STARTED), sight(0, STARTED)).case

    gone = advanced(started, sight(5, None, {"E/started-0-1": Going()}))

    assert (gone.stops, gone.begins) == ((), ())
    assert Phase.UNDO not in gone.case.phases


def test_where_nothing_was_done_the_case_is_closed_without_a_hook() -> None:
    done = replace(
        preparing(), phases={Phase.PREPARE: (ended(FIRST, Result.NOTHING_TO_DO),)}, is_over=True
    )

    advance = advanced(done, sight(5, None, is_elsewhere=True))

    assert advance.case.is_closed
    assert advance.begins == ()


def test_what_is_over_stays_so_though_the_event_is_there_again() -> None:
    assert advanced(touched(), sight(5, EVENT)).case.is_over


def test_undoing_waits_for_other_events_unless_it_has_begun() -> None:
    waiting = advanced(touched(), sight(5, None, is_elsewhere=True))
    begun = advanced(touched(), sight(5, None))
    opened_only = advanced(begun.case, sight(6, None, {"E/undo-0-1": Absent()}, is_elsewhere=True))
    again = advanced(begun.case, sight(6, None, {"E/undo-0-1": CutOff()}, is_elsewhere=True))

    assert Phase.UNDO not in waiting.case.phases
    assert [begin.run for begin in begun.begins] == ["E/undo-0-1"]
    assert opened_only.begins == ()
    assert [begin.run for begin in again.begins] == ["E/undo-0-2"]


def test_events_are_undone_one_after_another() -> None:
    waiting = advanced(touched(), sight(5, None, is_undoing=True))
    begun = advanced(touched(), sight(5, None))
    again = advanced(begun.case, sight(6, None, {"E/undo-0-1": CutOff()}, is_undoing=True))

    assert waiting.begins == ()
    # Two that had begun before do not wait for each other for ever.
    assert [begin.run for begin in again.begins] == ["E/undo-0-2"]


def test_preparing_waits_for_an_undoing_for_half_the_notice() -> None:
    assert advanced(opened(), sight(449, is_undoing=True)).begins == ()
    assert advanced(opened(), sight(450, is_undoing=True)).begins != ()


def test_what_was_written_down_and_never_begun_is_begun_under_the_same_number() -> None:
    """The agent died between the two."""
    again = advanced(preparing(), sight(1, runs={PREPARING: Absent()}))
    gone = advanced(preparing(), sight(1, None, runs={PREPARING: Absent()}))

    assert [begin.run for begin in again.begins] == [PREPARING]
    assert not gone.case.is_touched
    assert gone.case.is_closed


def test_what_was_cut_off_begins_anew_while_the_event_is_ahead() -> None:
    ahead = advanced(preparing(), sight(1, runs={PREPARING: CutOff()}))
    started = advanced(preparing(), sight(1, STARTED, {PREPARING: CutOff()}))

    assert [(begin.run, begin.attempt) for begin in ahead.begins] == [("E/prepare-0-2", 2)]
    assert started.case.runs(Phase.PREPARE)[0].result is Result.CUT_OFF


def test_after_a_boot_all_is_prepared_again() -> None:
    ready = replace(preparing(), phases={Phase.PREPARE: (ended(FIRST), ended(SECOND))})

    again = advanced(ready, replace(sight(9), boot="another"))

    assert [begin.run for begin in again.begins] == ["E/prepare-0-2"]
    assert [run.has_done for run in again.case.runs(Phase.PREPARE)] == [True, True]
    assert again.case.boot == "another"


def test_after_a_boot_nobody_knows_whether_what_is_absent_ran() -> None:
    absent: dict[str, Look] = {"E/started-0-1": Absent()}
    started = advanced(opened(STARTED), sight(0, STARTED)).case

    found = advanced(started, replace(sight(9, STARTED, absent), boot="another"))

    assert found.begins == ()
    assert found.case.runs(Phase.STARTED)[0].result is Result.CUT_OFF
    assert found.case.is_touched


def test_a_boot_before_anything_was_prepared_changes_nothing() -> None:
    found = advanced(replace(opened(), boot="before"), sight())

    assert [begin.run for begin in found.begins] == [PREPARING]


def test_before_the_document_was_read_hooks_are_stopped_and_nothing_else_is_done() -> None:
    stopped = advanced(preparing(), sight(894, None, {PREPARING: Going()}, is_read=False))
    over = advanced(preparing(), sight(5, None, {PREPARING: Over(0)}, is_read=False))

    assert stopped.stops == (Stop(PREPARING, kills=False),)
    assert (over.begins, over.case.is_over) == ((), False)
