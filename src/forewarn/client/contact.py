"""What a client learns of its endpoint, whoever waits for the answers: where it is, and who we are."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Final, TypeAlias, TypeVar

from forewarn.client import discovery, questions
from forewarn.client.discovery import Endpoint, Search
from forewarn.client.documents import Event
from forewarn.client.errands import Attempt, Errand
from forewarn.client.messages import Answer, Outcome
from forewarn.client.patience import Pace
from forewarn.client.tallies import Tally
from forewarn.client.watching import Heard, Watch

T = TypeVar("T")

# Looks for places where the metadata service may be, the likeliest first; again when none of them was.
Find: TypeAlias = Callable[[], tuple[Endpoint, ...]]

# Unlike the monotonic one, it goes on while the VM is suspended. Linux only.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_log: Final = logging.getLogger("forewarn.client")


def elapsed() -> timedelta:
    """An instant of a clock that never jumps."""
    return timedelta(seconds=time.clock_gettime(_CLOCK))


class Contact:
    """One client's memory. May be used by several threads: each value is replaced whole."""

    def __init__(
        self, endpoint: str | None, name: str | None, pace: Pace | None, find: Find | None
    ) -> None:
        """Raises: Malformed."""
        self.pace: Final = pace or Pace()
        self.name = name
        # Why the last answer to a watch was none; None if it was one.
        self.trouble: str | None = None
        self._find: Final = find or partial(discovery.places, endpoint)
        self._search = Search(self._find())
        self._has_read = False
        self.tally = Tally()
        # Each thread counts on from what the others counted.
        self._counting = threading.Lock()

    @property
    def endpoint(self) -> Endpoint:
        """Where to ask next."""
        return self._search.endpoint

    def note(self, outcome: Outcome) -> None:
        """Learn from an outcome whether this is the place to ask at."""
        is_well = isinstance(outcome, Answer) and outcome.status in (
            questions.OK,
            questions.NOT_MODIFIED,
        )
        search = self._search.after(is_well=is_well)
        if search.is_exhausted:
            # The network may be up by now, and a lease there.
            search = Search(self._find())
        self._search = search

    def watch(self, known: Iterable[Event]) -> Watch:
        """A watch that begins now."""
        return Watch(self.pace, name=self.name, known=tuple(known), due=elapsed())

    def count(self, took: timedelta, *, is_well: bool, waits: bool = False) -> None:
        """Count a question; what was asked to wait would say nothing of how soon answers come."""
        with self._counting:
            if not is_well:
                self.tally = self.tally.with_failure()
            elif not waits:
                self.tally = self.tally.with_answer(took)

    def learn(self, heard: Heard) -> None:
        """Take in what a watch heard, and log where trouble begins and ends."""
        self.name = heard.watch.name
        self._has_read = self._has_read or heard.watch.read_at is not None
        if heard.trouble is not None and self.trouble is None:
            _log.warning("scheduled events cannot be read: %s %s", self.endpoint, heard.trouble)
        if heard.trouble is None and self.trouble is not None:
            _log.warning("scheduled events can be read again, at %s", self.endpoint)
        self.trouble = heard.trouble

    def attempt(self, within: timedelta) -> Attempt:
        """The first attempt of an errand."""
        now = elapsed()
        return Attempt(self.pace, until=now + within, at=now, has_read=self._has_read)

    def succeeded(self, errand: Errand[T]) -> None:
        """Note what was answered: where it was of events, the slow first answer is behind us."""
        self._has_read = self._has_read or errand.request is not questions.NAME


class Contacted:
    """What both clients are: whoever waits, in a thread or in a loop."""

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        name: str | None = None,
        pace: Pace | None = None,
        find: Find | None = None,
    ) -> None:
        """`endpoint` is looked for, and the VM's own `name` asked for, unless they are given.

        `find` looks for it in another way than `discovery.places`. Raises: Malformed.
        """
        self._contact = Contact(endpoint, name, pace, find)

    @property
    def endpoint(self) -> str:
        """Where the metadata service is, or is looked for at the moment."""
        return f"http://{self._contact.endpoint}"

    @property
    def trouble(self) -> str | None:
        """Why the watch cannot read the document at the moment; None if it can."""
        return self._contact.trouble

    @property
    def known_name(self) -> str | None:
        """The VM's own name if it is known by now; nobody is asked."""
        return self._contact.name

    @property
    def tally(self) -> Tally:
        """How many questions were answered so far, how soon, and how many were not."""
        return self._contact.tally
