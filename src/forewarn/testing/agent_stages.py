"""The stage of an agent's story: a real service with VMs, real sockets, and an agent that may die anywhere.

What the agent's loop does in threads and real time is done here step by step: the document is read by the real client,
shown to the agent, and time goes from one thing that happens to the next. The casebook is on the disk; hooks are
simulated, by the service's own clock.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Self

from forewarn.agent.agent import Agent, Desires, Tempo
from forewarn.agent.news import News
from forewarn.client import Client, Pace
from forewarn.config.fleets import parse_fleet
from forewarn.core.events import EventType
from forewarn.core.scopes import Enabling
from forewarn.errors import Unavailable
from forewarn.fabrics.simulated import SimulatedFabric
from forewarn.testing.agent_plans import FLEET, MACHINES, NAME, Plan, PlannedHandbook
from forewarn.testing.agent_witnesses import Witness
from forewarn.testing.mortal_ports import (
    WITHIN,
    Death,
    Fate,
    MortalApprovals,
    MortalCasebook,
    MortalRuns,
    Neighbors,
)
from forewarn.testing.plain_azure import Knowing, PlainAzure
from forewarn.testing.scheduled_events import ScheduledEvents
from forewarn.testing.served_worlds import ServedWorld
from forewarn.testing.simulated_runs import SimulatedRuns

# Time is the story's, but answers take real time: nobody waits long for one that was spoiled.
PACE: Final = Pace(
    answer=timedelta(milliseconds=100),
    first_answer=timedelta(milliseconds=100),
    retry_first=timedelta(milliseconds=1),
    retry_max=timedelta(milliseconds=5),
    retry_after_max=timedelta(milliseconds=5),
)
TEMPO: Final = Tempo(look=timedelta(seconds=5), ask=timedelta(seconds=5))
# How long impacts take; a Preempt longer than its notice.
IMPACT: Final = timedelta(seconds=12)
PREEMPT: Final = timedelta(seconds=40)
# A document that could not be read is asked for again after that.
POLL: Final = timedelta(seconds=1)
# An agent that is not at rest after so many turns never will be.
TURNS_MAX: Final = 100


class Stage:
    """Plays what is said, for as long as the `with` lasts."""

    def __init__(self, plan: Plan, directory: Path, knowing: Knowing | None = None) -> None:
        """With `knowing`, the service is one that knows no more than Azure's."""
        self.plan: Final = plan
        self._directory = directory
        self._knowing = knowing
        self._stack = ExitStack()
        self.fate: Final = Fate()
        self.agent: Agent | None = None
        # When the agent that is down comes back; None if it does not by itself.
        self._back: datetime | None = None
        self._next_death: tuple[timedelta, bool] = (timedelta(), False)
        self._wake: datetime | None = None
        # What was read last, by the service's own count; None: it must be read.
        self._read: object = None
        self._hit: set[str] = set()
        self.is_deleted = False
        # Called after every step.
        self.check: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        stack = self._stack
        fleet = parse_fleet(FLEET, "the stage", Enabling.ALWAYS)
        self.world = stack.enter_context(ServedWorld(fleet, seed=1))
        self.events = ScheduledEvents(self.world)
        fabric = self.world.assembly.fabric
        assert isinstance(fabric, SimulatedFabric), "see ServedWorld"
        for machine in self.world.assembly.directory.machines(MACHINES):
            for impact in EventType:
                takes = PREEMPT if impact is EventType.PREEMPT else IMPACT
                fabric.take(machine[1], impact, takes)
        url = self.events.url_of(NAME)
        if self._knowing is not None:
            url = stack.enter_context(PlainAzure(url, self._knowing)).url
        self.client = stack.enter_context(Client(url, name=NAME, pace=PACE))
        self.runs = SimulatedRuns(self.world.clock.now, self.plan.manners)
        self.witness = Witness(self.plan, self.runs, self.now)
        self.casebook = MortalCasebook(self._directory, self.fate)
        self.approvals = MortalApprovals(self.client, self.witness, self.fate)
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def now(self) -> datetime:
        return self.world.clock.now()

    # -- the agent's life ------------------------------------------------------------------------

    def _start(self) -> None:
        """Have an agent at work, over what the one before it has written down."""
        self._back = None
        witness = self.witness
        # Nobody tells this agent what the one before it was answered.
        list(self.approvals.answers())
        try:
            self.agent = Agent(
                Desires(NAME, undo_waits=self.plan.undo_waits, tempo=TEMPO),
                boot=f"boot {witness.boot}",
                handbook=PlannedHandbook(self.plan),
                casebook=self.casebook,
                runs=MortalRuns(self.runs, witness, self.fate),
                approvals=self.approvals,
                neighborhood=Neighbors(witness),
                tell=self._tell,
            )
        except Unavailable:
            self._back = self.now + timedelta(seconds=1)
            return
        self._read = None
        witness.unhindered = None

    def _tell(self, news: News) -> None:
        self.fate.step()
        self.witness.told.append(news)

    def kill(self, down: timedelta, *, reboots: bool) -> None:
        """End the agent, or the whole VM, for a while."""
        self.agent = None
        self.fate.disarm()
        self.witness.unhindered = None
        self._back = None if self.is_deleted else self.now + down
        if reboots:
            self.runs.cut_off()
            self.witness.boot += 1

    def doom(self, steps: int, down: timedelta, *, reboots: bool) -> None:
        """Have the agent killed after so many steps."""
        self.fate.arm(steps)
        self._next_death = (down, reboots)

    # -- time --------------------------------------------------------------------------------------

    def let_pass(self, by: timedelta) -> None:
        """Go from one thing that happens to the next."""
        until = self.now + by
        while True:
            self.settle()
            if self.now >= until:
                return
            self.world.time.advance(self._next(until))

    def _next(self, until: datetime) -> datetime:
        instants = [until, self.world.time.due(), self._back]
        if self.agent is not None:
            instants.append(self._wake)
            if self._read is None:
                instants.append(self.now + POLL)
            instants += [one.due for one in self.runs.going]
        return min(max(one, self.now) for one in instants if one is not None)

    def settle(self) -> None:
        """Have all be done that is due at this instant."""
        self.world.time.settle()
        self._feel()
        if self._back is not None and self._back <= self.now:
            self._start()
        if self.agent is not None:
            try:
                self._work(self.agent)
            except Death:
                self.witness.deaths += 1
                down, reboots = self._next_death
                self.kill(down, reboots=reboots)
        self._witness()
        self.check()

    def _work(self, agent: Agent) -> None:
        for _ in range(TURNS_MAX):
            is_shown = self._show(agent)
            self.witness.now = self.now
            going = self.runs.going
            try:
                self._wake = agent.turn(self.now)
            except Unavailable:
                self.witness.unhindered = None
                self._wake = self.now + timedelta(seconds=1)
                return
            self.world.time.settle()
            # It is told of the end of a run, as of one that it has just killed, and of answers.
            is_told = self.approvals.has_news or any(run.ended is not None for run in going)
            is_done = not is_told and (self._wake is None or self._wake > self.now)
            if is_done and (not is_shown or self._read == self._head()):
                break
        else:
            raise AssertionError("the agent never comes to rest")
        if not is_shown or self.events.faults.in_force:
            self.witness.unhindered = None
        elif self.witness.unhindered is None:
            self.witness.unhindered = self.now

    def _show(self, agent: Agent) -> bool:
        """Have the agent see the document, if it can be read; whether it could."""
        head = self._head()
        if self._read == head:
            return True
        try:
            events = self.client.events(within=WITHIN)
        except Unavailable:
            # It is asked again a second later.
            self._read = None
            return False
        self.witness.now = self.now
        self.witness.sees(events)
        agent.see(events)
        self._read = head
        return True

    def forget_what_was_read(self) -> None:
        """Have the document be asked for again, though it may be the same."""
        self._read = None

    def _head(self) -> object:
        return self.world.assembly.store.head()

    def _feel(self) -> None:
        """What events do to the VM itself."""
        for placed in self.world.assembly.desk.events():
            event = placed.event
            if event.started_at is None or event.id in self._hit or NAME not in event.machines:
                continue
            if event.type is EventType.TERMINATE and event.ended_at is not None:
                self._hit.add(event.id)
                self.is_deleted = True
                self.kill(timedelta(), reboots=True)
            elif event.type not in (EventType.FREEZE, EventType.TERMINATE):
                self._hit.add(event.id)
                if self.plan.impact is not None and not self.is_deleted:
                    self.kill(self.plan.impact, reboots=True)

    def _witness(self) -> None:
        self.runs.settle()
        self.witness.now = self.now
        self.witness.approved = frozenset(
            placed.event.id
            for placed in self.world.assembly.desk.events()
            if placed.event.approval is not None or placed.event.started_at is not None
        )

    # -- the end -----------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """Let nothing hinder anybody any more, until all events are over, and all hooks."""
        self.fate.disarm()
        self.events.faults.clear()
        self.casebook.jams = self.approvals.mutes = 0
        for _ in range(TURNS_MAX):
            self.let_pass(timedelta(minutes=5))
            agent = self.agent
            is_over = self.is_deleted or (agent is not None and not agent.cases)
            is_open = any(placed.event.is_open for placed in self.world.assembly.desk.events())
            if is_over and not is_open:
                return
        raise AssertionError("the story does not come to an end")

    @property
    def written(self) -> list[Path]:
        """What is left in the casebook."""
        with suppress(FileNotFoundError):
            return sorted(self._directory.glob("*.json"))
        return []
