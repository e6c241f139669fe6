"""Killed between any two steps of a story, the service loses nothing and starts nothing early."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from tests.end_to_end.test_stories import ALONE, FLEET, WEB, journal, statuses, wait_for

from forewarn.testing.processes import ServiceProcess

pytestmark = pytest.mark.end_to_end

STEPS = ("announced", "read", "approved", "started", "over")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path / "data", FLEET) as running:
        yield running


@pytest.mark.parametrize("clean", [False, True], ids=["kill -9", "stopped"])
@pytest.mark.parametrize("step", STEPS)
def test_a_story_goes_on_after_a_restart(service: ServiceProcess, step: str, clean: bool) -> None:  # noqa: FBT001
    """Keeps S9, S16, N6: whatever was answered before the restart still holds after it."""

    def pause(here: str) -> None:
        if here == step:
            if clean:
                assert service.stop() == 0
                service.start()
            else:
                service.restart()

    (event,) = service.announce("Freeze", "web-0", "--duration", "6s")
    pause("announced")
    before = service.document(WEB[1])
    assert [e["EventId"] for e in before["Events"]] == [event["event_id"]]
    pause("read")
    assert service.document(WEB[1]) == before, "same incarnation, same document"
    assert service.approve(WEB[2], event["event_id"]).status == 200
    pause("approved")
    assert service.json("show", event["event_id"])["approved"]["by"] == "web-2"
    wait_for(lambda: statuses(service, WEB[0]) == ["Started"])
    pause("started")
    wait_for(lambda: statuses(service, WEB[0]) == [])
    pause("over")

    after = service.document(WEB[0])
    assert after == {"DocumentIncarnation": before["DocumentIncarnation"] + 2, "Events": []}
    assert journal(service, event["event_id"]) == [
        "announced", "readable", "approved", "started", "completed",
    ]  # fmt: skip


def test_an_unapproved_event_does_not_start_early_however_often_it_dies(
    service: ServiceProcess,
) -> None:
    """Keeps S11, S17: the notice is served across deaths."""
    (event,) = service.announce("Preempt", "spot")
    not_before = datetime.fromisoformat(event["not_before"])

    for _ in range(4):
        service.restart()
        record = service.json("show", event["event_id"])
        assert record["status"] == "Scheduled" or datetime.now(UTC) >= not_before

    wait_for(lambda: service.json("show", event["event_id"])["status"] == "Completed", seconds=60)
    record = service.json("show", event["event_id"])
    assert datetime.fromisoformat(record["started_at"]) >= not_before


def test_a_backup_taken_while_running_is_restored(service: ServiceProcess, tmp_path: Path) -> None:
    """Keeps S9, S11: incarnations leap, and what became overdue gets its full notice again."""
    (kept,) = service.announce("Reboot", "alone")
    (approved,) = service.announce("Redeploy", "web-0")
    service.json("fleet")
    backup = tmp_path / "backup.db"
    # Approved and held back by the backup's moment: after a restore it must not simply start.
    assert service.run("backup", str(backup)).returncode == 0
    seen = service.document(WEB[0])["DocumentIncarnation"]
    assert service.run("cancel", approved["event_id"]).returncode == 0

    in_use = service.run("restore", str(backup), "--replace")
    assert (in_use.returncode, "held by another process" in in_use.stderr) == (3, True)
    assert service.stop() == 0
    refused = service.run("restore", str(backup))
    assert (refused.returncode, "--replace" in refused.stderr) == (3, True)
    restored = service.json("restore", str(backup), "--replace")
    assert restored["raised_by"] >= 1_000_000

    service.start()
    document = service.document(WEB[0])
    assert seen + 1_000_000 <= document["DocumentIncarnation"] < 2**31
    (again,) = service.document(ALONE)["Events"]
    assert again["EventId"] != kept["event_id"], "the old id may have ended since the backup"
    assert parsedate_to_datetime(again["NotBefore"]) >= datetime.fromisoformat(kept["not_before"])
    entries = json.loads(service.run("journal", "--json").stdout)["entries"]
    assert "restored" in {entry["what"] for entry in entries}
    assert list(service.data.glob("forewarn.db.before-restore-*"))


def test_a_restore_is_not_undone_by_the_log_of_the_old_database(
    service: ServiceProcess, tmp_path: Path
) -> None:
    """Keeps S9: SQLite would replay a log that was left behind over the restored file."""
    backup = tmp_path / "backup.db"
    assert service.run("backup", str(backup)).returncode == 0
    service.announce("Reboot", "alone")
    seen = service.document(ALONE)["DocumentIncarnation"]
    service.kill()
    (service.data / "forewarn.db").rename(tmp_path / "moved-away.db")
    assert (service.data / "forewarn.db-wal").exists()

    assert service.run("restore", str(backup)).returncode == 0
    service.start()

    document = service.document(ALONE)
    assert document["DocumentIncarnation"] > seen + 999_999
    assert document["Events"] == []
    assert list(service.data.glob("forewarn.db.before-restore-*-wal"))


def test_a_fleet_file_that_is_refused_at_start_does_not_keep_it_from_serving(
    service: ServiceProcess,
) -> None:
    """What is in the way, an open event, can only be seen to while the service runs."""
    (event,) = service.announce("Reboot", "web-0")
    assert service.stop() == 0
    moved = FLEET.replace('address = "127.0.2.10"', 'address = "127.0.2.10"\n  update_domain = 2')
    service.fleet.write_text(moved)

    service.start()

    assert [e["EventId"] for e in service.document(WEB[0])["Events"]] == [event["event_id"]]
    unready = service.ask("GET", "/readyz")
    assert (unready.status, event["event_id"].encode() in unready.body) == (503, True)
    assert service.run("cancel", event["event_id"]).returncode == 0
    assert service.run("fleet", "apply").returncode == 0
    assert service.ask("GET", "/readyz").status == 200
