"""Who speaks to the control plane."""

from __future__ import annotations

from typing import Protocol

from forewarn.core.rights import Principal


class Authority(Protocol):
    """Tells whom a token stands for, and keeps the record of who was turned away."""

    def principal(self, bearer: str) -> Principal | None:
        """Whom this token was given to; None if it is not ours, is over, or was taken back.

        Called for every request, so it never touches the store.
        """
        ...

    def note_refusal(self, principal: Principal | None, address: str, what: str) -> None:
        """Write down that somebody was refused; None is whoever showed no valid token.

        Raises: Unavailable.
        """
        ...
