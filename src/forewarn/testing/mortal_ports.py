"""The ports of an agent that may die before and after whatever it does there."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from forewarn.agent.casebook import DirectoryCasebook
from forewarn.agent.cases import Case
from forewarn.agent.rules import Peers, Rule
from forewarn.agent.runs import Look
from forewarn.client import Client, Event
from forewarn.errors import ForewarnError, Unavailable
from forewarn.testing.agent_witnesses import Witness
from forewarn.testing.simulated_runs import SimulatedRuns

# Time is the story's, but answers take real time: nobody waits long for one that was spoiled.
WITHIN: Final = timedelta(milliseconds=250)


class Death(BaseException):
    """The agent's end, wherever it was."""


class Fate:
    """Counts the agent's steps, and ends it at one of them."""

    def __init__(self) -> None:
        self._left: int | None = None

    def arm(self, steps: int) -> None:
        self._left = steps

    def disarm(self) -> None:
        self._left = None

    def step(self) -> None:
        if self._left == 0:
            self._left = None
            raise Death
        if self._left is not None:
            self._left -= 1


class MortalCasebook:
    """A casebook on the disk, before and after each change of which the agent may die."""

    def __init__(self, directory: Path, fate: Fate) -> None:
        self._inner = DirectoryCasebook(directory)
        self._directory = directory
        self._fate = fate
        # How often writing will still fail.
        self.jams = 0

    def cases(self) -> Iterator[Case]:
        yield from self._inner.cases()

    def write(self, case: Case) -> None:
        self._jam()
        try:
            self._fate.step()
        except Death:
            # What a process leaves behind that is killed in the midst of writing.
            (self._directory / f"{case.event.id}.new").write_bytes(b'{"event": {"Ev')
            raise
        self._inner.write(case)
        self._fate.step()

    def close(self, event_id: str) -> None:
        self._jam()
        self._fate.step()
        self._inner.close(event_id)
        self._fate.step()

    def _jam(self) -> None:
        if self.jams:
            self.jams -= 1
            raise Unavailable("nothing can be written down")


class MortalRuns:
    """Simulated runs, likewise."""

    def __init__(self, inner: SimulatedRuns, witness: Witness, fate: Fate) -> None:
        self._inner = inner
        self._witness = witness
        self._fate = fate

    def begin(self, run: str, command: tuple[str, ...], environment: Mapping[str, str]) -> None:
        self._fate.step()
        going, before = self._inner.going, len(self._inner.all)
        self._inner.begin(run, command, environment)
        if len(self._inner.all) > before:
            self._witness.begins(self._inner.all[-1], going)
        self._fate.step()

    def look(self, run: str) -> Look:
        return self._inner.look(run)

    def signal(self, run: str, number: signal.Signals) -> None:
        self._fate.step()
        self._inner.signal(run, number)
        self._fate.step()

    def forget(self, event_id: str) -> None:
        self._fate.step()
        self._inner.forget(event_id)
        self._fate.step()


class MortalApprovals:
    """Approvals by the real client, likewise."""

    def __init__(self, client: Client, witness: Witness, fate: Fate) -> None:
        self._client = client
        self._witness = witness
        self._fate = fate
        # How often nobody will answer.
        self.mutes = 0
        self._answers: list[tuple[str, ForewarnError | None]] = []

    def ask(self, event: Event) -> None:
        self._fate.step()
        self._witness.asks(event)
        answer: ForewarnError | None = None
        try:
            self._approve(event)
        except ForewarnError as error:
            answer = error
        self._fate.step()
        self._answers.append((event.id, answer))

    def _approve(self, event: Event) -> None:
        if self.mutes:
            self.mutes -= 1
            self._witness.unhindered = None
            raise Unavailable("nobody answers")
        self._client.approve(event, within=WITHIN)

    @property
    def has_news(self) -> bool:
        return bool(self._answers)

    def answers(self) -> Iterator[tuple[str, ForewarnError | None]]:
        answers, self._answers = self._answers, []
        yield from answers


class Neighbors:
    """What the other VMs say of themselves."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness

    def peers(self, event: Event, rule: Rule) -> Peers:  # noqa: ARG002 - for whichever
        return self._witness.peers
