"""Whether this VM does its duty, as a command of the owner's says."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Final

from forewarn.agent.inquiries import says_yes

# So long an answer is good for whoever asks.
KEPT_SECONDS: Final = 1.0

_log: Final = logging.getLogger("forewarn.agent")


class Health:
    """Asks the command when it is asked, but one at a time and not all the time."""

    def __init__(self, command: tuple[str, ...] | None, environment: Mapping[str, str]) -> None:
        """Without a command, it is always well."""
        self._command = command
        self._environment = dict(environment)
        self._lock = threading.Lock()
        self._answered = float("-inf")
        self._is_well = True

    def is_well(self) -> bool:
        if self._command is None:
            return True
        with self._lock:
            if time.monotonic() - self._answered >= KEPT_SECONDS:
                was_well = self._is_well
                self._is_well = says_yes(self._command, self._environment)
                self._answered = time.monotonic()
                if self._is_well != was_well:
                    _log.info("`healthy` says %s", "yes again" if self._is_well else "no")
            return self._is_well
