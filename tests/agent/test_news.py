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
    ]
