"""What a test of a handler holds in its hands: VMs, their events, and their time.

The pytest plugin's fixture is a `ScheduledEvents`; whoever uses another framework writes
`with emulated(vms=["web-0"]) as scheduled_events:`.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Unpack

import pytest

from forewarn.clocks import SystemClock
from forewarn.config.fleets import FleetFile, load_fleet, parse_fleet
from forewarn.config.sketches import Sketch
from forewarn.core import wishes
from forewarn.core.events import ANNOUNCED_TYPES, Cause, EventType
from forewarn.core.journal import Actor, Role
from forewarn.core.scopes import Enabling
from forewarn.core.wishes import Wish
from forewarn.errors import Malformed, Refused, Unknown
from forewarn.testing import sayings
from forewarn.testing.emulated_events import Event
from forewarn.testing.emulated_requests import Request, request
from forewarn.testing.guest_faults import GuestFaults
from forewarn.testing.namespaces import Command, NoNamespaces, Output
from forewarn.testing.sayings import Details, Words
from forewarn.testing.served_worlds import ServedWorld
from forewarn.wire import control as wire

OPERATOR: Final = Actor(Role.OPERATOR, "the test")
# Whoever says nothing about VMs has this one.
ALONE: Final = "web-0"
# Of those that there are, when a name is wrong.
NAMED_MAX: Final = 20
ASKED_TOLD_MAX: Final = 5
COMMAND_TOLD_MAX: Final = 200
PATIENCE: Final = timedelta(seconds=10)
RUN_SECONDS_MAX: Final = 60.0
# Between two looks at what code under test brings about in its own time.
LOOK_SECONDS: Final = 0.005


@contextmanager
def emulated(
    *,
    vms: Sequence[str] = (),
    spots: Sequence[str] = (),
    availability_sets: Sequence[str] = (),
    scale_sets: Sequence[str] = (),
    fleet: str | os.PathLike[str] | None = None,
    seed: int | None = None,
) -> Iterator[ScheduledEvents]:
    """VMs of a world of their own, or those of a fleet file; one if nothing is said.

    Sets are "NAME:COUNT", such as "web:3" for web-0, web-1 and web-2. With a seed, ids of events and
    the time of the start are the same each time. Raises: Malformed.
    """
    sketch = sayings.sketch(
        vms=vms, spots=spots, availability_sets=availability_sets, scale_sets=scale_sets
    )
    with ServedWorld(_fleet(sketch, fleet), seed=sayings.seed(seed)) as world:
        yield ScheduledEvents(world)


def _fleet(sketch: Sketch, file: str | os.PathLike[str] | None) -> FleetFile:
    is_empty = not any((sketch.machines, sketch.spots, sketch.availability_sets, sketch.scale_sets))
    if file is None:
        sketch = Sketch(machines=(ALONE,)) if is_empty else sketch
        return parse_fleet(sketch.toml, "the VMs asked for", Enabling.ALWAYS)
    if not is_empty:
        raise Malformed("the fleet file says which VMs there are: leave the others out")
    return load_fleet(Path(file), Enabling.ALWAYS)


class ScheduledEvents:
    """Some VMs, what is announced to them, and a clock that moves only when told."""

    def __init__(self, world: ServedWorld) -> None:
        self._world = world
        self._faults = GuestFaults(world.faults, self._named)
        self._started: list[Command] = []

    # -- where the VMs are -------------------------------------------------------------------

    @property
    def machines(self) -> tuple[str, ...]:
        """The names of the VMs."""
        return self._world.machines

    @property
    def url(self) -> str:
        """What stands for http://169.254.169.254 on the first VM."""
        return self.url_of(self.machines[0])

    def url_of(self, vm: str) -> str:
        """The same on another VM. Raises: Unknown."""
        return f"http://{self._world.places[self._named(vm)].name}"

    def environment(self, vm: str | None = None) -> dict[str, str]:
        """Variables by which programs that exist find a metadata service; see the page."""
        url = self.url if vm is None else self.url_of(vm)
        address = url.removeprefix("http://")
        return {
            # webdevops/azure-scheduledevents-manager and -exporter
            "AZURE_SCHEDULEDEVENTS_URL": f"{url}/metadata/scheduledevents?api-version=2019-08-01",
            "AZURE_METADATAINSTANCE_URL": f"{url}/metadata/instance?api-version=2019-08-01",
            # Azure's samples for VMs outside of a virtual network
            "SCHEDULEDEVENTSIP": address,
            # Whatever goes out by a proxy does not go there by it.
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }

    @property
    def requests(self) -> tuple[Request, ...]:
        """What the VMs asked, oldest first; the last 10,000."""
        return tuple(request(visit) for visit in self._world.visitors.visits)

    @property
    def faults(self) -> GuestFaults:
        """What goes wrong on purpose; nothing, unless it was added."""
        return self._faults

    # -- what is announced -------------------------------------------------------------------

    def freeze(self, *vms: str, **details: Unpack[Details]) -> Event:
        """Announce a pause of seconds, as for a live migration; 15 minutes' notice."""
        return self._only(sayings.wish(EventType.FREEZE, self._chosen(vms), details))

    def reboot(self, *vms: str, **details: Unpack[Details]) -> Event:
        """Announce a restart; 15 minutes' notice."""
        return self._only(sayings.wish(EventType.REBOOT, self._chosen(vms), details))

    def redeploy(self, *vms: str, **details: Unpack[Details]) -> Event:
        """Announce a move to another host, which loses what is on temporary disks; 10 minutes."""
        return self._only(sayings.wish(EventType.REDEPLOY, self._chosen(vms), details))

    def preempt(self, *vms: str, **details: Unpack[Details]) -> Event:
        """Announce the eviction of a spot VM; 30 seconds' notice."""
        return self._only(sayings.wish(EventType.PREEMPT, self._chosen(vms), details))

    def terminate(self, *vms: str, **details: Unpack[Details]) -> Event:
        """Announce a deletion, which only VMs of scale sets are told of; 5 minutes' notice."""
        try:
            return self._only(sayings.wish(EventType.TERMINATE, self._chosen(vms), details))
        except Refused as error:
            error.add_note(
                'in a test: @pytest.mark.scheduled_events(scale_sets=["batch:1"]), and then '
                'terminate("batch_0")'
            )
            raise

    def hardware_failure(self, *vms: str) -> Event:
        """Let hardware fail: a Reboot without any notice, which is Started at once."""
        wish = Wish(type=EventType.REBOOT, machines=self._chosen(vms), cause=Cause.HARDWARE_FAILURE)
        return self._only(wish)

    def announce(self, type_: str, *vms: str, **details: Unpack[Details]) -> tuple[Event, ...]:
        """Announce an impact on VMs that cannot all be hit together: one event for each that can.

        Raises: Malformed, Unknown, Refused.
        """
        kind = wire.named(ANNOUNCED_TYPES, "type", type_)
        return self._announced(sayings.wish(kind, self._chosen(vms), details))

    def cancel(self, event: Event) -> None:
        """Call an event off that has not started. Raises: Malformed, Refused."""
        if not isinstance(event, Event):
            raise Malformed(f"cancel() takes the event that was returned to you, and not {event!r}")
        self._world.assembly.desk.cancel(event.id, OPERATOR)
        self._world.time.settle()

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event that is not over, or ended within the last 24 hours, oldest first."""
        self._world.time.settle()
        found = self._world.assembly.desk.events()
        return tuple(Event(self._world, placed.event.id) for placed in found)

    # -- time ----------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """What the clock shows."""
        return self._world.clock.now()

    def advance(
        self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        """Let time pass, doing each thing on the way when it is due. Raises: Malformed."""
        if not (seconds or minutes or hours or days):
            raise Malformed("say how far, such as advance(minutes=15); idle() does what is due now")
        by = timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
        if by < timedelta():
            raise Malformed("time does not go back: give a length of time that is not negative")
        self._world.time.advance(self.now + by)

    def advance_to(self, instant: datetime) -> None:
        """Let time pass up to an instant, such as an event's `not_before`. Raises: Malformed."""
        until = sayings.instant(instant)
        if until < self.now:
            raise Malformed(f"time does not go back: it is {self.now:%Y-%m-%dT%H:%M:%SZ} already")
        self._world.time.advance(until)

    def advance_to_next(self) -> bool:
        """Let time pass until something happens to an event; False if nothing will."""
        return self._world.time.advance_to_next()

    def idle(self) -> None:
        """Do what is due now, such as the start of what was approved. Reading an event does so too."""
        self._world.time.settle()

    def wait_until(
        self, condition: Callable[[], object], *, seconds: float = PATIENCE.total_seconds()
    ) -> None:
        """Wait in real time for what code in another thread or process does.

        Raises: TimeoutError.
        """
        clock, nobody = SystemClock(), threading.Event()
        until = clock.elapsed() + timedelta(seconds=seconds)
        while not condition():
            if clock.elapsed() > until:
                raise TimeoutError("\n".join([f"not so within {seconds:g} s", *self._hints()]))
            nobody.wait(LOOK_SECONDS)

    # -- commands for which 169.254.169.254 is that address ------------------------------------

    def run(  # noqa: PLR0913 - as subprocess has it
        self,
        command: Words,
        *,
        vm: str | None = None,
        check: bool = False,
        timeout: float = RUN_SECONDS_MAX,
        said: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with http://169.254.169.254 as on a VM. No root is needed.

        Its network has nothing else in it. `said` is what it reads from its standard input.

        Raises: NoNamespaces, Malformed; subprocess's own, as its `run` does.
        """
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        given = nothing if said is None else pipe
        machine = self.machines[0] if vm is None else self._named(vm)
        with Command(
            self._world, machine, command, env=env, cwd=cwd, stdin=given, stdout=pipe, stderr=pipe
        ) as running:
            out, err = running.communicate(said, timedelta(seconds=timeout))
            status = running.process.returncode
        done = subprocess.CompletedProcess(list(command), status, out, err)
        if check:
            done.check_returncode()
        return done

    def start(
        self,
        command: Words,
        *,
        vm: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stdout: Output = None,
        stderr: Output = None,
    ) -> Command:
        """Start a command likewise, and do not wait for it; it is ended with the test.

        Raises: NoNamespaces, Malformed.
        """
        machine = self.machines[0] if vm is None else self._named(vm)
        running = Command(
            self._world, machine, command, env=env, cwd=cwd, stdout=stdout, stderr=stderr
        )
        self._world.at_the_end(running.stop)
        self._started.append(running)
        return running

    def skip_without_namespaces(self) -> None:
        """Skip the test where `run` and `start` cannot work."""
        try:
            self.run(["/bin/true"])
        except NoNamespaces as error:
            pytest.skip(str(error))

    # -- the rest ------------------------------------------------------------------------------

    def _hints(self) -> Iterator[str]:
        """What may be why something does not come to pass."""
        for command in self._started:
            if (status := command.process.poll()) is not None:
                words = shlex.join(map(str, command.words))[:COMMAND_TOLD_MAX]
                yield f"what start() started has ended with status {status}: {words}"
        if asked := self.requests[-ASKED_TOLD_MAX:]:
            yield "the VMs' last requests were:"
            yield from map(str, asked)
        else:
            yield f"no VM asked anything: is the code led to {self.url} (see `url`)?"

    def _named(self, vm: str) -> str:
        """A VM by the name that is nobody else's, however it was called. Raises: Malformed, Unknown, Refused."""
        try:
            return self._world.assembly.directory.shortest(sayings.vm(vm))
        except Unknown:
            known, more = ", ".join(self.machines[:NAMED_MAX]), len(self.machines) > NAMED_MAX
            raise Unknown(
                f"no VM {vm}: scheduled_events.machines has {known}{', …' if more else ''}; the mark "
                "scheduled_events says which there are"
            ) from None

    def _chosen(self, vms: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._named(vm) for vm in vms) or self.machines[:1]

    def _only(self, wish: Wish) -> Event:
        """The event that a wish comes to. Raises: Malformed if it would be several."""
        parts = self._world.assembly
        found = parts.directory.machines(wish.machines)
        rosters = {scope: parts.books.load(scope).scope.machines for scope, _ in found}
        groups = [
            group
            for scope, roster in rosters.items()
            for group in wishes.groups([m for m in roster if (scope, m.name) in found])
        ]
        if len(groups) > 1:
            raise Malformed(
                f"{', '.join(wish.machines)} do not share host and update domain, so that would be "
                f"{len(groups)} events: announce each by itself, or all with announce()"
            )
        (event,) = self._announced(wish)
        return event

    def _announced(self, wish: Wish) -> tuple[Event, ...]:
        placed = self._world.assembly.desk.announce(wish, (), OPERATOR)
        # What was announced can be read when this returns.
        self._world.time.settle()
        return tuple(Event(self._world, one.event.id) for one in placed)
