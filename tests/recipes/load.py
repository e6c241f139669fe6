"""Clients that ask one request after the other, and forgive nothing."""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from types import TracebackType
from typing import Final, Self

from tests.recipes.machines import wait_until

CLIENTS: Final = 12
ANSWER_SECONDS_MAX: Final = 30


class Load:
    """A dozen clients of one web site, at work from `with` to its end, over kept connections."""

    def __init__(self, address: str, port: int) -> None:
        self._place = (address, port)
        self._over = threading.Event()
        self._lock = threading.Lock()
        # A daemon each: a client that is never answered must not keep the tests.
        self._clients = [threading.Thread(target=self._ask, daemon=True) for _ in range(CLIENTS)]
        self.served: Counter[str] = Counter()
        self.failures: list[str] = []

    def __enter__(self) -> Self:
        for client in self._clients:
            client.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        for client in self._clients:
            client.join(2 * ANSWER_SECONDS_MAX)
        assert not any(client.is_alive() for client in self._clients)

    def go_on(self, count: int, *, by: str = "") -> None:
        """Let so many more requests be answered, by one of the servers or by any."""
        before = self._answered(by)
        wait_until(
            lambda: self._answered(by) >= before + count,
            f"{count} more answers by {by or 'anybody'}; so far {self.served}, {self.failures}",
        )

    @property
    def summary(self) -> str:
        return f"{self.served.total()} requests answered, {len(self.failures)} failed"

    def _answered(self, by: str) -> int:
        with self._lock:
            return self.served[by] if by else self.served.total()

    def _ask(self) -> None:
        line = http.client.HTTPConnection(*self._place, timeout=ANSWER_SECONDS_MAX)
        while not self._over.is_set():
            try:
                line.request("GET", "/")
                answer = line.getresponse()
                body, status = answer.read().decode(), answer.status
                trouble = "" if status == 200 else f"{status} {answer.reason}"
            except (OSError, http.client.HTTPException) as error:
                line.close()
                body, trouble = "", f"{type(error).__name__}: {error}"
            with self._lock:
                if trouble:
                    self.failures.append(trouble)
                else:
                    self.served[body.strip("x")] += 1
        line.close()
