"""Suspicion: how long somebody who gave a wrong secret has to wait before the next try.

Two things are counted: the wrong tries of one principal from one address, and all wrong tries from
one address. Each has some that are free, and then a wait that doubles with every further one. There
is no count for a principal alone: whoever knows its id could lock it out from anywhere. Secrets are
too long to be guessed from many addresses; the wait is there to keep guessing cheap for us.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv6Address, ip_address
from typing import Final

from forewarn.ports.clock import Clock

# What is free, for one principal from one address, and for an address.
TRIES_OF_ONE: Final = 3
TRIES_OF_ADDRESS: Final = 20
WAIT_MIN: Final = timedelta(seconds=1)
WAIT_MAX: Final = timedelta(seconds=60)
FORGOTTEN_AFTER: Final = timedelta(minutes=15)
# Kept at one time; beyond it, the one that was quiet for longest is forgotten.
REMEMBERED_MAX: Final = 10_000

# An IPv6 address is easily one of many: who has one has its whole network.
_IPV6_SHARED_BITS: Final = 64

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Count:
    tries: int
    last: timedelta


class Suspicion:
    """Counts wrong tries, in memory that is bounded."""

    def __init__(self, clock: Clock, turn: AbstractContextManager[object] | None = None) -> None:
        self._clock = clock
        # Where several threads ask, a lock.
        self._turn = nullcontext() if turn is None else turn
        self._counts: OrderedDict[_Key, _Count] = OrderedDict()

    def wait(self, principal_id: str, address: str) -> timedelta:
        """How long this principal has to wait at this address; zero: it may try. "" is unknown."""
        now = self._clock.elapsed()
        with self._turn:
            return max(
                self._left(key, free, now) for key, free in _keys(principal_id, address).items()
            )

    def note_failure(self, principal_id: str, address: str) -> None:
        """Somebody gave a wrong secret."""
        now = self._clock.elapsed()
        with self._turn:
            for key in _keys(principal_id, address):
                self._counts[key] = _Count(self._tries(key, now) + 1, now)
                self._counts.move_to_end(key)
            while len(self._counts) > REMEMBERED_MAX:
                self._counts.popitem(last=False)

    def note_success(self, principal_id: str, address: str) -> None:
        """Somebody gave the right one. What else came from the address is not forgiven by that."""
        with self._turn:
            self._counts.pop((principal_id, network(address)), None)

    def _left(self, key: _Key, free: int, now: timedelta) -> timedelta:
        count = self._counts.get(key)
        beyond = self._tries(key, now) - free
        if count is None or beyond < 0:
            return timedelta()
        # Doubled so often is more than enough, and less than a number can hold.
        wait = min(WAIT_MIN * (1 << min(beyond, 10)), WAIT_MAX)
        return max(count.last + wait - now, timedelta())

    def _tries(self, key: _Key, now: timedelta) -> int:
        count = self._counts.get(key)
        if count is None or now - count.last >= FORGOTTEN_AFTER:
            return 0
        return count.tries


def network(address: str) -> str:
    """Whoever has an address, as far as we can tell."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return str(IPv6Address(int(parsed) >> _IPV6_SHARED_BITS << _IPV6_SHARED_BITS))
    return address


def _keys(principal_id: str, address: str) -> dict[_Key, int]:
    """What is counted, and how many tries are free."""
    place = network(address)
    keys = {("", place): TRIES_OF_ADDRESS}
    if principal_id:
        keys[(principal_id, place)] = TRIES_OF_ONE
    return keys
