"""Secrets as Argon2id hashes."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

from forewarn.errors import Unavailable

if TYPE_CHECKING:
    from argon2 import PasswordHasher

# OWASP's second choice of parameters: about 30 ms on a small machine.
MEMORY_KIB: Final = 19 * 1024
ROUNDS: Final = 2
# Hashing takes a core and 19 MB: a flood of logins must not take all of them.
AT_ONCE_MAX: Final = 2
WAIT_SECONDS_MAX: Final = 5.0
# Whoever waits occupies a thread of the control plane: fewer than it has, or a flood of logins
# keeps everybody else waiting.
WAITING_MAX: Final = 6


class Argon2Secrets:
    """Makes secrets of 256 bits, and hashes them slowly."""

    def __init__(self) -> None:
        self._places = threading.BoundedSemaphore(AT_ONCE_MAX + WAITING_MAX)
        self._turns = threading.BoundedSemaphore(AT_ONCE_MAX)

    def make(self) -> str:
        """A new secret that nobody can guess."""
        return secrets.token_urlsafe(32)

    def hash(self, secret: str) -> str:
        """What to keep of a secret. Raises: Unavailable if too many ask."""
        with self._turn():
            return self._hasher.hash(secret)

    def is_secret(self, secret: str, hashed: str) -> bool:
        """Whether a hash was made of this secret. Raises: Unavailable if too many ask."""
        from argon2.exceptions import VerifyMismatchError  # noqa: PLC0415 - see _hasher

        with self._turn():
            try:
                return self._hasher.verify(hashed, secret)
            except VerifyMismatchError:
                return False

    @cached_property
    def _hasher(self) -> PasswordHasher:
        # Whoever only starts the service hashes nothing.
        from argon2 import PasswordHasher  # noqa: PLC0415

        return PasswordHasher(time_cost=ROUNDS, memory_cost=MEMORY_KIB, parallelism=1)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with _held(self._places, 0), _held(self._turns, WAIT_SECONDS_MAX):
            yield


@contextmanager
def _held(places: threading.BoundedSemaphore, seconds: float) -> Iterator[None]:
    if not places.acquire(timeout=seconds):
        raise Unavailable("too many log in at one time: try again")
    try:
        yield
    finally:
        places.release()
