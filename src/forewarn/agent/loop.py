"""The agent at work: one thread reads the document, one acts, and each approval has one of its own.

Nothing that takes time is waited for where it would keep the document from being read: hooks are processes, approvals
and questions to peers have threads.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from forewarn.agent.agent import Agent, Approvals
from forewarn.agent.cases import Case, Result
from forewarn.agent.hooks import Phase
from forewarn.agent.reports import Counts, Report
from forewarn.agent.rules import Verdict
from forewarn.client import Client, Event
from forewarn.client.documents import Document
from forewarn.errors import ForewarnError, Unavailable

# An approval that takes longer is asked for again.
_WITHIN: Final = timedelta(seconds=150)
# How soon a turn is tried again that failed because nothing could be written down.
_RETRY: Final = timedelta(seconds=1)
# A report is never older than this, nor is trouble noticed later.
_BEAT: Final = timedelta(seconds=5)
# An agent that has not been at work for so long never will be.
_LATE: Final = timedelta(seconds=60)

_UNSEEN: Final = Verdict(approves=False, why="nobody has seen yet what has become of it")

_log: Final = logging.getLogger("forewarn.agent")


class Bell:
    """Wakes who waits; may be rung by any thread, also before anybody waits."""

    def __init__(self) -> None:
        # Unlike other locks, what a signal does in the midst of `wait` cannot block it.
        self._rings: queue.SimpleQueue[None] = queue.SimpleQueue()

    def ring(self) -> None:
        self._rings.put(None)

    def wait(self, length: timedelta) -> None:
        with suppress(queue.Empty):
            self._rings.get(timeout=max(length.total_seconds(), 0))
            while True:
                self._rings.get_nowait()


class ThreadedApprovals:
    """Approvals by a client, each in a thread."""

    def __init__(self, client: Client, bell: Bell) -> None:
        self._client = client
        self._bell = bell
        self._answers: queue.SimpleQueue[tuple[str, ForewarnError | None]] = queue.SimpleQueue()

    def ask(self, event: Event) -> None:
        threading.Thread(target=self._approve, args=(event,), name="approval", daemon=True).start()

    def _approve(self, event: Event) -> None:
        answer: ForewarnError | None = None
        try:
            self._client.approve(event, within=_WITHIN)
        except ForewarnError as error:
            answer = error
        self._answers.put((event.id, answer))
        self._bell.ring()

    def answers(self) -> Iterator[tuple[str, ForewarnError | None]]:
        with suppress(queue.Empty):
            while True:
                yield self._answers.get_nowait()


class Loop:
    """Keeps an agent at work, in the caller's thread, until it is stopped."""

    def __init__(  # noqa: PLR0913 - one parameter for each port
        self,
        client: Client,
        bell: Bell,
        now: Callable[[], datetime],
        make: Callable[[str, Approvals], Agent],
        pulse: Callable[[Report], None],
        beat: Callable[[], None] = lambda: None,
        *,
        known: tuple[Case, ...] = (),
    ) -> None:
        """`make` makes the agent once the VM's name is known; `pulse` hears every report.

        `beat` is called every few seconds, while the document is being read and acted on. `known` are
        the cases that were written down before, until the agent has seen for itself.
        """
        self._client = client
        self._bell = bell
        self._now = now
        self._make = make
        self._pulse = pulse
        self._beat = beat
        self._stopped = threading.Event()
        self._document: Document | None = None
        self._known = tuple((case, _UNSEEN) for case in known)
        self._report = Report(now(), cases=self._known, is_settled=False)
        self._agent: Agent | None = None
        self._ended: Mapping[tuple[Phase, Result], int] = {}
        self._is_settled = False
        self._worked = time.monotonic()
        self._watcher = threading.Thread(target=self._watch, name="watch", daemon=True)

    @property
    def report(self) -> Report:
        """How the agent is now."""
        return self._report

    @property
    def counts(self) -> Counts:
        """What was counted up to now."""
        return Counts(self._ended, self._client.tally)

    @property
    def is_at_work(self) -> bool:
        """Whether the document is being read, and looked at."""
        has_begun = self._watcher.ident is not None
        is_late = time.monotonic() - self._worked > _LATE.total_seconds()
        return not is_late and (self._watcher.is_alive() or not has_begun)

    def stop(self) -> None:
        """End the work; hooks go on, and the next agent takes them up. From any thread, or a signal."""
        self._stopped.set()
        self._bell.ring()

    def run(self) -> None:
        """Work until `stop`. Raises: Unavailable, if the casebook cannot be read at first."""
        self._watcher.start()
        while not self._stopped.is_set():
            document, name = self._document, self._client.known_name
            if self._agent is None and name is not None:
                self._agent = self._make(name, ThreadedApprovals(self._client, self._bell))
            wake, trouble = self._turn(self._agent, document)
            self._publish(self._agent, name, document, trouble)
            if self._watcher.is_alive():
                self._beat()
            now = self._now()
            self._bell.wait(min(wake - now if wake is not None else _BEAT, _BEAT))
        self._client.close()
        self._watcher.join()

    def _watch(self) -> None:
        for document in self._client.documents():
            self._document = document
            self._bell.ring()

    def _turn(
        self, agent: Agent | None, document: Document | None
    ) -> tuple[datetime | None, str | None]:
        if agent is None:
            return None, None
        if document is not None:
            agent.see(document.events)
        try:
            wake = agent.turn(self._now())
        except Unavailable as error:
            trouble = str(error)
            # It is tried again every second, and told once.
            if trouble != self._report.trouble:
                _log.error("nothing can be done until this is mended: %s", trouble)
            return self._now() + _RETRY, trouble
        self._is_settled = document is not None
        return wake, None

    def _publish(
        self, agent: Agent | None, name: str | None, document: Document | None, trouble: str | None
    ) -> None:
        in_hand = self._known
        if agent is not None:
            in_hand = tuple((case, agent.verdict(case)) for case in agent.cases.values())
            self._ended = agent.ended
        self._report = Report(
            self._now(),
            name,
            document,
            in_hand,
            trouble or self._client.trouble,
            is_settled=self._is_settled,
        )
        self._worked = time.monotonic()
        self._pulse(self._report)
