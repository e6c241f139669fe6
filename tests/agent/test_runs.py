"""Runs of hooks: the contract for both kinds, and what only real processes can do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forewarn.agent.runs import Absent, CutOff, Going, Look, Over, ProcessRuns, Runs
from forewarn.clocks import SimulatedClock
from forewarn.errors import Unavailable
from forewarn.testing.runs_contract import RUN, RunsContract
from forewarn.testing.simulated_runs import Manner, Obedience, SimulatedRuns

HOUR = timedelta(hours=1)
PATIENCE_SECONDS = 20


def eventually(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until, "it never came to that"
        time.sleep(0.005)


class TestSimulatedRuns(RunsContract):
    @pytest.fixture(autouse=True)
    def _prepare(self) -> None:
        self.clock = SimulatedClock(datetime(2030, 1, 1, tzinfo=UTC))
        codes = {f"ends {code}": Manner(code) for code in (0, 1, 70, 255)}
        hangs = {one.value: Manner(0, HOUR, one) for one in Obedience}
        self.simulated = SimulatedRuns(self.clock.now, {**codes, **hangs})

    def runs(self) -> Runs:
        return self.simulated

    def ending(self, code: int) -> tuple[str, ...]:
        return (f"ends {code}",)

    def hanging(self, obedience: Obedience) -> tuple[str, ...]:
        return (obedience.value,)

    def until(self, condition: Callable[[], bool]) -> None:
        self.clock.advance(timedelta(seconds=1))
        assert condition()

    def until_it_listens(self) -> None:
        self.clock.advance(timedelta(seconds=1))

    def test_a_hook_takes_its_time(self) -> None:
        self.simulated.begin(RUN, (Obedience.ENDS.value,), {})

        self.clock.advance(HOUR)

        assert self.simulated.look(RUN) == Over(0)
        assert self.simulated.all[0].ended == self.clock.now()

    def test_a_reboot_cuts_off_what_goes_on(self) -> None:
        self.simulated.begin(RUN, (Obedience.ENDS.value,), {})
        self.simulated.begin("EVENT/undo-0-1", ("no such hook",), {})

        self.simulated.cut_off()

        assert self.simulated.look(RUN) == CutOff()
        assert self.simulated.look("EVENT/undo-0-1") == Over(127)
        assert self.simulated.kept == (RUN, "EVENT/undo-0-1")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "runs"
    # Whatever a test left running.
    for pid in tmp_path.glob("*/*/*/pid"):
        with suppress(ProcessLookupError, ValueError):
            os.killpg(int(pid.read_text()), signal.SIGKILL)


class TestProcessRuns(RunsContract):
    @pytest.fixture(autouse=True)
    def _prepare(self, place: Path, tmp_path: Path) -> None:
        self.place = place
        self.listens = tmp_path / "listens"

    def runs(self) -> ProcessRuns:
        return ProcessRuns(self.place, os.environ, lambda: None)

    def ending(self, code: int) -> tuple[str, ...]:
        return ("/bin/sh", "-c", f"exit {code}")

    def hanging(self, obedience: Obedience) -> tuple[str, ...]:
        traps = {
            Obedience.ENDS: "trap - TERM",
            Obedience.IGNORES: "trap '' TERM",
            Obedience.SAYS_READY: "trap 'exit 0' TERM",
        }
        # A shell heeds its trap once its child is over.
        line = f"{traps[obedience]}; touch {self.listens}; while :; do sleep 0.05; done"
        return ("/bin/sh", "-c", line)

    def until(self, condition: Callable[[], bool]) -> None:
        eventually(condition)

    def until_it_listens(self) -> None:
        eventually(self.listens.exists)


def begun(place: Path, *command: str, **environment: str) -> ProcessRuns:
    runs = ProcessRuns(place, os.environ, lambda: None)
    runs.begin(RUN, command, environment)
    return runs


def ended(runs: ProcessRuns) -> Look:
    eventually(lambda: not isinstance(runs.look(RUN), Going))
    return runs.look(RUN)


def test_whoever_waits_is_woken_when_a_run_is_over(place: Path) -> None:
    woken = threading.Event()
    runs = ProcessRuns(place, os.environ, woken.set)

    runs.begin(RUN, ("/bin/true",), {})

    assert woken.wait(PATIENCE_SECONDS)
    assert runs.look(RUN) == Over(0)


def test_a_hook_has_the_agents_environment_and_its_own(place: Path, tmp_path: Path) -> None:
    runs = ProcessRuns(place, {**os.environ, "BOTH": "agent", "MINE": "yes"}, lambda: None)
    told = tmp_path / "told"
    line = f'echo "$BOTH $MINE $EVENT_DESCRIPTION $(pwd)" > {told}'

    runs.begin(RUN, ("/bin/sh", "-c", line), {"BOTH": "event", "EVENT_DESCRIPTION": "a\0b \ud800"})

    assert ended(runs) == Over(0)
    assert told.read_text() == "event yes ab ? /\n"


def test_what_a_hook_says_goes_to_the_agents_log(place: Path) -> None:
    """On its standard error: the other one is for nobody."""
    program = (
        "import sys, os, time; from pathlib import Path; from forewarn.agent.runs import *;"
        "runs = ProcessRuns(Path(sys.argv[1]), os.environ, lambda: None);"
        "runs.begin('E/prepare-0-1', ('/bin/sh', '-c', 'echo said; echo warned >&2'), {});\n"
        "while runs.look('E/prepare-0-1') == Going(): time.sleep(0.01)"
    )

    said = subprocess.run(
        [sys.executable, "-c", program, str(place)], capture_output=True, text=True, check=True
    )

    assert (said.stdout, said.stderr) == ("", "said\nwarned\n")


@pytest.mark.parametrize(
    ("content", "mode", "code"),
    [(None, 0, 127), ("#!/bin/sh\n", 0o600, 126), ("#!/no/such/interpreter\n", 0o700, 127)],
    ids=["missing", "not executable", "bad interpreter"],
)
def test_a_hook_that_cannot_be_run_has_failed(
    place: Path, tmp_path: Path, content: str | None, mode: int, code: int
) -> None:
    hook = tmp_path / "hook"
    if content is not None:
        hook.write_text(content)
        hook.chmod(mode)

    runs = begun(place, str(hook))

    assert ended(runs) in (Over(code), Over(126))


def test_a_hook_that_no_process_can_be_made_of_has_failed(place: Path) -> None:
    assert ended(begun(place, "a\0b")) == Over(126)
    assert ended(begun(place.parent / "other", "x" * 10_000_000)) == Over(126)


def test_where_no_run_can_be_kept_nothing_is_begun(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("not a directory")
    runs = ProcessRuns(tmp_path / "runs", os.environ, lambda: None)

    with pytest.raises(Unavailable, match="cannot keep runs of hooks"):
        runs.begin(RUN, ("/bin/true",), {})


def test_a_hook_that_leaves_a_daemon_behind_is_over(place: Path, tmp_path: Path) -> None:
    left = tmp_path / "left"
    line = f"setsid sh -c 'echo $$ > {left}; exec sleep 60' > /dev/null 2>&1 & exit 0"

    runs = begun(place, "/bin/sh", "-c", line)

    try:
        assert ended(runs) == Over(0)
        eventually(lambda: left.exists() and left.read_text() != "")
    finally:
        os.kill(int(left.read_text()), signal.SIGKILL)


def test_a_hook_is_cut_off_though_a_daemon_that_it_left_goes_on(
    place: Path, tmp_path: Path
) -> None:
    """What has left the hook's group holds nothing up."""
    left = tmp_path / "left"
    line = f"setsid sh -c 'echo $$ > {left}; exec sleep 60' & trap '' TERM; wait; sleep 60"
    runs = begun(place, "/bin/sh", "-c", line)
    eventually(lambda: left.exists() and left.read_text() != "")

    try:
        runs.signal(RUN, signal.SIGTERM)
        assert runs.look(RUN) == Going()
        runs.signal(RUN, signal.SIGKILL)
        assert ended(runs) == CutOff()
    finally:
        os.kill(int(left.read_text()), signal.SIGKILL)


def test_a_hook_goes_on_though_the_shell_around_it_is_gone(place: Path) -> None:
    runs = begun(place, "/bin/sleep", "60")
    shell = (place / RUN / "pid").read_text
    eventually(lambda: (place / RUN / "pid").exists() and shell() != "")
    eventually(lambda: len(children(int(shell()))) == 1)

    os.kill(int(shell()), signal.SIGKILL)
    later = ProcessRuns(place, os.environ, lambda: None)
    eventually(lambda: not Path(f"/proc/{int(shell())}/fd").exists() or gone(int(shell())))

    assert later.look(RUN) == Going()
    later.signal(RUN, signal.SIGTERM)
    assert ended(runs) == CutOff()


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def gone(pid: int) -> bool:
    try:
        return ") Z" in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


def test_a_stranger_with_the_number_of_a_hook_gets_no_signal(place: Path) -> None:
    """Numbers of processes are used again."""
    runs = begun(place, "/bin/true")
    assert ended(runs) == Over(0)
    (place / RUN / "exit").unlink()
    with subprocess.Popen(["/bin/sleep", "60"], start_new_session=True) as stranger:
        (place / RUN / "pid").write_text(f"{stranger.pid}\n")
        later = ProcessRuns(place, os.environ, lambda: None)

        later.signal(RUN, signal.SIGKILL)

        assert later.look(RUN) == CutOff()
        with pytest.raises(subprocess.TimeoutExpired):
            stranger.wait(0.2)
        stranger.kill()


def test_a_run_whose_processes_said_nothing_yet_goes_on(place: Path) -> None:
    """Between its first process and that one's first word."""
    runs = begun(place, "/bin/sleep", "60")
    eventually(lambda: (place / RUN / "pid").exists() and (place / RUN / "pid").read_text() != "")
    (place / RUN / "pid").write_text("")
    later = ProcessRuns(place, os.environ, lambda: None)

    later.signal(RUN, signal.SIGKILL)

    assert later.look(RUN) == Going()
    runs.signal(RUN, signal.SIGKILL)
    assert ended(runs) == CutOff()


def test_a_run_whose_agent_died_before_its_first_process_was_never_begun(place: Path) -> None:
    (place / RUN).mkdir(parents=True)
    (place / RUN / "lock").touch()
    runs = ProcessRuns(place, os.environ, lambda: None)

    assert runs.look(RUN) == Absent()
    runs.begin(RUN, ("/bin/sh", "-c", "exit 3"), {})

    assert ended(runs) == Over(3)


def test_an_agent_that_is_killed_leaves_its_hooks_and_the_next_one_knows(
    place: Path, tmp_path: Path
) -> None:
    """Keeps N7: SIGKILL to the agent's whole group does not reach its hooks."""
    release = tmp_path / "release"
    line = f"while [ ! -e {release} ]; do sleep 0.01; done; exit 70"
    program = (
        "import sys, os, time; from pathlib import Path; from forewarn.agent.runs import *;"
        "runs = ProcessRuns(Path(sys.argv[1]), os.environ, lambda: None);"
        f"runs.begin({RUN!r}, ('/bin/sh', '-c', sys.argv[2]), {{}}); print(flush=True);"
        "time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(place), line],
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as agent:
        assert agent.stdout is not None
        agent.stdout.readline()
        os.killpg(agent.pid, signal.SIGKILL)
    later = ProcessRuns(place, os.environ, lambda: None)

    assert later.look(RUN) == Going()
    release.touch()

    assert ended(later) == Over(70)
