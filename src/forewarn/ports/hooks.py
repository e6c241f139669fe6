"""Telling somebody outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from forewarn.core.targets import Target


class Post(Protocol):
    """Posts to the targets of webhooks. Safe to call from any thread.

    Every implementation passes `forewarn.testing.post_contract`.
    """

    def check(self, target: Target) -> None:
        """Say whether anything may be sent there at all, without sending. Raises: Refused."""
        ...

    def deliver(self, target: Target, headers: Sequence[tuple[str, str]], body: bytes) -> int:
        """Post a body, and return the status of the answer, whichever it is.

        Ends within a bounded time. Redirections are not followed. Never connects to a target that is
        not allowed, nor to a link-local or metadata address, whatever a name leads to.

        Raises: Refused if that may not be told, Unavailable if it gave no answer.
        """
        ...
