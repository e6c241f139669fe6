"""How much a guest may take of us, and why that much."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

# File descriptors that are not connections: the store's, the listeners', the log's.
DESCRIPTORS_RESERVED: Final = 64
# Connections to the control plane, and what part of all descriptors they may take: a crowd there
# must not keep guests out.
CONTROL_CONNECTIONS_MAX: Final = 2048
CONTROL_PART: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of the guests' endpoint. Whoever exceeds one is told, and disconnected."""

    # Clients send about 80 bytes; 8 kB is what most servers take.
    request_line_bytes_max: int = 8 * 1024
    # Clients send about 200 bytes in 5 headers.
    head_bytes_max: int = 16 * 1024
    headers_max: int = 64
    # A start request has 60 bytes for each event: room for a thousand of them.
    body_bytes_max: int = 64 * 1024
    # Clients that send chunks send one or two; each costs as much as a header, be it one byte.
    body_chunks_max: int = 128
    # What we keep of requests that were sent before the one at hand is answered.
    ahead_bytes_max: int = 64 * 1024
    # What may lie in our memory because a guest does not read; documents are far smaller.
    unread_bytes_max: int = 16 * 1024

    # Longer than the minute in which clients with keep-alive ask again.
    idle: timedelta = timedelta(seconds=75)
    # On a guest's own link a request arrives in milliseconds.
    head: timedelta = timedelta(seconds=10)
    body: timedelta = timedelta(seconds=10)
    # A guest may be frozen for a while and then go on reading.
    write: timedelta = timedelta(seconds=30)
    # How long the kernel keeps a connection to itself that has not said anything yet.
    held_back: timedelta = timedelta(seconds=1)
    # How long we go on listening to whoever was refused, so that it can read why.
    linger: timedelta = timedelta(seconds=2)
    # How often the deadlines above are looked at, and how late a long poll may end.
    sweep: timedelta = timedelta(seconds=1)

    # Several agents on one machine, each with a pool and a long poll.
    connections_per_caller_max: int = 64
    # All strangers together: they get one short answer each.
    connections_of_strangers_max: int = 256
    # Each costs a file descriptor and a few kB.
    connections_max: int = 50_000

    # One machine with several agents asks a few times a second, and a benchmark of ours hundreds of
    # times. This much takes 6 % of one core; whoever wants more is slowed down, not refused. A
    # long poll counts once, however long it waits; a request that we have not seen before counts
    # five times, and one with a body eight times, for that is what they cost.
    requests_per_second_max: int = 4_000
    # What may come at once after a silence; it is also the longest debt.
    requests_burst_max: int = 4_000
    # What one caller is answered before everybody else has a turn: a quarter of a millisecond.
    requests_per_turn_max: int = 16
    # Bytes that are no request of a known kind are counted in the same coin: a kilobyte, a request.
    bytes_per_second_max: int = 4 * 1024 * 1024

    # Requests whose decision is remembered. A guest sends two or three that differ.
    memo_entries_max: int = 16_384
    memo_entries_per_caller_max: int = 16
    memo_key_bytes_max: int = 1024

    # Threads for what commits; waiting for a disk, they share its commits.
    workers: int = 16
    # Approvals that are decided and committed together. More would save little, and keep the first
    # of them waiting for the last.
    approvals_together_max: int = 128


def connections_max(limits: Limits) -> int:
    """What the limits allow to guests, or the system if that is less."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return limits.connections_max
    left = soft - DESCRIPTORS_RESERVED - control_connections_max()
    return min(limits.connections_max, max(left, 1))


def control_connections_max() -> int:
    """How many connections the control plane may have at one time."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CONTROL_CONNECTIONS_MAX
    return min(CONTROL_CONNECTIONS_MAX, max(soft // CONTROL_PART, 1))
