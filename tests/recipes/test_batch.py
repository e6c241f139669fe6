"""A batch job over two reboots: it goes on from its checkpoint, and nothing is done twice or never."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from tests.recipes.machines import A_DAY, PATIENCE_SECONDS, Vm, wait_until
from tests.recipes.pages import Page

from forewarn.testing.scheduled_events import ScheduledEvents

pytestmark = [pytest.mark.recipes, pytest.mark.daemons("start-stop-daemon")]

PAGE: Final = Page("batch")


class Batch(Vm):
    """A VM with the page's job, which dpkg's start-stop-daemon starts instead of systemd."""

    def set_up(self) -> None:
        self.write("/usr/local/bin/job", PAGE.file("/usr/local/bin/job")).chmod(0o755)
        self.path("var/lib/batch").mkdir()
        pid = self.path("run/batch.pid")
        self.pid_files = [pid]
        self.command = (
            f"start-stop-daemon --start --background --make-pidfile --pidfile {pid} "
            f"--output {self.path('var/log/job')} --exec {self.path('usr/local/bin/job')}"
        )
        self.write(
            "/etc/forewarn/batch.env",
            PAGE.file("/etc/forewarn/batch.env"),
            PID=f"cat {pid}",
            START=self.command,
        )
        self.type(PAGE.lines[0])

    def start_job(self) -> None:
        self.type(self.command)
        wait_until(lambda: self.beginnings, "the job works")

    @property
    def beginnings(self) -> list[int]:
        """Where the job began, each time that it did."""
        file = self.path("var/log/job")
        text = file.read_text() if file.exists() else ""
        return [int(number) for number in re.findall(r"^from (\d+)$", text, re.MULTILINE)]

    @property
    def checkpoint(self) -> dict[str, int]:
        found: dict[str, int] = json.loads(self.path("var/lib/batch/checkpoint").read_text())
        return found

    @property
    def is_at_work(self) -> bool:
        pid = self.path("run/batch.pid").read_text().strip()
        status = Path(f"/proc/{pid}/status")
        return status.exists() and not re.search(r"^State:\s+Z", status.read_text(), re.MULTILINE)

    def run_hook(self, phase: str, *, seconds: float = A_DAY, attempt: int = 1) -> tuple[int, str]:
        with self.hook(f"{phase}/50-batch", seconds=seconds, attempt=attempt) as hook:
            _, said = hook.communicate(timeout=PATIENCE_SECONDS)
            return hook.returncode, said


@pytest.fixture
def vm(
    folder: Path, net: str, power: Callable[[Vm], None], scheduled_events: ScheduledEvents
) -> Batch:
    vm = Batch("web-0", folder, net=net, host=4, url=scheduled_events.url)
    power(vm)
    vm.set_up()
    return vm


def reboot(vm: Batch, events: ScheduledEvents) -> int:
    """Reboot the VM, and wait until the job goes on; where its checkpoint was is told."""
    count = len(vm.beginnings)
    event = events.reboot("web-0")
    wait_until(lambda: event.started, "the agent approves")
    assert not vm.is_at_work
    reached = vm.checkpoint
    assert reached["sum"] == sum(range(reached["next"]))
    vm.power_off()
    vm.start_agent()
    events.advance_to_next()
    wait_until(lambda: len(vm.beginnings) > count, "the job is started again")
    return reached["next"]


def test_a_job_goes_on_from_its_checkpoint_after_each_reboot(
    vm: Batch, scheduled_events: ScheduledEvents
) -> None:
    vm.install(PAGE)
    vm.start_agent()
    vm.start_job()

    first = reboot(vm, scheduled_events)
    second = reboot(vm, scheduled_events)

    assert vm.beginnings == [0, first, second]
    assert vm.is_at_work


def test_a_freeze_does_not_bother_the_job(vm: Batch, scheduled_events: ScheduledEvents) -> None:
    vm.install(PAGE)
    vm.start_agent()
    vm.start_job()

    event = scheduled_events.freeze("web-0", duration=9)
    wait_until(lambda: event.started, "the agent approves")
    scheduled_events.advance_to_next()

    assert (event.completed, vm.is_at_work, vm.beginnings) == (True, True, [0])


def test_where_no_job_runs_none_is_started(vm: Batch) -> None:
    assert vm.run_hook("prepare")[0] == 70


def test_what_cannot_tell_the_job_is_no_reason_to_believe_there_is_none(vm: Batch) -> None:
    with vm.path("etc/forewarn/batch.env").open("a") as file:
        file.write('PID="sistemctl show -P MainPID batch"\n')

    ended, said = vm.run_hook("prepare")

    assert ended == 1
    assert "PID cannot be run: sistemctl show" in said


def test_a_hook_that_is_run_twice_does_the_same(vm: Batch) -> None:
    vm.start_job()

    statuses = [
        vm.run_hook("prepare")[0],
        vm.run_hook("prepare", attempt=2)[0],
        vm.run_hook("undo")[0],
        vm.run_hook("undo")[0],
    ]

    assert statuses == [0, 0, 0, 70]
    wait_until(lambda: vm.beginnings == [0, vm.checkpoint["next"]], "the job goes on")


def test_a_job_that_was_done_is_not_begun_again(vm: Batch) -> None:
    vm.start_job()
    vm.path("var/lib/batch/finished").touch()

    assert [vm.run_hook(phase)[0] for phase in ("prepare", "undo")] == [0, 70]
    assert vm.beginnings == [0]


def test_a_job_that_dies_of_the_question_is_told_of(vm: Batch) -> None:
    job = vm.path("usr/local/bin/job")
    job.write_text(job.read_text().replace("SIGUSR1,", "SIGUSR2,"))
    vm.start_job()

    ended, said = vm.run_hook("prepare")

    assert ended == 1
    assert re.search(r"job \d+ ended without a new checkpoint in /", said)
    assert not list(vm.path("var/lib/batch").iterdir())


def test_a_job_that_works_on_is_told_of_and_left_alone(vm: Batch) -> None:
    job = vm.path("usr/local/bin/job")
    job.write_text(job.read_text().replace("    if asked:", "    if not asked and not state:"))
    vm.start_job()

    late = vm.run_hook("prepare", seconds=2)
    with vm.hook("prepare/50-batch", seconds=A_DAY) as hook:
        wait_until(lambda: list(vm.path("var/lib/batch").iterdir()), "the job was asked")
        hook.terminate()
        _, said = hook.communicate(timeout=PATIENCE_SECONDS)

    assert (late[0], hook.returncode) == (1, 1)
    assert "works still: it did not end within the time there is" in late[1]
    assert "works still: it did not end within the time there is" in said
    assert vm.is_at_work
