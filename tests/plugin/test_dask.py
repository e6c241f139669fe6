"""dask-cloudprovider's AzurePreemptibleWorkerPlugin, unmodified, on a real scheduler and workers.

It was written against Azure, reads api-version 2019-08-01, and never approves. Preempt and Terminate
have it retire its worker: as soon as one is Started, or its own clock, which is not the emulator's,
has passed the NotBefore that it read, by an offset that may be negative.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from dask_cloudprovider.azure import AzurePreemptibleWorkerPlugin
from distributed import Client, Future, Scheduler, Worker

from forewarn.testing.emulators import EmulatorProcess

pytestmark = [
    pytest.mark.end_to_end,
    # Its own way to tell the time, deprecated since Python 3.12.
    pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning:dask_cloudprov"),
]

VERSION: Final = "2019-08-01"
SECONDS_MAX: Final = 60
# A spot VM for Preempt; for Terminate, VMs of a scale set, which is what Azure has it for.
EACH_KIND: Final = pytest.mark.parametrize(
    ("kind", "vm"), [("Preempt", "cheap-0"), ("Terminate", "batch_0")]
)


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[EmulatorProcess]:
    fleet = ("--spot", "cheap-0", "--scale-set", "batch:2")
    with EmulatorProcess(tmp_path / "log", "--clock", "manual", *fleet) as running:
        yield running


@dataclass(frozen=True, slots=True)
class Cluster:
    """Two workers: on one runs the handler under test; the other has nothing to fear."""

    scheduler: Scheduler
    client: Client

    @property
    def workers(self) -> set[str]:
        """Those that the scheduler knows."""
        return {str(state.name) for state in self.scheduler.workers.values()}

    async def computed_by(self, worker: str) -> tuple[Future, str]:
        """What this worker has computed and keeps, and its value: another one if computed again."""
        future = self.client.submit(
            lambda: uuid.uuid4().hex, workers=[worker], allow_other_workers=True, pure=False
        )
        return future, await future

    async def holders(self, future: Future) -> set[str]:
        names = {address: str(state.name) for address, state in self.scheduler.workers.items()}
        return {names[one] for one in (await self.client.who_has([future]))[future.key]}


@asynccontextmanager
async def cluster(
    emulator: EmulatorProcess, vm: str, folder: Path, *, offset_minutes: float = 0
) -> AsyncIterator[Cluster]:
    """A scheduler with the workers "doomed" and "spare"; the first is taken to run on this VM."""
    handler = AzurePreemptibleWorkerPlugin(
        poll_interval_s=0.02,
        metadata_url=f"{emulator.told['machines'][vm]}/metadata/scheduledevents?api-version={VERSION}",
        termination_offset_minutes=offset_minutes,
    )
    ports = {"host": "127.0.0.1", "port": 0, "dashboard_address": "127.0.0.1:0"}
    mine = {**ports, "nthreads": 1, "local_directory": str(folder)}
    async with (
        Scheduler(**ports) as scheduler,
        Worker(scheduler.address, name="doomed", plugins=[handler], **mine),
        Worker(scheduler.address, name="spare", **mine),
        Client(scheduler.address, asynchronous=True) as client,
    ):
        yield Cluster(scheduler, client)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not condition():
            await asyncio.sleep(0.02)


async def has_read(emulator: EmulatorProcess, vm: str) -> None:
    """Wait until the handler has read, and judged, what is on the wire now."""

    def reads() -> int:
        asked = emulator.ask("GET", "/emulator/requests")["requests"]
        return sum(one["machine"] == vm and one["api_version"] == VERSION for one in asked)

    # One may be under way, the next is judged before the one after it is sent.
    enough = reads() + 3
    await until(lambda: reads() >= enough)


def leave_the_present(emulator: EmulatorProcess) -> None:
    """Go ahead of the handler's own clock, so that it acts on what it reads, and on that alone."""
    emulator.advance(seconds=3600)


def status(emulator: EmulatorProcess, event: dict[str, Any]) -> str:
    told: str = emulator.ask("GET", f"/events/{event['event_id']}")["status"]
    return told


def statuses_read(emulator: EmulatorProcess, vm: str) -> list[str]:
    return [status for _, status, _ in emulator.seen_by(vm)]


@EACH_KIND
def test_a_worker_retires_when_the_end_of_its_vm_starts(
    emulator: EmulatorProcess, tmp_path: Path, kind: str, vm: str
) -> None:
    leave_the_present(emulator)

    async def story() -> None:
        async with cluster(emulator, vm, tmp_path) as dask:
            future, value = await dask.computed_by("doomed")
            assert await dask.holders(future) == {"doomed"}
            event = emulator.announce(kind, vm)
            await has_read(emulator, vm)
            assert dask.workers == {"doomed", "spare"}

            emulator.advance(to=event["not_before"])
            await until(lambda: dask.workers == {"spare"})

            assert statuses_read(emulator, vm) == ["Started"]
            assert await dask.holders(future) == {"spare"}
            assert await future == value

    asyncio.run(story())


@EACH_KIND
def test_with_an_offset_a_worker_is_gone_before_its_vm_is(
    emulator: EmulatorProcess, tmp_path: Path, kind: str, vm: str
) -> None:
    async def story() -> None:
        async with cluster(emulator, vm, tmp_path, offset_minutes=-15) as dask:
            future, value = await dask.computed_by("doomed")
            event = emulator.announce(kind, vm)

            await until(lambda: dask.workers == {"spare"})

            assert status(emulator, event) == "Scheduled"
            assert await dask.holders(future) == {"spare"}
            assert await future == value

    asyncio.run(story())


@EACH_KIND
def test_a_worker_stays_when_the_event_is_canceled_and_heeds_the_next(
    emulator: EmulatorProcess, tmp_path: Path, kind: str, vm: str
) -> None:
    leave_the_present(emulator)

    async def story() -> None:
        async with cluster(emulator, vm, tmp_path) as dask:
            event = emulator.announce(kind, vm)
            await has_read(emulator, vm)

            emulator.ask("POST", f"/events/{event['event_id']}/cancel", {})
            emulator.advance(seconds=1800)
            await has_read(emulator, vm)

            assert statuses_read(emulator, vm) == []
            assert dask.workers == {"doomed", "spare"}
            assert await dask.holders((await dask.computed_by("doomed"))[0]) == {"doomed"}
            emulator.advance(to=emulator.announce(kind, vm)["not_before"])
            await until(lambda: dask.workers == {"spare"})

    asyncio.run(story())


def test_the_handler_never_forgets_a_not_before_that_it_has_read(
    emulator: EmulatorProcess, tmp_path: Path
) -> None:
    """A defect of the handler: it leaves for a canceled event once that would have been due.

    Here that takes 15 of the 30 seconds' notice, which pass on its clock alone.
    """

    async def story() -> None:
        async with cluster(emulator, "cheap-0", tmp_path, offset_minutes=-0.25) as dask:
            event = emulator.announce("Preempt", "cheap-0")
            await has_read(emulator, "cheap-0")
            emulator.ask("POST", f"/events/{event['event_id']}/cancel", {})
            await has_read(emulator, "cheap-0")
            assert dask.workers == {"doomed", "spare"}

            await until(lambda: dask.workers == {"spare"})

            assert statuses_read(emulator, "cheap-0") == []
            assert status(emulator, event) == "Canceled"

    asyncio.run(story())


def test_the_handler_takes_a_neighbors_end_for_its_own(
    emulator: EmulatorProcess, tmp_path: Path
) -> None:
    """A defect of the handler: a scale set shares a document, and it does not look at Resources."""
    leave_the_present(emulator)

    async def story() -> None:
        async with cluster(emulator, "batch_0", tmp_path) as dask:
            event = emulator.announce("Terminate", "batch_1")
            emulator.advance(to=event["not_before"])

            await until(lambda: dask.workers == {"spare"})

            (seen,) = emulator.guest("batch_0").json["Events"]
            assert (seen["EventStatus"], seen["Resources"]) == ("Started", ["batch_1"])

    asyncio.run(story())


def test_whatever_else_happens_to_its_vm_does_not_concern_the_handler(
    emulator: EmulatorProcess, tmp_path: Path
) -> None:
    leave_the_present(emulator)

    async def story() -> None:
        async with cluster(emulator, "cheap-0", tmp_path) as dask:
            freeze = emulator.announce("Freeze", "cheap-0")
            emulator.advance(to=freeze["not_before"])
            await has_read(emulator, "cheap-0")

            assert statuses_read(emulator, "cheap-0") == ["Started"]
            assert dask.workers == {"doomed", "spare"}
            emulator.advance(next=True)
            emulator.advance(to=emulator.announce("Preempt", "cheap-0")["not_before"])
            await until(lambda: dask.workers == {"spare"})

    asyncio.run(story())
