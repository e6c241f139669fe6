"""The one source of now."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Tells the time of day, which may jump, and the time that passed, which may not."""

    def now(self) -> datetime:
        """The present instant, aware, in UTC."""
        ...

    def elapsed(self) -> timedelta:
        """Time since some fixed moment of this process's life; never goes back."""
        ...
