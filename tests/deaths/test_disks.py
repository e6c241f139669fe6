"""A disk that is full, read-only or failing: what could be served is, and nothing is lost."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.end_to_end.test_stories import ALONE, FLEET, WEB, journal, statuses, wait_for

from forewarn.testing.disks import Disk
from forewarn.testing.processes import HttpReply, ServiceProcess

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    # Room for the certificates that the system trusts too, which are copied beside ours.
    with Disk(tmp_path / "disk", kilobytes=1000) as made:
        yield made


@pytest.fixture
def service(disk: Disk, tmp_path: Path) -> Iterator[ServiceProcess]:
    made = ServiceProcess(
        disk.place, FLEET, inside=disk.inside, seen=disk.seen, log=tmp_path / "serve.log"
    )
    with made as running:
        yield running


def readiness(service: ServiceProcess) -> HttpReply:
    return service.ask("GET", "/readyz")


def is_ready(service: ServiceProcess) -> bool:
    return readiness(service).status == 200


def assert_reads_on(service: ServiceProcess, before: bytes) -> None:
    for address in WEB:
        reply = service.get(address)
        assert (reply.status, reply.body) == (200, before)


def assert_stands_still(service: ServiceProcess, event_id: str, why: str) -> None:
    """Guests read on, nobody is told that anything was done, and the reason is there to be read."""
    before = service.get(WEB[0]).body
    for address in WEB:
        reply = service.approve(address, event_id)
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    refused = service.run("announce", "Freeze", "web-1")
    assert refused.returncode == 6
    assert why in refused.stderr

    unready = readiness(service)
    assert (unready.status, why in unready.json["reason"]) == (503, True)
    assert "forewarn.db" in unready.json["reason"]
    assert service.ask("GET", "/healthz").status == 200
    assert_reads_on(service, before)


def assert_goes_on(service: ServiceProcess, event_id: str) -> None:
    """By itself: nobody restarts anything."""
    wait_for(lambda: is_ready(service), seconds=10)
    assert service.approve(WEB[1], event_id).status == 200
    wait_for(lambda: "completed" in journal(service, event_id))
    log = service.log.read_text()
    assert "action=store_away" in log
    assert "action=store_back" in log
    assert "Traceback" not in log


def test_a_full_disk_stops_what_must_be_stored_and_nothing_else(
    service: ServiceProcess, disk: Disk
) -> None:
    """Keeps S7, S16, S17: never a false 200, and it recovers by itself."""
    (waiting,) = service.announce("Freeze", "web-0", "--duration", "1s")
    (approved,) = service.announce("Freeze", "alone", "--duration", "3s")
    assert service.approve(ALONE, approved["event_id"]).status == 200
    wait_for(lambda: statuses(service, ALONE) == ["Started"])

    disk.fill()
    assert_stands_still(service, waiting["event_id"], "has no room left: free some space")
    wait_for(lambda: "action=setback" in service.log.read_text())
    assert statuses(service, ALONE) == ["Started"], "its end could not be stored"
    disk.free()

    assert_goes_on(service, waiting["event_id"])
    assert journal(service, approved["event_id"])[-1] == "completed"


def test_what_was_acknowledged_before_the_disk_was_full_survives_a_death_on_it(
    service: ServiceProcess, disk: Disk
) -> None:
    """Keeps S9, S16: a full disk, and then a death: guests are served again from the same state."""
    (event,) = service.announce("Reboot", "web-0")
    before = service.get(WEB[0]).body

    disk.fill()
    service.restart()

    assert_reads_on(service, before)
    wait_for(lambda: not is_ready(service), seconds=5)
    assert "free some space on its disk" in readiness(service).json["reason"]
    disk.free()
    wait_for(lambda: is_ready(service), seconds=10)
    assert service.json("show", event["event_id"])["status"] == "Scheduled"


def test_a_first_start_on_a_full_disk_says_what_to_do(disk: Disk, tmp_path: Path) -> None:
    made = ServiceProcess(
        disk.place, FLEET, inside=disk.inside, seen=disk.seen, log=tmp_path / "serve.log"
    )
    disk.fill()

    status, word = made.fail_to_start()

    assert status == 6
    assert f"{disk.place}/server.pem cannot be made (No space left on device)" in word
    assert word.endswith("free some space on its disk")
    disk.free()
    with made as service:
        assert service.get(WEB[0]).status == 200


def test_a_read_only_disk_is_refused_at_the_start(service: ServiceProcess, disk: Disk) -> None:
    """Keeps S9: nothing was changed, and the next start goes on."""
    service.announce("Reboot", "web-0")
    before = service.get(WEB[0]).body
    service.kill()

    disk.set_read_only()
    status, word = service.fail_to_start()

    assert status == 6
    assert f"the database {disk.place}/forewarn.db" in word
    assert "read-only" in word.lower()
    assert "Traceback" not in service.log.read_text()
    disk.set_writable()
    service.start()
    assert_reads_on(service, before)


def limit_files(service: ServiceProcess, size: int) -> None:
    """Let every write beyond this size fail, as a broken disk does; reading goes on."""
    _, hard = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (size, hard))


def test_a_disk_that_refuses_writes_stops_what_must_be_stored_and_nothing_else(
    tmp_path: Path,
) -> None:
    """Keeps S7, S16: the log of the service lies on that disk too."""
    with ServiceProcess(tmp_path / "data", FLEET) as service:
        (event,) = service.announce("Freeze", "web-0", "--duration", "1s")

        limit_files(service, 1)
        assert_stands_still(service, event["event_id"], "could not be read or written")
        limit_files(service, resource.RLIM_INFINITY)

        wait_for(lambda: is_ready(service), seconds=10)
        assert service.approve(WEB[1], event["event_id"]).status == 200
        wait_for(lambda: "completed" in journal(service, event["event_id"]))
        service.restart()
        assert journal(service, event["event_id"])[-1] == "completed"


def test_a_notice_that_ran_out_on_a_full_disk_starts_afterwards(
    service: ServiceProcess, disk: Disk
) -> None:
    """Keeps S8, S17: no impact that could not be told of; it starts once it can be stored."""
    (event,) = service.announce("Preempt", "spot")
    disk.fill()

    time.sleep(34)
    assert statuses(service, "127.0.2.50") == ["Scheduled"]
    wait_for(lambda: not is_ready(service), seconds=5)
    disk.free()

    wait_for(lambda: journal(service, event["event_id"])[-1] == "completed", seconds=15)


Damage = Callable[[Path], None]


def _overwrite(path: Path) -> None:
    path.write_bytes(b"these are not the pages that you are looking for\n" * 1000)


def _cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _scramble(path: Path) -> None:
    """All but the first page."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))


def _spoil_a_ledger(path: Path) -> None:
    # SQLite does not look into what it keeps.
    whole = path.read_bytes()
    assert b'{"format":2' in whole
    path.write_bytes(whole.replace(b'{"format":2', b'{"for#at":2'))


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (_overwrite, "is not a database: move it away, or restore a backup"),
        (_cut, "is damaged: move it away and restore a backup"),
        (_scramble, "is damaged: move it away and restore a backup"),
        (_spoil_a_ledger, "a ledger is damaged: stop the service and restore a backup"),
    ],
)
def test_a_damaged_database_is_refused_and_a_backup_restored(
    tmp_path: Path, damage: Damage, why: str
) -> None:
    """Keeps S9: exit status 3, the file and the next step; and that step works."""
    backup = tmp_path / "backup.db"
    with ServiceProcess(tmp_path / "data", FLEET) as service:
        service.announce("Reboot", "web-0")
        seen = service.document(WEB[0])["DocumentIncarnation"]
        assert service.run("backup", str(backup)).returncode == 0
        assert service.stop() == 0

        damage(service.data / "forewarn.db")
        status, word = service.fail_to_start()

        assert (status, str(service.data / "forewarn.db") in word, why in word) == (3, True, True)
        assert "Traceback" not in service.log.read_text()
        assert service.run("restore", str(backup), "--replace").returncode == 0
        service.start()
        assert service.document(WEB[0])["DocumentIncarnation"] > seen
        assert statuses(service, WEB[0]) == ["Scheduled"]


@pytest.mark.parametrize("is_gone", [False, True], ids=["empty", "gone"])
def test_a_database_without_its_beginning_is_not_taken_for_a_new_one(
    tmp_path: Path,
    is_gone: bool,  # noqa: FBT001
) -> None:
    """Keeps S9: its log holds what was acknowledged, and is not thrown away."""
    with ServiceProcess(tmp_path / "data", FLEET) as service:
        service.announce("Reboot", "web-0")
        before = service.get(WEB[0]).body
        service.kill()
        database = service.data / "forewarn.db"
        whole = database.read_bytes()
        database.unlink()
        if not is_gone:
            database.touch()

        status, word = service.fail_to_start()

        assert (status, f"its log {database}-wal is not" in word) == (3, True)
        database.write_bytes(whole)
        service.start()
        assert_reads_on(service, before)


def test_a_half_written_end_of_the_log_is_no_damage(tmp_path: Path) -> None:
    """Keeps S16: what power took away in the middle of a commit was never acknowledged."""
    with ServiceProcess(tmp_path / "data", FLEET) as service:
        (event,) = service.announce("Reboot", "web-0", "--notice", "1h")
        assert service.run("postpone", event["event_id"], "--by", "1h").returncode == 0
        before = service.get(WEB[0]).body
        service.kill()
        with (service.data / "forewarn.db-wal").open("ab") as log:
            log.write(b"\xa5" * 5000)

        service.start()

        assert_reads_on(service, before)
        assert "postponed" in journal(service, event["event_id"])


def test_a_database_damaged_under_a_running_service(tmp_path: Path) -> None:
    """Keeps S7: guests read on; nothing is acknowledged; the reason stays until a restart."""
    with ServiceProcess(tmp_path / "data", FLEET) as service:
        (event,) = service.announce("Freeze", "web-0", "--duration", "1s")
        assert service.stop() == 0
        service.start()

        _scramble(service.data / "forewarn.db")
        assert_stands_still(service, event["event_id"], "is damaged: move it away")
        time.sleep(2)

        assert not is_ready(service), "it does not pass by itself"
        assert service.is_running
        assert "Traceback" not in service.log.read_text()
        service.stop()
        status, word = service.fail_to_start()
        assert (status, "is damaged" in word) == (3, True)


def test_a_backup_is_restored_without_the_log_of_what_was_there(tmp_path: Path) -> None:
    """Keeps S9, S16: a log of the lost database must not be played into the restored one."""
    backup = tmp_path / "backup.db"
    with ServiceProcess(tmp_path / "data", FLEET) as service:
        service.announce("Reboot", "web-0")
        assert service.run("backup", str(backup)).returncode == 0
        service.announce("Reboot", "web-1")
        seen = service.document(WEB[0])["DocumentIncarnation"]
        service.kill()
        (service.data / "forewarn.db").unlink()
        log = (service.data / "forewarn.db-wal").read_bytes()
        assert log

        assert service.run("restore", str(backup)).returncode == 0
        service.start()

        document = service.document(WEB[0])
        assert [event["Resources"] for event in document["Events"]] == [["web-0"]]
        assert document["DocumentIncarnation"] > seen
        (aside,) = service.data.glob("forewarn.db.before-restore-*-wal")
        assert aside.read_bytes() == log, "it may still be of use to somebody"


def test_a_restore_onto_a_full_disk_changes_nothing(
    service: ServiceProcess, disk: Disk, tmp_path: Path
) -> None:
    backup = disk.seen / "backup.db"
    before = service.get(WEB[0]).body
    assert service.run("backup", str(disk.place / "backup.db")).returncode == 0
    assert service.stop() == 0
    aside = tmp_path / "backup.db"
    aside.write_bytes(backup.read_bytes())
    backup.unlink()

    disk.fill()
    refused = service.run("restore", str(aside), "--replace")

    assert refused.returncode == 6, refused.stderr
    assert "free some space on its disk" in refused.stderr
    disk.free()
    service.start()
    assert_reads_on(service, before)
