"""What whoever runs hooks promises, as tests that every implementation passes."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import pytest

from forewarn.agent.runs import Absent, CutOff, Going, Over, Runs
from forewarn.testing.simulated_runs import Obedience

RUN = "EVENT/prepare-0-1"


class RunsContract(ABC):
    """Inherit, and say how to make runs and commands."""

    # What a process says that SIGTERM ended.
    BY_TERM: ClassVar = 143

    @abstractmethod
    def runs(self) -> Runs:
        """Whoever runs hooks; called again, the same as a new agent finds them."""

    @abstractmethod
    def ending(self, code: int) -> tuple[str, ...]:
        """A command that ends at once, with that status."""

    @abstractmethod
    def hanging(self, obedience: Obedience) -> tuple[str, ...]:
        """A command that does not end by itself."""

    @abstractmethod
    def until(self, condition: Callable[[], bool]) -> None:
        """Let time pass until something is so."""

    @abstractmethod
    def until_it_listens(self) -> None:
        """Let time pass until the hook that hangs has begun to."""

    def test_what_was_never_begun_is_absent(self) -> None:
        assert self.runs().look(RUN) == Absent()

    @pytest.mark.parametrize("code", [0, 1, 70, 255])
    def test_a_run_is_over_with_its_status(self, code: int) -> None:
        runs = self.runs()

        runs.begin(RUN, self.ending(code), {})

        self.until(lambda: runs.look(RUN) == Over(code))

    def test_a_run_goes_on_until_it_is_over(self) -> None:
        runs = self.runs()

        runs.begin(RUN, self.hanging(Obedience.ENDS), {})

        assert runs.look(RUN) == Going()

    def test_an_id_is_begun_once(self) -> None:
        runs = self.runs()
        runs.begin(RUN, self.ending(0), {})
        self.until(lambda: runs.look(RUN) == Over(0))

        runs.begin(RUN, self.ending(1), {})

        assert runs.look(RUN) == Over(0)

    def test_a_run_outlives_the_agent(self) -> None:
        """Keeps N7: the next one knows of it, and ends it."""
        self.runs().begin(RUN, self.hanging(Obedience.ENDS), {})
        self.until_it_listens()
        later = self.runs()

        assert later.look(RUN) == Going()
        later.signal(RUN, signal.SIGTERM)

        self.until(lambda: later.look(RUN) == Over(self.BY_TERM))

    def test_sigterm_ends_a_run_that_obeys(self) -> None:
        runs = self.runs()
        runs.begin(RUN, self.hanging(Obedience.ENDS), {})
        self.until_it_listens()

        runs.signal(RUN, signal.SIGTERM)

        self.until(lambda: runs.look(RUN) == Over(self.BY_TERM))

    def test_a_run_may_end_well_when_it_is_asked_to(self) -> None:
        runs = self.runs()
        runs.begin(RUN, self.hanging(Obedience.SAYS_READY), {})
        self.until_it_listens()

        runs.signal(RUN, signal.SIGTERM)

        self.until(lambda: runs.look(RUN) == Over(0))

    def test_sigkill_cuts_off_a_run_that_does_not_obey(self) -> None:
        runs = self.runs()
        runs.begin(RUN, self.hanging(Obedience.IGNORES), {})
        self.until_it_listens()

        runs.signal(RUN, signal.SIGTERM)
        assert runs.look(RUN) == Going()
        runs.signal(RUN, signal.SIGKILL)

        self.until(lambda: runs.look(RUN) == CutOff())

    def test_nobody_gets_a_signal_for_what_is_over_or_absent(self) -> None:
        runs = self.runs()
        runs.begin(RUN, self.ending(0), {})
        self.until(lambda: runs.look(RUN) == Over(0))

        runs.signal(RUN, signal.SIGKILL)
        runs.signal("EVENT/prepare-0-2", signal.SIGKILL)

        assert runs.look(RUN) == Over(0)

    def test_what_is_forgotten_is_absent_and_others_are_not(self) -> None:
        runs = self.runs()
        runs.begin(RUN, self.ending(0), {})
        runs.begin("EVENT-2/prepare-0-1", self.ending(0), {})
        self.until(lambda: runs.look("EVENT-2/prepare-0-1") == Over(0))
        self.until(lambda: runs.look(RUN) == Over(0))

        runs.forget("EVENT")

        assert runs.look(RUN) == Absent()
        assert runs.look("EVENT-2/prepare-0-1") == Over(0)
