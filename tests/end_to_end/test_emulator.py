"""`forewarn emulate`: handlers' stories over real sockets, on a clock that obeys."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from forewarn.cli.main import main
from forewarn.testing.emulators import EmulatorProcess
from forewarn.testing.processes import PATH, VERSION, request

pytestmark = pytest.mark.end_to_end

FLEET = ("--availability-set", "web:3", "--vm", "db")


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatorProcess]:
    log = tmp_path_factory.mktemp("emulator") / "log"
    with EmulatorProcess(log, *FLEET, "--clock", "manual") as emulator:
        yield emulator


@pytest.fixture
def emulator(started: EmulatorProcess) -> EmulatorProcess:
    """An emulator as it is after its start."""
    started.ask("POST", "/emulator/reset", {})
    return started


def now_of(emulator: EmulatorProcess) -> datetime:
    return datetime.fromisoformat(emulator.ask("GET", "/emulator/clock")["now"])


def test_a_reboot_that_nobody_approves_takes_its_fifteen_minutes(
    emulator: EmulatorProcess,
) -> None:
    announced = emulator.announce("Reboot", "web-0")
    ((kind, status, not_before),) = emulator.seen_by("web-1")
    assert (kind, status) == ("Reboot", "Scheduled")
    wait = parsedate_to_datetime(not_before) - now_of(emulator)
    assert timedelta(minutes=15) <= wait <= timedelta(minutes=15, seconds=5)

    emulator.advance(seconds=wait.total_seconds() - 1)
    assert emulator.seen_by("web-0") == [("Reboot", "Scheduled", not_before)]
    emulator.advance(seconds=1)
    assert emulator.seen_by("web-0") == [("Reboot", "Started", "")]
    emulator.advance(seconds=60)

    assert emulator.seen_by("web-0") == []
    assert emulator.seen_by("db") == []
    record = emulator.ask("GET", f"/events/{announced['event_id']}")
    assert record["status"] == "Completed"


def test_an_approval_starts_the_reboot_at_once(emulator: EmulatorProcess) -> None:
    event = emulator.announce("Reboot", "web-0")["event_id"]
    before = now_of(emulator)

    reply = emulator.guest("web-0", "POST", {"StartRequests": [{"EventId": event}]})
    emulator.ask("POST", "/emulator/idle", {})

    assert reply.status == 200
    assert emulator.seen_by("web-0") == [("Reboot", "Started", "")]
    assert now_of(emulator) == before
    assert emulator.ask("GET", f"/events/{event}")["approved"]["by"] == "web-0"


def test_a_long_advance_does_each_thing_when_it_is_due(emulator: EmulatorProcess) -> None:
    events = [emulator.announce("Reboot", f"web-{n}", source="User") for n in range(3)]
    begun = now_of(emulator)

    told = emulator.advance(seconds=86400)

    assert told["happened"]
    assert datetime.fromisoformat(told["now"]) == begun + timedelta(days=1)
    for event in events:
        record = emulator.ask("GET", f"/events/{event['event_id']}")
        assert record["started_at"] == event["not_before"]
        took = datetime.fromisoformat(record["ended_at"]) - datetime.fromisoformat(
            record["started_at"]
        )
        assert took == timedelta(minutes=1)


def test_the_next_thing_is_the_start_then_the_end_then_nothing(emulator: EmulatorProcess) -> None:
    event = emulator.announce("Freeze", "db", duration_seconds=9)

    start = emulator.advance(next=True)
    end = emulator.advance(next=True)
    nothing = emulator.advance(next=True)

    assert start == {"now": event["not_before"], "speed": 0.0, "happened": True}
    ended = datetime.fromisoformat(event["not_before"]) + timedelta(seconds=9)
    assert datetime.fromisoformat(end["now"]) == ended
    assert nothing == {**end, "happened": False}


def test_a_vm_that_hangs_forever_is_not_waited_for_forever(emulator: EmulatorProcess) -> None:
    emulator.ask("POST", "/simulated-fabric", {"machine": "db", "behavior": "hangs"})
    emulator.announce("Freeze", "db")

    happened = [emulator.advance(next=True)["happened"] for _ in range(3)]

    # It starts, and takes too long, which is told; and that is all.
    assert happened == [True, True, False]


def test_time_does_not_go_back(emulator: EmulatorProcess) -> None:
    emulator.advance(seconds=60)

    refused = emulator.try_to("POST", "/emulator/clock/advance", {"to": "2001-01-01T00:00:00Z"})

    assert refused.status == 400


def test_the_same_seed_tells_the_same_story(emulator: EmulatorProcess) -> None:
    documents = []
    for _ in range(2):
        emulator.ask("POST", "/emulator/seed", {"seed": 7})
        emulator.announce("Reboot", "web-0")
        emulator.advance(seconds=60)
        emulator.announce("Redeploy", "db")
        documents.append([emulator.guest(machine).body for machine in ("web-0", "db")])

    assert documents[0] == documents[1]
    emulator.ask("POST", "/emulator/seed", {"seed": 8})
    emulator.announce("Reboot", "web-0")
    assert emulator.guest("web-0").body != documents[0][0]


def test_a_reset_leaves_nothing_behind(emulator: EmulatorProcess) -> None:
    emulator.announce("Reboot", "web-0")
    emulator.advance(seconds=3600)
    emulator.announce("Reboot", "web-0")
    assert emulator.seen_by("web-0")

    emulator.ask("POST", "/emulator/reset", {})

    assert emulator.ask("GET", "/emulator/requests") == {"requests": [], "forgotten": 0}
    assert emulator.guest("web-0").json == {"DocumentIncarnation": 1, "Events": []}
    assert emulator.ask("GET", "/events?status=all")["events"] == []


def test_resets_leak_neither_descriptors_nor_threads(emulator: EmulatorProcess) -> None:
    process = Path(f"/proc/{emulator.process.pid}")

    def held() -> tuple[int, int]:
        return len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))

    emulator.ask("POST", "/emulator/reset", {})
    time.sleep(1.5)
    descriptors, threads = held()
    for _ in range(10):
        emulator.ask("POST", "/emulator/reset", {})
    # The feed of each old run looks up once a second.
    time.sleep(1.5)

    assert held()[0] <= descriptors + 2
    assert held()[1] <= threads + 4


def test_requests_say_who_asked_what_and_when(emulator: EmulatorProcess) -> None:
    event = emulator.announce("Freeze", "db")["event_id"]
    emulator.guest("web-1")
    emulator.advance(seconds=5)
    emulator.guest("db", "POST", {"StartRequests": [{"EventId": event}]})
    request(emulator.told["machines"]["db"], "GET", f"{PATH}?api-version={VERSION}")
    request(emulator.told["metadata"], "GET", PATH, headers={"Metadata": "true"})
    wrong = "/metadata/ScheduledEvent?api-version=1"
    request(emulator.told["machines"]["db"], "GET", wrong, headers={"Metadata": "true"})

    seen = emulator.ask("GET", "/emulator/requests")["requests"]

    asked = ("machine", "method", "path", "route", "api_version", "status")
    assert [tuple(one[name] for name in asked) for one in seen] == [
        ("web-1", "GET", PATH, "scheduledevents", VERSION, 200),
        ("db", "POST", PATH, "scheduledevents", VERSION, 200),
        ("db", "GET", PATH, "scheduledevents", VERSION, 400),
        (None, "GET", PATH, "scheduledevents", None, 403),
        ("db", "GET", "/metadata/ScheduledEvent", "other", "1", 404),
    ]
    first, second, *_ = (datetime.fromisoformat(one["at"]) for one in seen)
    assert second - first == timedelta(seconds=5)


def test_a_stranger_is_told_of_in_the_log_with_where_to_ask(tmp_path: Path) -> None:
    with EmulatorProcess(tmp_path / "log", *FLEET) as emulator:
        request(emulator.told["metadata"], "GET", PATH, headers={"Metadata": "true"})

    told = (tmp_path / "log").read_text()
    assert "turned away: ask at the address that plays a VM, see `machines`" in told


def test_one_address_knows_vms_by_theirs(emulator: EmulatorProcess) -> None:
    emulator.announce("Freeze", "db")

    reply = request(
        emulator.told["metadata"],
        "GET",
        f"{PATH}?api-version={VERSION}",
        source="127.0.1.10",
        headers={"Metadata": "true"},
    )

    (event,) = reply.json["Events"]
    assert event["Resources"] == ["db"]


def test_nobody_without_the_token_tells_the_time(emulator: EmulatorProcess) -> None:
    path = "/fabric/v1/emulator/clock"
    for headers in ({}, {"Authorization": "Bearer guess"}):
        assert request(emulator.told["control"], "GET", path, headers=headers).status == 401


def test_the_emulator_describes_what_it_adds(emulator: EmulatorProcess) -> None:
    paths = emulator.ask("GET", "/openapi.json")["paths"]

    added = {path.partition("/emulator/")[2] for path in paths if "/emulator/" in path}
    assert added == {
        "clock", "clock/advance", "idle", "reset", "seed", "requests", "addresses", "faults", "faults/{fault}",
    }  # fmt: skip


def test_a_fast_clock_brings_the_event_in_no_time(tmp_path: Path) -> None:
    with EmulatorProcess(tmp_path / "log", "--speed", "3600") as emulator:
        event = emulator.announce("Freeze", "vm-0", duration_seconds=9)
        notice = datetime.fromisoformat(event["not_before"]) - datetime.fromisoformat(
            event["announced_at"]
        )
        deadline = time.monotonic() + 30
        while emulator.seen_by("vm-0"):
            assert time.monotonic() < deadline
            time.sleep(0.05)

        record = emulator.ask("GET", f"/events/{event['event_id']}")

    assert timedelta(minutes=15) <= notice <= timedelta(minutes=15, seconds=5)
    assert record["status"] == "Completed"
    assert record["started_at"] >= event["not_before"]


def test_what_is_not_kept_is_gone_and_what_is_kept_is_there_again(tmp_path: Path) -> None:
    log, kept = tmp_path / "log", tmp_path / "kept"
    with EmulatorProcess(log) as emulator:
        passing = Path(emulator.told["data"])
        assert passing.is_dir()
    assert not passing.exists()

    with EmulatorProcess(log, "--clock", "manual", "--data", str(kept)) as emulator:
        event = emulator.announce("Reboot", "vm-0")["event_id"]
        assert emulator.try_to("POST", "/emulator/reset", {}).status == 409
    with EmulatorProcess(log, "--clock", "manual", "--data", str(kept)) as emulator:
        (found,) = emulator.guest("vm-0").json["Events"]
    assert found["EventId"] == event


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_or_the_end_of_its_terminal_ends_it_cleanly(tmp_path: Path, number: int) -> None:
    with EmulatorProcess(tmp_path / "log") as emulator:
        emulator.process.send_signal(number)
        assert emulator.process.wait(30) == 0
    assert not Path(emulator.told["data"]).exists()


def test_who_starts_it_by_nohup_keeps_it(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        emulator = EmulatorProcess(tmp_path / "log")
    finally:
        signal.signal(signal.SIGHUP, before)
    with emulator:
        emulator.process.send_signal(signal.SIGHUP)
        # Whatever signals there are, they are heard before the next request.
        assert emulator.guest("vm-0").status == 200
        assert emulator.guest("vm-0").status == 200


def test_a_fleet_file_says_which_vms_there_are(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    scope = '[[scope]]\nname = "{0}"\nkind = "standalone"\n  [[scope.machine]]\n  name = "vm"\n'
    fleet.write_text(scope.format("one") + scope.format("two"))
    with EmulatorProcess(tmp_path / "log", "--fleet", str(fleet)) as emulator:
        names = list(emulator.told["machines"])
        answers = [emulator.guest(name).status for name in names]

    assert len(names) == 2
    assert answers == [200, 200]


def test_commands_find_it_by_its_directory(
    emulator: EmulatorProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data", str(emulator.told["data"])]
    before = now_of(emulator)

    assert main(["clock", "advance", "15m", "--json", *data]) == 0
    told = json.loads(capsys.readouterr().out)
    later = before + timedelta(minutes=30)
    assert main(["clock", "advance", "--to", f"{later:%Y-%m-%dT%H:%M:%SZ}", *data]) == 0
    assert main(["clock", *data]) == 0

    assert datetime.fromisoformat(told["now"]) == before + timedelta(minutes=15)
    assert capsys.readouterr().out == 2 * f"{later:%Y-%m-%dT%H:%M:%SZ}, standing still\n"


def test_owners_commands_speak_to_it_and_nobody_needs_to_log_in(
    emulator: EmulatorProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data", str(emulator.told["data"])]

    assert main(["whoami", "--json", *data]) == 0
    assert json.loads(capsys.readouterr().out)["role"] == "operator"
    assert main(["restart", "db", *data]) == 0
    assert [kind for kind, *_ in emulator.seen_by("db")] == ["Reboot"]
    assert main(["login", *data]) == 3
    assert "an emulator needs no login" in capsys.readouterr().err


def test_whoever_was_added_logs_in_until_revoked(
    emulator: EmulatorProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data", str(emulator.told["data"])]
    file = tmp_path / "shop.json"
    assert main(["principal", "add", "shop", "--role", "reader", "--json", *data]) == 0
    file.write_text(capsys.readouterr().out)
    shop = ["--credentials", str(file), *data]

    assert main(["whoami", "--json", *shop]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "shop"
    emulator.ask("POST", "/principals/shop/revoke", {})
    assert main(["whoami", *shop]) == 3


def test_azure_s_own_clients_are_told_to_go_elsewhere(
    emulator: EmulatorProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["env", "--data", str(emulator.told["data"])]) == 3
    assert "let them talk to `forewarn serve`" in capsys.readouterr().err


def test_an_emulator_that_keeps_nothing_is_not_backed_up(
    emulator: EmulatorProcess, tmp_path: Path
) -> None:
    asked = {"path": str(tmp_path / "backup.db")}

    assert emulator.try_to("POST", "/backup", asked).status == 409
