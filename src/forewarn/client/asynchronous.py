"""The client for programs that wait in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from typing import TypeVar

from forewarn.client import errands, watching
from forewarn.client.async_line import AsyncLine
from forewarn.client.changes import Change
from forewarn.client.contact import Contacted, elapsed
from forewarn.client.documents import Document, Event
from forewarn.client.errands import Done, Errand
from forewarn.client.patience import WITHIN
from forewarn.client.watching import Heard

T = TypeVar("T")


class AsyncClient(Contacted):
    """A VM's view of its scheduled events. To end a watch, leave its loop or cancel its task."""

    async def watch(self, known: Iterable[Event] = ()) -> AsyncIterator[Change]:
        """Every change of the VM's events from now on, what is there already included.

        `known` are events that were seen before, as by a process that has ended since: those are
        not announced again, and told to be gone if they are. Never raises for want of an answer.
        """
        async for heard in self._listen(known):
            for change in heard.changes:
                yield change

    async def documents(self) -> AsyncIterator[Document]:
        """The VM's document: as soon as it was read, then whenever it is another one.

        For who would rather know what is than what happened. Never raises for want of an answer.
        """
        shown: Document | None = None
        async for heard in self._listen():
            document = heard.document
            if document is not None and document != shown:
                shown = document
                yield document

    async def _listen(self, known: Iterable[Event] = ()) -> AsyncIterator[Heard]:
        """What comes of each question."""
        watch = self._contact.watch(known)
        async with AsyncLine() as line:
            while True:
                asked = watching.ask(watch, elapsed())
                await _sleep(asked.at)
                began = elapsed()
                outcome = await line.exchange(
                    self._contact.endpoint,
                    asked.request,
                    connect=self._contact.pace.connect,
                    patience=asked.patience,
                )
                self._contact.note(outcome)
                heard = watching.heard(watch, asked, outcome, began=began, now=elapsed())
                self._contact.learn(heard)
                took, waits = elapsed() - began, bool(asked.wait)
                self._contact.count(took, is_well=heard.trouble is None, waits=waits)
                watch = heard.watch
                yield heard

    async def events(self, *, within: timedelta = WITHIN) -> tuple[Event, ...]:
        """All events of the document. Raises: Refused, Unavailable."""
        return await self._run(errands.EVENTS, within)

    async def approve(self, *events: Event | str, within: timedelta = WITHIN) -> None:
        """Let events start, for all VMs that they concern; several at once, or none of them.

        What was approved may be approved again. Raises: Malformed, Refused, Unavailable.
        """
        await self._run(errands.approval(events), within)

    async def name(self, *, within: timedelta = WITHIN) -> str:
        """The VM's own name, as in an event's resources. Raises: Refused, Unavailable."""
        if self._contact.name is None:
            self._contact.name = await self._run(errands.NAME, within)
        return self._contact.name

    async def _run(self, errand: Errand[T], within: timedelta) -> T:
        attempt = self._contact.attempt(within)
        async with AsyncLine() as line:
            while True:
                await _sleep(attempt.at)
                began = elapsed()
                outcome = await line.exchange(
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


async def _sleep(until: timedelta) -> None:
    await asyncio.sleep(max((until - elapsed()).total_seconds(), 0))
