"""The backroom: what commits is done in worker threads, and gone on with in the loop's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")
ItemT = TypeVar("ItemT")
OutcomeT = TypeVar("OutcomeT")


class Backroom:
    """A few threads that may wait for a disk."""

    def __init__(self, workers: int, on_quiet: Callable[[], None]) -> None:
        self._workers = ThreadPoolExecutor(workers, thread_name_prefix="forewarn-guests")
        self._on_quiet = on_quiet
        self._under_way = 0

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way."""
        return not self._under_way

    def do(self, job: Callable[[], T], then: Callable[[asyncio.Future[T]], None]) -> None:
        """Do this in a worker thread, and go on with the outcome in the loop's."""
        self._under_way += 1

        def end(done: asyncio.Future[T]) -> None:
            self._under_way -= 1
            # Whatever was not even begun when the grace was over has nobody to be told.
            if not done.cancelled():
                then(done)
            self._on_quiet()

        loop = asyncio.get_running_loop()
        loop.run_in_executor(self._workers, job).add_done_callback(end)

    def close(self) -> None:
        """Begin nothing more."""
        self._workers.shutdown(wait=False, cancel_futures=True)


class Tray(Generic[ItemT, OutcomeT]):
    """Collects what is asked for while others are at work: each lot is one job for the backroom.

    A thread for each would spend its time waiting for the others.
    """

    def __init__(
        self,
        backroom: Backroom,
        work: Callable[[Sequence[ItemT]], Sequence[OutcomeT]],
        *,
        lot_max: int,
    ) -> None:
        self._backroom = backroom
        self._work = work
        self._lot_max = lot_max
        self._waiting: list[tuple[ItemT, Callable[[OutcomeT | Exception], None]]] = []
        self._is_at_work = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be worked on."""
        return not self._waiting

    def put(self, item: ItemT, then: Callable[[OutcomeT | Exception], None]) -> None:
        """Have this done with what else is asked for, and go on with its outcome."""
        self._waiting.append((item, then))
        if not self._is_at_work:
            self._is_at_work = True
            # Not yet: whatever else arrived in this turn of the loop goes with it.
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        lot, self._waiting = self._waiting[: self._lot_max], self._waiting[self._lot_max :]
        self._is_at_work = bool(lot)
        if lot:
            items = [item for item, _ in lot]
            thens = [then for _, then in lot]
            self._backroom.do(partial(self._work, items), partial(self._end, thens))

    def _end(
        self,
        thens: Sequence[Callable[[OutcomeT | Exception], None]],
        job: asyncio.Future[Sequence[OutcomeT]],
    ) -> None:
        # The next ones are at work while these are told.
        self._begin()
        error = job.exception()
        if isinstance(error, Exception):
            outcomes: Sequence[OutcomeT | Exception] = [error] * len(thens)
        else:
            outcomes = job.result()
        for then, outcome in zip(thens, outcomes, strict=True):
            then(outcome)
