"""The phases of a connection, from one request to the next."""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """What a connection is about."""

    # Nothing is under way.
    IDLE = "idle"
    # A request has begun to arrive.
    HEAD = "head"
    BODY = "body"
    # A request is with the server.
    ANSWERING = "answering"
    # A long poll: the answer comes with the next document.
    WAITING = "waiting"
    # Answered; the next request was sent ahead, or the guest has not read yet.
    DRAINING = "draining"
    # Refused for good; what still arrives is thrown away.
    LINGERING = "lingering"
    CLOSED = "closed"
