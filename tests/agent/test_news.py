<<<<<<< HEAD
"""News: what is told of hooks that did not do their work."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import pytest

from forewarn.agent.cases import Case, Result, Run, opened, replace_runs
from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.news import Kind, news_of
from forewarn.client.documents import SCHEDULED, STARTED, Event

NOW: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
EVENT: Final = Event("A-1", "Preempt", SCHEDULED, ("web-0",), not_before=NOW)
RUN: Final = Run(Hook("20-flush", ("flush",)))
BEFORE: Final = replace_runs(opened(EVENT, "boot", NOW), Phase.PREPARE, (RUN,))


def failures(after: Case) -> list[str]:
    return [one.what for one in news_of(BEFORE, after, "web-0") if one.kind is Kind.FAILED]


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (3, "failed with status 3"),
        (126, "failed with status 126: it cannot be run, or a command in it"),
        (127, "failed with status 127: what its first line names is not there, or a command in it"),
    ],
)
def test_a_hook_that_failed_is_told_with_what_its_status_means(code: int, how: str) -> None:
    ended = replace(RUN, attempt=1, began=NOW, result=Result.FAILED, code=code)

    assert failures(replace_runs(BEFORE, Phase.PREPARE, (ended,))) == [
        f"hook 20-flush of prepare {how}"
    ]


def test_a_hook_for_which_no_time_was_left_is_told() -> None:
    skipped = replace_runs(BEFORE, Phase.PREPARE, (replace(RUN, result=Result.SKIPPED),))
    started = replace(skipped, event=replace(EVENT, status=STARTED, not_before=None))

    assert failures(started) == ["hook 20-flush of prepare was not run: the event has started"]


def test_a_hook_that_an_event_needs_no_more_is_no_news() -> None:
    skipped = replace_runs(BEFORE, Phase.PREPARE, (replace(RUN, result=Result.SKIPPED),))

    assert failures(replace(skipped, is_over=True)) == []


def test_what_could_not_be_undone_is_not_called_undone() -> None:
    """Nobody else would tell that a VM stays drained."""
    ready = replace(RUN, attempt=1, began=NOW, result=Result.READY, code=0)
    before = replace_runs(replace(BEFORE, is_over=True), Phase.PREPARE, (ready,))
    bad = replace(ready, result=Result.FAILED, code=5)

    def told(undo: Run) -> list[tuple[Kind, str]]:
        after = replace_runs(before, Phase.UNDO, (undo,))
        return [(one.kind, one.what) for one in news_of(before, after, "web-0")]

    assert told(ready) == [(Kind.UNDONE, "undone")]
    assert told(bad) == [
        (Kind.FAILED, "hook 20-flush of undo failed with status 5"),
        (
            Kind.FAILED,
            "not wholly undone, as 20-flush of undo failed, and is not tried again: see to this VM",
        ),
=======
"""News: what is told of a case that goes on; reports: how the agent is as a whole; dry runs."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from tests.agent.cases_at_hand import EVENT, FIRST, NOW, SECOND, STARTED, opened

from forewarn.agent.cases import Case, Result, Run
from forewarn.agent.dry import DryApprovals, DryRuns
from forewarn.agent.hooks import Phase
from forewarn.agent.news import Kind, news_of
from forewarn.agent.reports import Report
from forewarn.agent.rules import Verdict
from forewarn.agent.runs import Over

HELD = Verdict(approves=False, why="held")


def prepared(*results: Result | None) -> Case:
    hooks = zip((FIRST, SECOND), results, strict=False)
    runs = tuple(Run(hook, 1, began=NOW, result=result, code=9) for hook, result in hooks)
    return replace(opened(), phases={Phase.PREPARE: runs})


def told(before: Case | None, after: Case) -> list[tuple[Kind, str]]:
    found = list(news_of(before, after, "web-1"))
    assert all((one.name, one.event) == ("web-1", after.event) for one in found)
    return [(one.kind, one.what) for one in found]


def test_an_event_is_announced_or_has_started() -> None:
    assert told(None, opened()) == [(Kind.ANNOUNCED, "announced")]
    assert told(None, opened(STARTED)) == [(Kind.STARTED, "started without notice")]


@pytest.mark.parametrize(
    ("result", "how"),
    [
        (Result.FAILED, "failed with status 9"),
        (Result.TIMED_OUT, "was not over in time"),
        (Result.CUT_OFF, "was cut off"),
    ],
)
def test_a_hook_that_ended_badly_is_told_once(result: Result, how: str) -> None:
    before, after = prepared(None, None), prepared(result, None)

    assert told(before, after) == [(Kind.FAILED, f"hook 10-first of prepare {how}")]
    assert told(opened(), after) == told(before, after)
    assert told(after, after) == []


@pytest.mark.parametrize("result", [Result.CALLED_OFF, Result.SKIPPED, Result.READY])
def test_what_was_called_off_is_no_failure(result: Result) -> None:
    assert told(prepared(None, None), prepared(result, None)) == []


def test_each_step_is_told_once() -> None:
    ready = prepared(Result.READY, Result.NOTHING_TO_DO)
    approved = replace(ready, approved=NOW)
    started = replace(approved, event=STARTED)
    undone = replace(started, phases={**started.phases, Phase.UNDO: ()})

    assert told(prepared(Result.READY, None), ready) == [(Kind.READY, "made ready")]
    assert told(ready, approved) == [(Kind.APPROVED, "approved")]
    assert told(approved, started) == [(Kind.STARTED, "started")]
    assert told(started, undone) == [(Kind.UNDONE, "undone")]
    assert told(undone, undone) == []


def test_where_nothing_was_done_nothing_is_undone() -> None:
    idle = prepared(Result.NOTHING_TO_DO)

    assert told(idle, replace(idle, phases={**idle.phases, Phase.UNDO: ()})) == []


@pytest.mark.parametrize(
    ("case", "is_pending", "is_drained", "is_ready"),
    [
        (opened(), True, False, False),
        (prepared(Result.READY), True, True, True),
        (prepared(Result.FAILED), True, False, False),
        (prepared(), True, False, True),
        (replace(prepared(Result.READY), is_over=True), False, True, True),
    ],
)
def test_a_report_says_whether_this_vm_is_drained(
    case: Case,
    is_pending: bool,  # noqa: FBT001
    is_drained: bool,  # noqa: FBT001
    is_ready: bool,  # noqa: FBT001
) -> None:
    report = Report(NOW, cases=((case, HELD),))

    assert (report.is_pending, report.is_drained) == (is_pending, is_drained)
    assert report.is_ready_for("e") is is_ready
    assert not report.is_ready_for("another")


def test_a_dry_run_tells_and_does_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    runs, approvals = DryRuns(), DryApprovals()

    runs.begin("E/undo-0-1", ("/bin/false", "a b"), {"EVENT_DEADLINE": "7"})
    runs.signal("E/undo-0-1", 15)  # type: ignore[arg-type]  # nobody looks at it
    runs.forget("E")
    approvals.ask(EVENT)

    assert runs.look("E/undo-0-1") == Over(0)
    assert list(approvals.answers()) == []
    assert caplog.messages == [
        "dry run: /bin/false 'a b' would be run (E/undo-0-1), until 7",
        "dry run: event E would be approved",
>>>>>>> stories
    ]
