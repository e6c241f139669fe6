"""A handler of scheduled events as people write them: polls, and approves what concerns its VM."""

from __future__ import annotations

import json
import threading
from types import TracebackType
from typing import Final, Self

from forewarn.testing.processes import PATH, VERSION, request

POLL_SECONDS: Final = 0.02
STOP_SECONDS_MAX: Final = 30


class ApprovingHandler:
    """Approves every scheduled event of one VM as soon as it reads of it, in a thread of its own."""

    def __init__(self, url: str, machine: str) -> None:
        self._url = url
        self._machine = machine
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join(STOP_SECONDS_MAX)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            try:
                self._poll()
            except OSError:
                # The emulator begins anew, or has not begun.
                continue

    def _poll(self) -> None:
        headers, target = {"Metadata": "true"}, f"{PATH}?api-version={VERSION}"
        reply = request(self._url, "GET", target, headers=headers)
        if reply.status != 200:
            return
        for event in reply.json["Events"]:
            if event["EventStatus"] == "Scheduled" and self._machine in event["Resources"]:
                body = json.dumps({"StartRequests": [{"EventId": event["EventId"]}]}).encode()
                request(self._url, "POST", target, headers=headers, body=body)
