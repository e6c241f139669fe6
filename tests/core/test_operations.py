"""Long-running operations: what their events make of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core import operations
from forewarn.core.events import Event, EventSource, EventStatus, EventType, Outcome, Result
from forewarn.core.names import EventId, MachineName, OperationId, ScopeId
from forewarn.core.operations import Ending, Operation, OperationStatus
from forewarn.testing.worlds import NOON

LATER = NOON + timedelta(hours=1)
MINUTE = timedelta(minutes=1)
RESTART = Operation(
    id=OperationId("op"),
    verb="restart",
    resource="/vm",
    group="rg1",
    scope=ScopeId("rg1/web"),
    event_ids=(EventId("E1"), EventId("E2")),
    principal="olga",
    started_at=NOON,
)
SCHEDULED = Event(
    id=EventId("E1"),
    type=EventType.REBOOT,
    source=EventSource.USER,
    machines=(MachineName("web-0"), MachineName("web-1")),
    update_domain=0,
    announced_by="olga",
    announced_at=NOON,
    notice=MINUTE,
    not_before=NOON + MINUTE,
)
STARTED = replace(SCHEDULED, status=EventStatus.STARTED, started_at=NOON + MINUTE)
CANCELED = replace(SCHEDULED, status=EventStatus.CANCELED, ended_at=NOON + MINUTE)


def outcome(machine: str, result: Result, detail: str = "") -> Outcome:
    return Outcome(MachineName(machine), result, NOON + MINUTE, detail)


def completed(*results: Result, detail: str = "") -> Event:
    outcomes = tuple(outcome(f"web-{n}", result, detail) for n, result in enumerate(results))
    return replace(
        STARTED, status=EventStatus.COMPLETED, outcomes=outcomes, ended_at=NOON + 2 * MINUTE
    )


DONE = completed(Result.DONE, Result.DONE)


def test_an_operation_goes_on_while_one_of_its_events_is_open() -> None:
    assert operations.follow(RESTART, [DONE, SCHEDULED], LATER) == RESTART
    assert operations.follow(RESTART, [STARTED, DONE], LATER) == RESTART
    assert RESTART.status is OperationStatus.IN_PROGRESS


def test_an_operation_succeeds_when_the_last_of_its_events_did() -> None:
    earlier = replace(DONE, ended_at=NOON + MINUTE)

    followed = operations.follow(RESTART, [earlier, DONE], LATER)

    assert followed.ending == Ending(OperationStatus.SUCCEEDED, NOON + 2 * MINUTE)
    assert followed.status is OperationStatus.SUCCEEDED


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (Result.FAILED, "OperationFailed"),
        (Result.OVERTAKEN, "OperationPreempted"),
        (Result.LOST, "OperationOutcomeUnknown"),
    ],
)
def test_an_operation_carries_the_failure_of_its_event(result: Result, code: str) -> None:
    followed = operations.follow(RESTART, [DONE, completed(result, Result.DONE)], LATER)

    assert followed.ending == Ending(
        OperationStatus.FAILED,
        NOON + 2 * MINUTE,
        code,
        f"Reboot E1 on web-0: {result.value}",
    )


def test_the_detail_of_a_failure_is_told() -> None:
    failed = completed(Result.FAILED, Result.FAILED, detail="no boot device")

    followed = operations.follow(RESTART, [failed], LATER)

    assert followed.ending is not None
    assert followed.ending.message == (
        "Reboot E1 on web-0: failed, no boot device; Reboot E1 on web-1: failed, no boot device"
    )


def test_nobody_waits_for_orders_that_somebody_must_see_to() -> None:
    """An alarm ends the waiting, not the event: an operator will resolve that."""
    half = replace(STARTED, outcomes=(outcome("web-0", Result.TIMED_OUT),))
    alarmed = replace(half, outcomes=(*half.outcomes, outcome("web-1", Result.DONE)))

    assert operations.follow(RESTART, [half], LATER).ending is None
    followed = operations.follow(RESTART, [alarmed], LATER)
    assert followed.ending == Ending(
        OperationStatus.FAILED, LATER, "OperationTimedOut", "Reboot E1 on web-0: timed out"
    )


def test_an_operation_is_canceled_with_its_event() -> None:
    followed = operations.follow(RESTART, [DONE, CANCELED], LATER)

    assert followed.ending == Ending(
        OperationStatus.CANCELED,
        NOON + 2 * MINUTE,
        "OperationCanceled",
        "Reboot E1 on web-0, web-1 was canceled",
    )


def test_an_event_that_nobody_remembers_is_no_success() -> None:
    followed = operations.follow(RESTART, [DONE, None], LATER)

    assert followed.ending is not None
    assert (followed.status, followed.ending.at) == (OperationStatus.FAILED, LATER)
    assert followed.ending.code == "OperationOutcomeUnknown"
    assert "what became of the restart is not known" in followed.ending.message


def test_what_ended_stays_as_it_ended() -> None:
    ended = operations.follow(RESTART, [DONE], LATER)

    assert operations.follow(ended, [CANCELED], LATER) is ended
