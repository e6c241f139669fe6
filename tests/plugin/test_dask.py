"""dask-cloudprovider's AzurePreemptibleWorkerPlugin, unmodified, on a real scheduler and workers.

It was written against Azure, reads api-version 2019-08-01, and never approves. Preempt and Terminate
have it retire its worker: as soon as one is Started, or its own clock, which is not the emulator's,
has passed the NotBefore that it read, by an offset that may be negative.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from dask_cloudprovider.azure import AzurePreemptibleWorkerPlugin
from distributed import Client, Future, Scheduler, Worker

from forewarn.testing.scheduled_events import ScheduledEvents

SPOT: Final = "cheap-0"
SCALED: Final = "batch_0"
VERSION: Final = "2019-08-01"
SECONDS_MAX: Final = 60
ON_A_VM: Final = Path(__file__).parent / "dask_on_a_vm.py"
EACH_KIND: Final = pytest.mark.parametrize(
    ("kind", "vm"), [("Preempt", SPOT), ("Terminate", SCALED)]
)

pytestmark = [
    pytest.mark.end_to_end,
    pytest.mark.scheduled_events(spots=[SPOT], scale_sets=["batch:2"]),
    # Its own way to tell the time, deprecated since Python 3.12.
    pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning:dask_cloudprov"),
]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Two workers: on one runs the handler under test; the other has nothing to fear."""

    scheduler: Scheduler
    client: Client

    @property
    def workers(self) -> set[str]:
        """Those that the scheduler knows."""
        return {str(state.name) for state in self.scheduler.workers.values()}

    async def computed_by(self, worker: str) -> tuple[Future[str], str]:
        """What this worker has computed and keeps, and its value: another one if computed again."""
        future = self.client.submit(
            lambda: uuid.uuid4().hex, workers=[worker], allow_other_workers=True, pure=False
        )
        return future, await future

    async def holders(self, future: Future[str]) -> set[str]:
        names = {address: str(state.name) for address, state in self.scheduler.workers.items()}
        return {names[one] for one in (await self.client.who_has([future]))[future.key]}


@asynccontextmanager
async def cluster(
    world: ScheduledEvents, vm: str, folder: Path, *, offset_minutes: float = 0
) -> AsyncIterator[Cluster]:
    """A scheduler with the workers "doomed" and "spare"; the first is taken to run on this VM."""
    handler = AzurePreemptibleWorkerPlugin(
        poll_interval_s=0.02,
        metadata_url=f"{world.url_of(vm)}/metadata/scheduledevents?api-version={VERSION}",
        termination_offset_minutes=offset_minutes,
    )
    place: dict[str, Any] = {"host": "127.0.0.1", "port": 0, "dashboard_address": "127.0.0.1:0"}
    work: dict[str, Any] = {**place, "nthreads": 1, "local_directory": str(folder)}
    async with (
        Scheduler(**place) as scheduler,
        Worker(scheduler.address, name="doomed", plugins=(handler,), **work),
        Worker(scheduler.address, name="spare", **work),
        Client(scheduler.address, asynchronous=True) as client,
    ):
        yield Cluster(scheduler, client)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not condition():  # noqa: ASYNC110 - of what dask does there is no event
            await asyncio.sleep(0.02)


async def has_read(world: ScheduledEvents) -> None:
    """Wait until the handler has read, and judged, what is on the wire now."""
    # One may be under way; the next is judged before the one after it is sent.
    enough = reads(world) + 3
    await until(lambda: reads(world) >= enough)


def reads(world: ScheduledEvents) -> int:
    asked = [one for one in world.requests if one.api_version == VERSION]
    assert {one.status for one in asked} <= {200}
    return len(asked)


def leave_the_present(world: ScheduledEvents) -> None:
    """Go ahead of the handler's own clock, so that it acts on what it reads, and on that alone."""
    world.advance(hours=1)


def on_the_wire(world: ScheduledEvents, vm: str) -> list[tuple[str, list[str]]]:
    """The status and the resources of each event that a VM reads."""
    url = f"{world.url_of(vm)}/metadata/scheduledevents?api-version=2020-07-01"
    asked = urllib.request.Request(url, headers={"Metadata": "true"})
    with urllib.request.urlopen(asked, timeout=SECONDS_MAX) as answer:
        events = json.load(answer)["Events"]
    return [(event["EventStatus"], event["Resources"]) for event in events]


@EACH_KIND
def test_a_worker_retires_when_the_end_of_its_vm_starts(
    scheduled_events: ScheduledEvents, tmp_path: Path, kind: str, vm: str
) -> None:
    leave_the_present(scheduled_events)

    async def story() -> None:
        async with cluster(scheduled_events, vm, tmp_path) as dask:
            future, value = await dask.computed_by("doomed")
            assert await dask.holders(future) == {"doomed"}
            (event,) = scheduled_events.announce(kind, vm)
            await has_read(scheduled_events)
            assert dask.workers == {"doomed", "spare"}

            scheduled_events.advance_to(event.not_before)
            await until(lambda: dask.workers == {"spare"})

            assert on_the_wire(scheduled_events, vm) == [("Started", [vm])]
            assert not event.approved
            assert await dask.holders(future) == {"spare"}
            assert await future == value

    asyncio.run(story())


@EACH_KIND
def test_with_an_offset_a_worker_is_gone_before_its_vm_is(
    scheduled_events: ScheduledEvents, tmp_path: Path, kind: str, vm: str
) -> None:
    async def story() -> None:
        async with cluster(scheduled_events, vm, tmp_path, offset_minutes=-15) as dask:
            future, value = await dask.computed_by("doomed")
            assert await dask.holders(future) == {"doomed"}
            (event,) = scheduled_events.announce(kind, vm)

            await until(lambda: dask.workers == {"spare"})

            assert event.status == "Scheduled"
            assert await dask.holders(future) == {"spare"}
            assert await future == value

    asyncio.run(story())


@EACH_KIND
def test_a_worker_stays_when_the_event_is_canceled_and_heeds_the_next(
    scheduled_events: ScheduledEvents, tmp_path: Path, kind: str, vm: str
) -> None:
    leave_the_present(scheduled_events)

    async def story() -> None:
        async with cluster(scheduled_events, vm, tmp_path) as dask:
            (event,) = scheduled_events.announce(kind, vm)
            await has_read(scheduled_events)

            scheduled_events.cancel(event)
            scheduled_events.advance(minutes=30)
            await has_read(scheduled_events)

            assert event.canceled
            assert on_the_wire(scheduled_events, vm) == []
            assert dask.workers == {"doomed", "spare"}
            assert await dask.holders((await dask.computed_by("doomed"))[0]) == {"doomed"}
            (another,) = scheduled_events.announce(kind, vm)
            scheduled_events.advance_to(another.not_before)
            await until(lambda: dask.workers == {"spare"})

    asyncio.run(story())


@pytest.mark.slow
def test_the_handler_never_forgets_a_not_before_that_it_has_read(
    scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    """A defect of the handler: it leaves for a canceled event once that would have been due.

    Here that takes 15 of the 30 seconds' notice, which pass on its clock alone.
    """

    async def story() -> None:
        async with cluster(scheduled_events, SPOT, tmp_path, offset_minutes=-0.25) as dask:
            event = scheduled_events.preempt(SPOT)
            await has_read(scheduled_events)
            scheduled_events.cancel(event)
            await has_read(scheduled_events)
            assert dask.workers == {"doomed", "spare"}

            await until(lambda: dask.workers == {"spare"})

            assert on_the_wire(scheduled_events, SPOT) == []
            assert event.canceled

    asyncio.run(story())


def test_the_handler_takes_a_neighbors_end_for_its_own(
    scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    """A defect of the handler: a scale set shares a document, and it does not look at Resources."""
    leave_the_present(scheduled_events)

    async def story() -> None:
        async with cluster(scheduled_events, SCALED, tmp_path) as dask:
            event = scheduled_events.terminate("batch_1")
            scheduled_events.advance_to(event.not_before)

            await until(lambda: dask.workers == {"spare"})

            assert on_the_wire(scheduled_events, SCALED) == [("Started", ["batch_1"])]

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["Freeze", "Reboot", "Redeploy"])
def test_whatever_else_happens_to_its_vm_does_not_concern_the_handler(
    scheduled_events: ScheduledEvents, tmp_path: Path, kind: str
) -> None:
    leave_the_present(scheduled_events)

    async def story() -> None:
        async with cluster(scheduled_events, SPOT, tmp_path) as dask:
            (event,) = scheduled_events.announce(kind, SPOT)
            scheduled_events.advance_to(event.not_before)
            await has_read(scheduled_events)

            assert on_the_wire(scheduled_events, SPOT) == [("Started", [SPOT])]
            assert dask.workers == {"doomed", "spare"}
            scheduled_events.advance_to_next()
            scheduled_events.advance_to(scheduled_events.preempt(SPOT).not_before)
            await until(lambda: dask.workers == {"spare"})

    asyncio.run(story())


def test_at_the_real_address_the_handler_needs_no_argument(
    scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    scheduled_events.skip_without_namespaces()
    leave_the_present(scheduled_events)
    command = [sys.executable, str(ON_A_VM), str(tmp_path)]
    running = scheduled_events.start(command, vm=SPOT, stdout=subprocess.PIPE)
    scheduled_events.wait_until(lambda: reads(scheduled_events), seconds=SECONDS_MAX)

    scheduled_events.advance_to(scheduled_events.preempt(SPOT).not_before)
    said, _ = running.communicate(None, timedelta(seconds=SECONDS_MAX))

    assert (running.process.returncode, said) == (0, "retired\n")
