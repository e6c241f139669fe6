"""How far something is, in words, and when it is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from forewarn.cli import errands, screens
from forewarn.cli.answers import Event, Operation
from forewarn.cli.errands import Errand

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
APPROVAL = {"by": "web-1", "role": "guest", "address": "10.77.0.12", "at": "2026-11-16T08:59:00Z"}


def event(status: str = "Scheduled", **members: object) -> Event:
    usual: dict[str, Any] = {
        "event_id": "4F2A0000-0000-4000-8000-000000000001",
        "type": "Reboot",
        "status": status,
        "resources": ["web-0", "web-1"],
        "not_before": (NOW + timedelta(minutes=14, seconds=58)).isoformat(),
        "announced": True,
        "announced_at": NOW.isoformat(),
        "approved": None,
        "hold": None,
        "started_at": None,
        "outcomes": [],
    }
    return cast("Event", {**usual, **members})


def outcomes(*results: str, detail: str = "") -> list[dict[str, Any]]:
    return [
        {"resource": f"web-{number}", "result": result, "at": None, "detail": detail}
        for number, result in enumerate(results)
    ]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (
            event(),
            "Scheduled, not before 2026-11-16 09:14:58Z (in 14m 58s); waiting for approval",
        ),
        (event(approved=APPROVAL), "Scheduled; approved by guest web-1 from 10.77.0.12"),
        (event(announced=False, hold="no way"), "Scheduled; unannounced; held: no way"),
        (event("Started", started_at="2026-11-16T08:59:55Z"), "Started; for 5s"),
        (event("Completed", outcomes=outcomes("done", "done")), "Completed"),
        (
            event("Completed", outcomes=outcomes("done", "failed", detail="no disk")),
            "Completed; web-1 failed, no disk",
        ),
        (event("Canceled"), "Canceled"),
    ],
)
def test_how_far_an_event_is_fits_in_a_line(told: Event, words: str) -> None:
    assert errands.phrase(told, NOW) == f"Reboot 4F2A0000 of web-0, web-1: {words}"


@pytest.mark.parametrize(
    ("told", "is_over", "fault"),
    [
        (event(), False, ""),
        (event("Started", outcomes=outcomes("done")), False, ""),
        # An alarm: somebody must see to it, and who waits should know.
        (event("Started", outcomes=outcomes("done", "timed out")), True, "web-1 timed out"),
        (event("Completed", outcomes=outcomes("done", "done")), True, ""),
        (event("Completed", outcomes=outcomes("lost", "overtaken")), True, "web-0 lost; web-1 ov"),
        (event("Canceled"), True, "Reboot 4F2A0000-0000-4000-8000-000000000001 was canceled"),
    ],
)
def test_without_an_operation_events_say_how_it_ends(
    told: Event,
    is_over: bool,  # noqa: FBT001 - a column of the table
    fault: str,
) -> None:
    errand = Errand(label="freeze of web-0", events=[told])

    assert errand.is_over is is_over
    assert errand.fault.startswith(fault)
    assert bool(errand.fault) is bool(fault)


def test_an_operation_says_how_it_ends() -> None:
    def operation(status: str, **members: object) -> Operation:
        told = {"name": "op", "status": status, "properties": {"events": []}, **members}
        return cast("Operation", told)

    going = Errand(label="x", operation=operation("InProgress"))
    done = Errand(label="x", operation=operation("Succeeded"))
    failed = Errand(
        label="x", operation=operation("Failed", error={"code": "OperationFailed", "message": "so"})
    )

    assert (going.is_over, going.fault) == (False, "")
    assert (done.is_over, done.fault) == (True, "")
    assert (failed.is_over, failed.fault) == (True, "so")


def test_in_a_pipe_a_line_is_shown_when_something_became_different(
    capsys: pytest.CaptureFixture[str],
) -> None:
    errand, idle = Errand(label="restart of web-0"), Errand(label="start of web-2")
    steps = [event(), event(), event(approved=APPROVAL), event("Started"), event("Completed")]

    with screens.screen(is_quiet=False) as screen:
        for second, told in enumerate(steps):
            errand.events = [told]
            screen.show([errand, idle], NOW + timedelta(seconds=second))

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[1] == "start of web-2: nothing had to be done"
    assert [line.partition(": ")[2][:9] for line in lines[2:]] == [
        "Scheduled",
        "Started; ",
        "Completed",
    ]


def test_for_programs_progress_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with screens.screen(is_quiet=True) as screen:
        screen.show([Errand(label="x", events=[event()])], NOW)

    assert capsys.readouterr().out == ""
