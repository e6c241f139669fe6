"""The backroom: what commits is done in worker threads, and gone on with in the loop's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


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
