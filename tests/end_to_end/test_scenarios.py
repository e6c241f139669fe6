"""Scenarios, played over real sockets: what VMs really read, and how the player fails."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from forewarn.cli.client import Client
from forewarn.cli.main import main
from forewarn.cli.playing import Outcome, Player
from forewarn.cli.transport import Service, Session, Transport
from forewarn.config.scenarios import Scenario, find_scenario, parse_scenario, shipped
from forewarn.testing.emulators import EmulatorProcess
from forewarn.testing.handlers import ApprovingHandler
from forewarn.testing.processes import PATH, VERSION, ServiceProcess, request

pytestmark = pytest.mark.end_to_end

Emulators = Callable[..., EmulatorProcess]
WEB_0 = '[[step]]\nannounce = "Reboot"\nvm = "web-0"\nas = "reboot"\n'
FLEET = 'vm = "web-0"\n'


@pytest.fixture(scope="module")
def emulators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulators]:
    """Emulators by their fleet, on the manual clock; each is there once, and begins anew."""
    started: dict[str, EmulatorProcess] = {}
    with ExitStack() as stack:

        def find(toml: str) -> EmulatorProcess:
            if toml not in started:
                home = tmp_path_factory.mktemp("emulator")
                (home / "fleet.toml").write_text(toml)
                options = ("--clock", "manual", "--fleet", str(home / "fleet.toml"))
                started[toml] = stack.enter_context(EmulatorProcess(home / "log", *options))
            started[toml].ask("POST", "/emulator/reset", {})
            return started[toml]

        yield find


@pytest.fixture
def emulator(emulators: Emulators) -> EmulatorProcess:
    """An emulator of the only VM web-0."""
    return emulators(find_scenario("live-migration").fleet_toml)


def client_of(emulator: EmulatorProcess) -> Client:
    token = emulator.told["token"]
    service = Service(url=emulator.told["control"], token=token, remedy="start it")
    return Client(Transport(service, Session(token)))


def written(text: str) -> Scenario:
    return parse_scenario(FLEET + text, "mine.toml", "mine")


class Told(NamedTuple):
    """One event of a scenario: what guests read of it, and how long it was so, in seconds."""

    type: str
    source: str
    resources: tuple[str, ...]
    duration: int
    description: str
    scheduled: int
    started: int | None


MAINTENANCE = "Host server is undergoing maintenance."
RESTARTED = "Virtual machine is going to be restarted as requested by authorized user."
REDEPLOYED = "Virtual machine is going to be redeployed as requested by authorized user."
MIGRATION = (
    "Virtual machine is being paused because of a memory-preserving Live Migration operation."
)
REPAIR = "Host server is undergoing an emergency repair."
FAILURE = "Virtual machine has encountered a failure."
WEEK = 7 * 24 * 3600
ALL = ("web-0", "web-1", "web-2")
# Every notice has two seconds more than it must have.
STORIES = {
    "live-migration": [Told("Freeze", "Platform", ALL[:1], 5, MIGRATION, 902, 300)],
    "host-maintenance": [Told("Freeze", "Platform", ALL[:1], 9, MAINTENANCE, 902, 600)],
    "user-reboot": [Told("Reboot", "User", ALL[:1], -1, RESTARTED, 902, 600)],
    "user-redeploy": [Told("Redeploy", "User", ALL[:1], -1, REDEPLOYED, 902, 600)],
    "platform-redeploy": [Told("Redeploy", "Platform", ALL[:1], -1, MAINTENANCE, 902, 600)],
    "spot-eviction": [Told("Preempt", "Platform", ("cheap-0",), -1, "", 32, 30)],
    "terminate": [Told("Terminate", "User", ("batch_0",), -1, "", 302, 60)],
    "canceled-maintenance": [Told("Freeze", "Platform", ALL[:1], 9, MAINTENANCE, 480, None)],
    "predicted-hardware-failure": [
        Told("Redeploy", "Platform", ALL[:1], -1, REPAIR, WEEK + 2, 600)
    ],
    "actual-hardware-failure": [Told("Reboot", "Platform", ALL[:1], -1, FAILURE, 0, 600)],
    "rolling-update-domains": [
        Told("Reboot", "Platform", ("web-0",), 600, MAINTENANCE, 902, 600),
        Told("Reboot", "Platform", ("web-1",), 600, MAINTENANCE, 3302, 600),
        Told("Reboot", "Platform", ("web-2",), 600, MAINTENANCE, 5702, 600),
    ],
    "neighbors-event": [Told("Reboot", "User", ("web-0",), -1, RESTARTED, 902, 600)],
    "several-events": [
        *(Told("Reboot", "User", (name,), -1, RESTARTED, 902, 600) for name in ALL),
        Told("Redeploy", "User", ("web-1",), -1, REDEPLOYED, 360, None),
    ],
    "several-resources": [Told("Freeze", "Platform", ALL, 9, MAINTENANCE, 902, 600)],
    "approved-reboot": [Told("Reboot", "User", ALL[:1], -1, RESTARTED, 60, 60)],
}


def seconds_between(earlier: str, later: str) -> int:
    return round((datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds())


def told(read: dict[str, Any], record: dict[str, Any]) -> Told:
    """An event as a guest read it last, and as its record has its times."""
    began, over = record["started_at"], record["ended_at"]
    return Told(
        type=read["EventType"],
        source=read["EventSource"],
        resources=tuple(read["Resources"]),
        duration=read["DurationInSeconds"],
        description=read["Description"],
        scheduled=seconds_between(record["announced_at"], began or over),
        started=None if began is None else seconds_between(began, over),
    )


@pytest.mark.parametrize("name", sorted(STORIES))
def test_a_scenario_that_comes_with_forewarn_does_to_vms_what_azure_does(
    name: str, emulators: Emulators
) -> None:
    """Keeps N1: a VM reads of each event, and its status, when and as long as Azure shows it."""
    scenario = find_scenario(name)
    emulator = emulators(scenario.fleet_toml)
    client = client_of(emulator)
    read: dict[str, dict[str, Any]] = {}
    statuses: dict[str, list[str]] = {}

    for played in Player(client, scenario, client.clock()).play():
        assert played.outcome in {Outcome.DONE, Outcome.KEPT}, played
        # The player has its eyes, and we have ours: whoever is last to be hit tells it best.
        document = emulator.guest(scenario.fleet.machine_names[-1]).json
        if name == "neighbors-event":
            assert emulator.guest("db").json == {"DocumentIncarnation": 1, "Events": []}
        for event in document["Events"]:
            read[event["EventId"]] = event
            seen = statuses.setdefault(event["EventId"], [])
            if event["EventStatus"] not in seen:
                seen.append(event["EventStatus"])

    records = {one: emulator.ask("GET", f"/events/{one}") for one in read}
    assert sorted(told(read[one], records[one]) for one in read) == sorted(STORIES[name])
    for one, record in records.items():
        is_struck, is_off = name == "actual-hardware-failure", record["started_at"] is None
        expected = ["Started"] if is_struck else ["Scheduled"] if is_off else None
        assert statuses[one] == (expected or ["Scheduled", "Started"])
    assert emulator.ask("GET", "/events")["events"] == []
    # That an event stays Started for minutes is what Azure does, and no impact that hangs.
    assert "timed out" not in {
        entry["what"] for entry in emulator.ask("GET", "/journal")["entries"]
    }


# -- what is not kept ---------------------------------------------------------------------------

NOW = '[[step]]\nexpect = "Scheduled"\nevent = "reboot"\n'
WRONG = [
    ('[[step]]\nexpect = "Started"\nevent = "reboot"\nwithin = "5s"\n', "web-0 reads it as Sch"),
    ('[[step]]\nexpect = "gone"\nevent = "reboot"\n', "web-0 reads it as Scheduled"),
    (f'{NOW}type = "Freeze"\n', "EventType 'Reboot'"),
    (f'{NOW}source = "User"\n', "EventSource 'Platform'"),
    (f"{NOW}resources = []\n", "Resources ['web-0']"),
    (f'{NOW}not_before = "10m"\n', "NotBefore '"),
    (f'{NOW}duration = "9s"\n', "DurationInSeconds -1"),
    (f'{NOW}description = ""\n', f"Description '{MAINTENANCE}'"),
    (f"{NOW}incarnation = 9\n", "DocumentIncarnation 2"),
    (f'{NOW}at = "+16m5s"\n', "web-0 does not read it"),
    (
        '[[step]]\nexpect = "approval"\nevent = "reboot"\nwithin = "5m"\n',
        "nobody has approved it (this clock waits for no handler: play it with --speed 60)",
    ),
    (
        '[[step]]\nexpect = "approval"\nevent = "reboot"\nwithin = "1h"\n',
        "it is Started unapproved",
    ),
    ('[[step]]\nexpect = "answer"\nvm = "web-0"\nanswer = "429"\n', "web-0 is answered 200"),
    ('[[step]]\nannounce = "Reboot"\nvm = "web-0"\nnotice = "1s"\n', "below the minimum of 15m"),
    (
        '[[step]]\nannounce = "Freeze"\nvm = "web-0"\nas = ["a", "b"]\n',
        "`as` has 2 names, and it became 1 event(s)",
    ),
    ('[[step]]\nat = "+1h"\ncancel = "reboot"\n', "Completed: cannot cancel"),
]


@pytest.mark.parametrize(("step", "seen"), WRONG)
def test_what_does_not_come_true_is_not_kept_and_what_was_seen_is_said(
    step: str, seen: str, emulator: EmulatorProcess
) -> None:
    client = client_of(emulator)

    first, second = Player(client, written(WEB_0 + step), client.clock()).play()

    assert first.outcome is Outcome.DONE
    assert second.outcome is Outcome.NOT_KEPT
    assert seen in second.seen


def test_what_the_scenario_approved_itself_is_no_excuse(emulator: EmulatorProcess) -> None:
    steps = f'{WEB_0}[[step]]\napprove = "reboot"\nvm = "web-0"\n{NOW}'
    client = client_of(emulator)

    *_, last = Player(client, written(steps), client.clock()).play()

    assert (last.outcome, last.seen) == (Outcome.NOT_KEPT, "web-0 reads it as Started")


def test_an_expectation_that_comes_true_within_its_time_is_kept(emulator: EmulatorProcess) -> None:
    step = '[[step]]\nat = "+14m"\nexpect = "Started"\nevent = "reboot"\nwithin = "2m"\n'
    client = client_of(emulator)

    _, kept = Player(client, written(WEB_0 + step), client.clock()).play()

    assert kept.outcome is Outcome.KEPT
    # A sixtieth of the two minutes is how often it looks.
    assert timedelta(minutes=15, seconds=2) <= kept.after <= timedelta(minutes=15, seconds=4)


def test_after_a_step_that_is_refused_nothing_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], emulator: EmulatorProcess
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FLEET + WEB_0.replace('"reboot"', '["a", "b"]') + WEB_0)

    assert main(["scenario", "run", str(file), "--data", emulator.told["data"]]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert "not kept: announce Reboot" in lines[-2]
    assert lines[-1] == "NOT KEPT: 1 failed, 0 kept; 1 steps were not played"


def test_two_vms_of_one_name_are_told_apart(emulators: Emulators) -> None:
    machine = '[[scope]]\nname = "{0}"\n[[scope.machine]]\nname = "vm"\nhost = "h"\n'
    one = 'vm = "default/one/vm"\n'
    steps = [
        '[[step]]\nannounce = "Freeze"\nhost = "h"\nstarted_for = "1m"\nas = ["first", "second"]\n',
        '[[step]]\nexpect = "Scheduled"\nevent = "second"\n',
        f'[[step]]\nexpect = "gone"\nevent = "second"\n{one}',
        '[[step]]\nexpect = "Scheduled"\nevent = "first"\nresources = "default/one/vm"\n',
        f'[[step]]\napprove = "first"\n{one}',
        f'[[step]]\nexpect = "approval"\nevent = "first"\nwithin = "1m"\n{one}',
    ]
    text = "".join([machine.format("one"), machine.format("two"), *steps])
    scenario = parse_scenario(text, "mine.toml", "mine")
    client = client_of(emulators(scenario.fleet_toml))

    played = list(Player(client, scenario, client.clock()).play())

    assert [step.outcome for step in played].count(Outcome.KEPT) == 4, played
    assert played[1].what == "default/two/vm to read second as Scheduled"


# -- faults -------------------------------------------------------------------------------------


def test_faults_strike_whoever_is_named(emulators: Emulators) -> None:
    fleet = 'vm = ["web-0", "db"]\n'
    answer = '[[step]]\nexpect = "answer"\nvm = "{0}"\nanswer = "{1}"\n'
    text = "".join(
        [
            fleet,
            '[[step]]\nfault = "429"\nvm = "web-0"\ntimes = 2\n',
            *(answer.format("db", "200"), 2 * answer.format("web-0", "429")),
            answer.format("web-0", "200"),
            '[[step]]\nfault = "empty"\nlasts = "1m"\n',
            *(answer.format("db", "empty"), answer.format("web-0", "empty")),
            f'{answer.format("db", "200")}at = "+61s"\n',
            *('[[step]]\nfault = "reset"\ntimes = 1\n', answer.format("db", "broken")),
            *('[[step]]\nfault = "truncated"\ntimes = 1\n', answer.format("db", "broken")),
            *('[[step]]\nfault = "slow"\nvm = "db"\ntimes = 1\ndelay = "1h"\n',),
            answer.format("db", "none"),
        ]
    )
    scenario = parse_scenario(text, "mine.toml", "mine")
    client = client_of(emulators(scenario.fleet_toml))

    outcomes = [one.outcome for one in Player(client, scenario, client.clock()).play()]

    assert set(outcomes) == {Outcome.DONE, Outcome.KEPT}
    assert len(outcomes) == len(scenario.steps)


def test_a_fault_hides_the_event_from_who_reads_it_and_from_who_approves(
    emulator: EmulatorProcess,
) -> None:
    steps = f'{WEB_0}[[step]]\nfault = "500"\ntimes = 2\n{NOW}[[step]]\napprove = "reboot"\n'
    client = client_of(emulator)

    *_, read, approved = Player(client, written(f'{steps}vm = "web-0"\n'), client.clock()).play()

    assert (read.outcome, read.seen) == (Outcome.NOT_KEPT, "web-0 is answered 500")
    assert (approved.outcome, approved.seen) == (Outcome.NOT_KEPT, "web-0 was answered 500")


# -- handlers -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatorProcess]:
    log = tmp_path_factory.mktemp("fast") / "log"
    with EmulatorProcess(log, "--vm", "web-0", "--speed", "300") as emulator:
        yield emulator


def run(emulator: EmulatorProcess, name: str, *options: str) -> int:
    return main(["scenario", "run", name, "--data", emulator.told["data"], *options])


def test_a_handler_that_approves_keeps_what_is_expected_of_it(
    fast: EmulatorProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    with ApprovingHandler(fast.told["machines"]["web-0"], "web-0"):
        status = run(fast, "handler-approves", "--json")

    *_, approval, gone, verdict = map(json.loads, capsys.readouterr().out.splitlines())
    assert (status, verdict["verdict"], verdict["kept"]) == (0, "kept", 2)
    assert approval["what"] == "web-0 to approve reboot within 5m"
    assert "web-0 (guest) approved it" in approval["seen"]
    assert gone["outcome"] == "kept"


def test_without_a_handler_it_is_not_kept(
    fast: EmulatorProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(fast, "handler-approves", "--attach", "0s") == 1

    lines = capsys.readouterr().out.splitlines()
    assert "no handler asked within 0s: it goes on without" in lines
    assert any("approve reboot within 5m; seen: nobody has approved it" in line for line in lines)
    assert lines[-1].startswith("NOT KEPT: ")


def test_what_an_approval_made_early_is_passed_over_and_the_rest_is_judged(
    fast: EmulatorProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    with ApprovingHandler(fast.told["machines"]["web-0"], "web-0"):
        status = run(fast, "canceled-maintenance", "--json")

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    outcomes = [line["outcome"] for line in lines if "step" in line]
    assert (status, lines[-1]["verdict"]) == (0, "kept")
    # Whether the first look came before the handler's is chance.
    assert outcomes[2:] == ["passed over", "passed over", "kept", "kept"]
    assert "web-0 approved maintenance at" in lines[-2 - 2]["seen"]


def test_a_handler_reads_the_end_before_the_emulator_is_gone(tmp_path: Path) -> None:
    freeze = '[[step]]\nannounce = "Freeze"\nvm = "web-0"\nas = "reboot"\n'
    end = '[[step]]\nat = "+20m"\nexpect = "gone"\nevent = "reboot"\n'
    (tmp_path / "mine.toml").write_text(f"{FLEET}{freeze}{end}")
    documents: list[Any] = []
    with started(tmp_path, "--speed", "600") as (process, told):
        url = told["machines"]["web-0"]
        # A handler that looks every now and then, as most do.
        with suppress(OSError):
            while True:
                target = f"{PATH}?api-version={VERSION}"
                documents.append(request(url, "GET", target, headers={"Metadata": "true"}).json)
                time.sleep(0.7)
        assert process.wait(30) == 0

    assert documents[0]["Events"] != []
    assert documents[-1]["Events"] == []


# -- which emulator -----------------------------------------------------------------------------


def test_an_emulator_of_its_own_is_started_and_gone_afterwards(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["scenario", "run", "live-migration", "--seed", "7", "--json"]

    status = main(words)

    first, *steps, verdict = map(json.loads, capsys.readouterr().out.splitlines())
    assert status == 0
    assert (first["scenario"], first["speed"]) == ("live-migration", 0.0)
    assert steps[0]["at"] == first["now"] == "2030-01-01T12:00:00Z"
    assert [one["after_seconds"] for one in steps] == [0, 0, 840, 902, 1140, 1202]
    assert verdict == {
        "verdict": "kept", "kept": 5, "not_kept": [], "passed_over": 0, "not_played": 0,
    }  # fmt: skip
    port = int(first["machines"]["web-0"].rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()


def test_its_clock_can_go_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenario", "run", "actual-hardware-failure", "--speed", "600"]) == 0
    assert "KEPT: 3 expectations" in capsys.readouterr().out


def test_the_same_seed_is_the_same_story_in_an_emulator_that_runs(
    emulator: EmulatorProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(emulator, "live-migration", "--seed", "7") == 0
    first = capsys.readouterr().out
    assert run(emulator, "live-migration", "--seed", "7") == 0

    assert capsys.readouterr().out == first


@pytest.mark.parametrize(
    ("options", "status", "complaint"),
    [
        (["--speed", "60"], 2, "has a clock and ports already: leave --clock, --speed and --port"),
        (["--attach", "soon"], 2, "'soon' is not a duration"),
    ],
)
def test_an_emulator_that_runs_keeps_its_clock(
    options: list[str],
    status: int,
    complaint: str,
    emulator: EmulatorProcess,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(emulator, "live-migration", *options) == status
    assert complaint in capsys.readouterr().err


def test_an_emulator_without_the_scenario_s_vms_is_refused_before_it_begins_anew(
    emulator: EmulatorProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    emulator.announce("Freeze", "web-0")

    assert run(emulator, "several-events") == 3

    assert "the emulator has no VM web-1, web-2" in capsys.readouterr().err
    assert emulator.seen_by("web-0")


def test_a_service_that_is_no_emulator_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = '[[scope]]\nname = "web-0"\nkind = "standalone"\n[[scope.machine]]\nname = "web-0"\n'
    with ServiceProcess(tmp_path, fleet) as service:
        assert main(["scenario", "run", "live-migration", "--data", str(service.data)]) == 3

    assert "this service is no emulator" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--speed", "0"], "--speed 0: give more than 0"),
        (["--clock", "manual", "--speed", "2"], "--clock manual has no --speed"),
        (["--port", "70000"], "--port 70000"),
    ],
)
def test_options_that_no_emulator_takes_cannot_be_understood(
    options: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scenario", "run", "live-migration", *options]) == 2
    assert capsys.readouterr().err.startswith(f"forewarn: {complaint}")


def test_why_no_emulator_could_be_started_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["scenario", "run", "live-migration", "--port", port]) == 3

    told = capsys.readouterr().err
    assert told.startswith("forewarn: no emulator could be started: ")
    assert port in told


def test_an_emulator_that_dies_meanwhile_is_said_to_have(tmp_path: Path) -> None:
    text = f'{FLEET}{WEB_0}[[step]]\nat = "+1h"\nexpect = "gone"\nevent = "reboot"\n'
    (tmp_path / "mine.toml").write_text(text)
    with started(tmp_path, "--clock", "real") as (process, first):
        owner = emulator_under(process.pid)
        os.kill(owner, signal.SIGKILL)
        assert process.wait(30) == 6
        assert process.stderr is not None
        assert "the scenario's own emulator has ended" in process.stderr.read()
    assert first["machines"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_whoever_ends_it_ends_its_emulator_too(tmp_path: Path, number: int) -> None:
    text = f'{FLEET}{WEB_0}[[step]]\nat = "+1h"\nexpect = "gone"\nevent = "reboot"\n'
    (tmp_path / "mine.toml").write_text(text)
    with started(tmp_path, "--clock", "real") as (process, _):
        owner = emulator_under(process.pid)

        process.send_signal(number)

        assert process.wait(30) == 128 + number
        assert not Path(f"/proc/{owner}").exists()


class started:  # noqa: N801 - read as a word
    """`forewarn scenario run mine.toml` in a process of its own, once it has told where VMs are."""

    def __init__(self, home: Path, *options: str) -> None:
        words = ["scenario", "run", "./mine.toml", "--json", *options]
        kept = {k: v for k, v in os.environ.items() if not k.startswith("FOREWARN_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "forewarn", *words],
            cwd=home, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**kept, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip

    def __enter__(self) -> tuple[subprocess.Popen[str], dict[str, Any]]:
        assert self.process.stdout is not None
        first = json.loads(self.process.stdout.readline())
        assert json.loads(self.process.stdout.readline())["outcome"] == "done"
        return self.process, first

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


def emulator_under(pid: int) -> int:
    """The process that another one has started."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.05)
    raise AssertionError("it has no emulator")


# -- list and show ------------------------------------------------------------------------------


def test_every_scenario_that_comes_with_forewarn_is_played_here() -> None:
    assert {*STORIES, "handler-approves"} == set(shipped())


def test_what_comes_with_forewarn_is_listed_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scenario", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["scenarios"]
    assert main(["scenario", "list"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [one["name"] for one in listed] == sorted(shipped())
    assert [row.split()[0] for row in rows[1:]] == sorted(shipped())

    assert main(["scenario", "show", "terminate"]) == 0
    copy = capsys.readouterr().out
    assert copy == shipped()["terminate"]
    (tmp_path / "copy.toml").write_text(copy)
    assert find_scenario(str(tmp_path / "copy.toml")).steps == find_scenario("terminate").steps
    assert main(["scenario", "show", "terminator"]) == 4
    assert main(["scenario", "run", "terminator"]) == 4


def test_a_file_with_faults_is_refused_line_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FLEET + WEB_0 + '[[step]]\ncancel = "rebot"\n')

    assert main(["scenario", "run", str(file)]) == 2
    told = capsys.readouterr().err
    assert f'{file}:7: step 2: no event before it is called "rebot": name one of reboot' in told
