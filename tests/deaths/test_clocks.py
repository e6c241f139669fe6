"""A clock that is set back by an hour or forward by a day, under a real service."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.test_stories import ALONE, FLEET, SPOT, WEB, journal, statuses, wait_for

from forewarn.testing.processes import ServiceProcess

pytestmark = pytest.mark.end_to_end

# Debian's libfaketime: `make test` installs it where it may.
LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


class Hands:
    """The hands of a service's clock; the time that passes is left alone."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set_by("+0")

    def set_by(self, offset: str) -> None:
        # Replaced whole: it is read at every look at the clock.
        draft = self._file.with_suffix(".new")
        draft.write_text(f"{offset}\n")
        draft.replace(self._file)

    @property
    def inside(self) -> tuple[str, ...]:
        return (
            "env",
            f"LD_PRELOAD={LIBRARY}",
            f"FAKETIME_TIMESTAMP_FILE={self._file}",
            "FAKETIME_NO_CACHE=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
        )


@pytest.fixture
def hands(tmp_path: Path) -> Hands:
    if LIBRARY is None:
        pytest.skip("no libfaketime here: apt-get install libfaketime")
    return Hands(tmp_path / "hands")


@pytest.fixture
def service(hands: Hands, tmp_path: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path / "data", FLEET, inside=hands.inside) as running:
        yield running


def test_a_clock_set_back_by_an_hour_loses_and_hurries_nothing(
    service: ServiceProcess, hands: Hands
) -> None:
    """Keeps S9, S11, S16, S17: approvals work; what is not approved waits, never less."""
    (approved,) = service.announce("Freeze", "web-0", "--duration", "1s")
    (waiting,) = service.announce("Preempt", "spot")
    before = service.document(WEB[0])["DocumentIncarnation"]

    hands.set_by("-1h")
    assert service.approve(WEB[1], approved["event_id"]).status == 200
    wait_for(lambda: journal(service, approved["event_id"])[-1] == "completed")
    assert service.document(WEB[0])["DocumentIncarnation"] == before + 2
    assert statuses(service, SPOT) == ["Scheduled"]
    # Announced by the clock as it is now, its notice is a full one.
    (later,) = service.announce("Freeze", "alone")
    assert later["notice_promised_seconds"] >= 900

    service.restart()
    assert (statuses(service, SPOT), statuses(service, ALONE)) == (["Scheduled"], ["Scheduled"])
    assert journal(service, approved["event_id"])[-1] == "completed"
    hands.set_by("+0")
    assert service.run("cancel", waiting["event_id"]).returncode == 0
    assert service.approve(ALONE, later["event_id"]).status == 200
    wait_for(lambda: statuses(service, ALONE) == [])
    assert "Traceback" not in service.log.read_text()


def test_a_clock_set_forward_by_a_day_starts_nothing_early(
    service: ServiceProcess, hands: Hands
) -> None:
    """Keeps S11, S17: the notice must really have passed; S13: nobody fell silent."""
    asked_at = time.monotonic()
    (event,) = service.announce("Preempt", "spot")
    assert statuses(service, SPOT) == ["Scheduled"]

    hands.set_by("+1d")
    while time.monotonic() < asked_at + 29:
        assert statuses(service, SPOT) == ["Scheduled"]
        time.sleep(0.5)
    wait_for(lambda: statuses(service, SPOT) != ["Scheduled"], seconds=15)

    assert time.monotonic() >= asked_at + 30
    wait_for(lambda: journal(service, event["event_id"])[-1] == "completed")
    assert service.is_running
    assert "Traceback" not in service.log.read_text()
