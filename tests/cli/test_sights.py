"""Whether an approval is the one that a scenario waits for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forewarn.cli import sights
from forewarn.config.scenario_steps import ExpectApproval

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
STEP = ExpectApproval(
    number=1, at=timedelta(), event="reboot", machine="web-0", within=timedelta(minutes=5)
)


def event(approved: dict[str, str] | None, status: str = "Started") -> Any:  # noqa: ANN401 - JSON
    return {"event_id": "A", "status": status, "approved": approved}


def approval(by: str = "web-0", role: str = "guest", at: str = "2030-01-01T12:05:00Z") -> Any:  # noqa: ANN401 - JSON
    return {"by": by, "role": role, "address": "127.0.0.1", "at": at}


@pytest.mark.parametrize(
    ("approved", "is_met"),
    [
        (approval(), True),
        (approval(at="2030-01-01T12:05:00.001Z"), False),
        (approval(by="web-1"), False),
        (approval(by="web-0", role="operator"), False),
        (approval(by="UserReboot", role="policy"), False),
    ],
)
def test_only_the_handler_s_own_approval_in_time_is_good(
    approved: dict[str, str], *, is_met: bool
) -> None:
    sight = sights.of_approval(STEP, event(approved), NOON + STEP.within)

    assert (sight.is_met, sight.is_final) == (is_met, True)
    assert sight.seen.startswith(f"{approved['by']} ({approved['role']}) approved it at ")


@pytest.mark.parametrize(
    ("status", "is_final"), [("Scheduled", False), ("Started", True), ("Canceled", True)]
)
def test_what_is_over_is_not_waited_for(status: str, *, is_final: bool) -> None:
    sight = sights.of_approval(STEP, event(None, status), NOON)

    assert (sight.is_met, sight.is_final) == (False, is_final)
