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


@pytest.mark.parametrize("result", [Result.CALLED_OFF, Result.READY])
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
        (replace(prepared(Result.READY), is_over=True), False, True, False),
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

    told = {"EVENT_DEADLINE": "7", "EVENT_PHASE": "undo", "EVENT_ID": "E"}
    runs.begin("E/undo-0-1", ("/bin/false", "a b"), told)
    runs.signal("E/undo-0-1", 15)  # type: ignore[arg-type]  # nobody looks at it
    runs.forget("E")
    approvals.ask(EVENT)

    assert runs.look("E/undo-0-1") == Over(0)
    assert list(approvals.answers()) == []
    assert caplog.messages == [
        "dry run: in undo of event E would be run, until 1970-01-01 00:00:07Z at most: /bin/false 'a b'",
        "dry run: event E would be approved",
    ]
