"""The agent at work: one thread reads the document, one acts, and each approval has one of its own.

Nothing that takes time is waited for where it would keep the document from being read: hooks are processes, approvals
and questions to peers have threads.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from forewarn.agent.agent import Agent, Approvals
from forewarn.agent.reports import Report
from forewarn.client import Client, Event
from forewarn.client.documents import Document
from forewarn.errors import ForewarnError, Unavailable

# An approval that takes longer is asked for again.
_WITHIN: Final = timedelta(seconds=150)
# How soon a turn is tried again that failed because nothing could be written down.
_RETRY: Final = timedelta(seconds=1)
# A report is never older than this.
_BEAT: Final = timedelta(seconds=30)

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

    def __init__(
        self,
        client: Client,
        bell: Bell,
        now: Callable[[], datetime],
        make: Callable[[str, Approvals], Agent],
        pulse: Callable[[Report], None],
    ) -> None:
        """`make` makes the agent once the VM's name is known; `pulse` hears every new report."""
        self._client = client
        self._bell = bell
        self._now = now
        self._make = make
        self._pulse = pulse
        self._stopped = threading.Event()
        self._document: Document | None = None
        self._report = Report(now())

    @property
    def report(self) -> Report:
        """How the agent is now."""
        return self._report

    def stop(self) -> None:
        """End the work; hooks go on, and the next agent takes them up. From any thread, or a signal."""
        self._stopped.set()
        self._bell.ring()

    def run(self) -> None:
        """Work until `stop`. Raises: Unavailable, if the casebook cannot be read at first."""
        watcher = threading.Thread(target=self._watch, name="watch", daemon=True)
        watcher.start()
        agent: Agent | None = None
        while not self._stopped.is_set():
            document, name = self._document, self._client.known_name
            if agent is None and name is not None:
                agent = self._make(name, ThreadedApprovals(self._client, self._bell))
            wake, trouble = self._turn(agent, document)
            self._publish(agent, name, document, trouble)
            now = self._now()
            self._bell.wait(min(wake - now if wake is not None else _BEAT, _BEAT))
        self._client.close()
        watcher.join()

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
            return agent.turn(self._now()), None
        except Unavailable as error:
            _log.error("nothing can be done: %s", error)
            return self._now() + _RETRY, str(error)

    def _publish(
        self, agent: Agent | None, name: str | None, document: Document | None, trouble: str | None
    ) -> None:
        in_hand = () if agent is None else tuple(agent.cases.values())
        verdicts = () if agent is None else tuple((case, agent.verdict(case)) for case in in_hand)
        report = Report(self._now(), name, document, verdicts, trouble or self._client.trouble)
        changed = replace(report, at=self._report.at) != self._report
        self._report = report
        if changed:
            self._pulse(report)
