"""The client for programs that wait in threads."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Self, TypeVar

from forewarn.client import errands, watching
from forewarn.client.changes import Change
from forewarn.client.contact import Contacted, Find, elapsed
from forewarn.client.documents import Document, Event
from forewarn.client.errands import Done, Errand
from forewarn.client.line import Line
from forewarn.client.patience import WITHIN, Pace
from forewarn.client.watching import Heard
from forewarn.errors import Unavailable

T = TypeVar("T")


class Client(Contacted):
    """A VM's view of its scheduled events. Its methods may be called in several threads."""

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        name: str | None = None,
        pace: Pace | None = None,
        find: Find | None = None,
    ) -> None:
        super().__init__(endpoint, name=name, pace=pace, find=find)
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._lines: set[Line] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every watch, and let go of whoever waits; from any thread.

        An approval that is on its way is heard out: whoever gave it ought to know.
        """
        self._closed.set()
        with self._lock:
            for line in self._lines:
                line.cut()

    def watch(self, known: Iterable[Event] = ()) -> Iterator[Change]:
        """Every change of the VM's events from now on, what is there already included; until `close`.

        `known` are events that were seen before, as by a process that has ended since: those are
        not announced again, and told to be gone if they are. Never raises for want of an answer.
        """
        for heard in self._listen(known):
            yield from heard.changes

    def documents(self) -> Iterator[Document]:
        """The VM's document: as soon as it was read, then whenever it is another one; until `close`.

        For who would rather know what is than what happened. Never raises for want of an answer.
        """
        shown: Document | None = None
        for heard in self._listen():
            document = heard.document
            if document is not None and document != shown:
                shown = document
                yield document

    def _listen(self, known: Iterable[Event] = ()) -> Iterator[Heard]:
        """What comes of each question."""
        watch = self._contact.watch(known)
        with self._line() as line:
            while not self._closed.is_set():
                asked = watching.ask(watch, elapsed())
                if self._slept(asked.at):
                    return
                began = elapsed()
                outcome = line.exchange(
                    self._contact.endpoint,
                    asked.request,
                    connect=self._contact.pace.connect,
                    patience=asked.patience,
                )
                if self._closed.is_set():
                    return
                self._contact.note(outcome)
                heard = watching.heard(watch, asked, outcome, began=began, now=elapsed())
                self._contact.learn(heard)
                took, waits = elapsed() - began, bool(asked.wait)
                self._contact.count(took, is_well=heard.trouble is None, waits=waits)
                watch = heard.watch
                yield heard

    def events(self, *, within: timedelta = WITHIN) -> tuple[Event, ...]:
        """All events of the document. Raises: Refused, Unavailable."""
        return self._run(errands.EVENTS, within)

    def approve(self, *events: Event | str, within: timedelta = WITHIN) -> None:
        """Let events start, for all VMs that they concern; several at once, or none of them.

        What was approved may be approved again. Raises: Malformed, Refused, Unavailable.
        """
        self._run(errands.approval(events), within)

    def name(self, *, within: timedelta = WITHIN) -> str:
        """The VM's own name, as in an event's resources. Raises: Refused, Unavailable."""
        if self._contact.name is None:
            self._contact.name = self._run(errands.NAME, within)
        return self._contact.name

    def _run(self, errand: Errand[T], within: timedelta) -> T:
        attempt = self._contact.attempt(within)
        with self._line() if errand.request.body is None else Line() as line:
            while not self._slept(attempt.at):
                began = elapsed()
                outcome = line.exchange(
                    self._contact.endpoint,
                    errand.request,
                    connect=self._contact.pace.connect,
                    patience=attempt.patience,
                )
                self._contact.note(outcome)
                self._contact.count(elapsed() - began, is_well=errands.is_answer(outcome))
                match errands.judge(errand, attempt, outcome, elapsed()):
                    case Done(value):
                        self._contact.succeeded(errand)
                        return value
                    case later:
                        attempt = later
        raise Unavailable("the client was closed")

    def _slept(self, until: timedelta) -> bool:
        """Whether the client was closed before that instant."""
        return self._closed.wait(max((until - elapsed()).total_seconds(), 0))

    @contextmanager
    def _line(self) -> Iterator[Line]:
        """A line that is cut when the client is closed."""
        with Line() as line:
            with self._lock:
                self._lines.add(line)
            try:
                yield line
            finally:
                with self._lock:
                    self._lines.discard(line)
