"""Dockets: what this fabric was ordered to do and how far it is, in files that outlive the process.

Why files of our own, and not the domain's metadata: a docket outlives its domain, which a Terminate
removes; it can be written while the host is away; and it is durable before anything is done, which is
what makes an order happen once. The service's own store is not the fabric's to write.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from forewarn.core.events import EventType
from forewarn.core.names import EventId, HostName, MachineName, ScopeId
from forewarn.core.orders import Order, Progress
from forewarn.errors import Refused, Unavailable

# A fabric that forgot an order would carry it out again if it were begun again. Nobody asks for
# one this far back.
REMEMBERED_MAX: Final = 10_000
# A domain's XML may hold its secrets.
_OWNER_ONLY: Final = 0o600

Key = tuple[EventId, MachineName]


class Step(Enum):
    """One thing to be done to a domain. Each looks first, and does only what is missing."""

    PAUSE = "pause"
    RESUME = "resume"
    # Asked, and after a while forced.
    STOP = "stop"
    DESTROY = "destroy"
    # How its ephemeral disks are to be made anew.
    MEASURE = "measure"
    DISCARD = "discard"
    RENEW = "renew"
    # Those of them that an overtaken order took away.
    FILL = "fill"
    DEFINE = "define"
    UNDEFINE = "undefine"
    START = "start"
    MIGRATE = "migrate"
    # After a failure: from the host that it should have gone to, back to where it was.
    RETREAT = "retreat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Docket:
    """An order, the domain it is about, and the steps that are still to be taken."""

    event: EventId
    scope: ScopeId
    machine: MachineName
    impact: EventType
    duration: timedelta
    # The domain's UUID.
    domain: str
    host: HostName
    # Where it goes; None: it stays.
    target: HostName | None = None
    # The run of the domain that the order found; None: it was off.
    number: int | None = None
    is_persistent: bool = True
    starts_with_host: bool = False
    xml: str = ""
    # The files of its ephemeral disks, and how to make them anew.
    volumes: tuple[tuple[str, str], ...] = ()
    steps: tuple[Step, ...]
    # When the present step was begun.
    since: datetime
    progress: Progress = Progress.RUNNING
    # Why it failed, or is about to.
    detail: str = ""

    @property
    def key(self) -> Key:
        return (self.event, self.machine)

    @property
    def is_open(self) -> bool:
        return self.progress is Progress.RUNNING

    @property
    def destination(self) -> HostName:
        """The host where the machine is to run when all is done."""
        return self.target or self.host


def key_of(order: Order) -> Key:
    """What an order is known by."""
    return (order.event, order.machine)


class Overtaken(Exception):
    """Another order for the same machine has taken the place of this one."""


def over(docket: Docket, now: datetime) -> Docket:
    """The docket of an order that has ended: well, unless there is something to say."""
    progress = Progress.FAILED if docket.detail else Progress.DONE
    # What was needed to carry it out is needed no longer, and may hold secrets.
    return replace(docket, progress=progress, since=now, steps=(), xml="", volumes=())


def _itself(docket: Docket, _: Docket) -> Docket:
    return docket


_decoder = msgspec.json.Decoder(Docket)


class Dockets:
    """All dockets of a fabric: in memory, and each in a file of its own."""

    def __init__(self, directory: Path, remembered_max: int = REMEMBERED_MAX) -> None:
        """Read what is there. Raises: Refused if it cannot be understood or written."""
        self._directory = directory
        self._remembered_max = remembered_max
        # Guards the map; a docket's own thread is the only one that changes it.
        self._lock = threading.Lock()
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = [_read(file) for file in sorted(directory.glob("*.json"))]
        except OSError as error:
            raise Refused(
                f"{directory} cannot be used ({error.strerror}): make it writable for this user"
            ) from error
        found.sort(key=lambda docket: docket.since)
        self._dockets = {docket.key: docket for docket in found}

    def get(self, key: Key) -> Docket | None:
        return self._dockets.get(key)

    def all(self) -> Mapping[Key, Docket]:
        """A copy, so that nobody sees it change."""
        with self._lock:
            return dict(self._dockets)

    def open(
        self, docket: Docket, inherit: Callable[[Docket, Docket], Docket] = _itself
    ) -> Docket | None:
        """Keep a new docket durably; None if its order has one. Raises: Unavailable.

        Whatever else was under way with its domain is over: two would work against each other. What
        that leaves to be done, the new one is given by `inherit`.
        """
        with self._lock:
            if docket.key in self._dockets:
                return None
            for other in list(self._dockets.values()):
                if other.is_open and other.domain == docket.domain:
                    docket = inherit(docket, other)
                    text = f"overtaken by the {docket.impact.value} of event {docket.event}"
                    self._write(over(replace(other, detail=text), docket.since))
            self._write(docket)
            self._forget_oldest()
            return docket

    def keep(self, docket: Docket) -> None:
        """Keep a docket in the place of its former self, durably.

        Raises: Overtaken, Unavailable.
        """
        with self._lock:
            if not self._dockets[docket.key].is_open:
                raise Overtaken
            self._write(docket)

    def _write(self, docket: Docket) -> None:
        file = self._directory / _file_name(docket.key)
        draft = file.with_suffix(".new")
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
            with os.fdopen(descriptor, "wb") as out:
                out.write(msgspec.json.encode(docket))
                out.flush()
                os.fsync(out.fileno())
            draft.replace(file)
            self._sync()
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise Unavailable(
                f"{file} cannot be written ({error.strerror}): see to its disk; tried again"
            ) from error
        self._dockets[docket.key] = docket

    def _sync(self) -> None:
        """A name is durable once its directory is."""
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _forget_oldest(self) -> None:
        ended = [docket.key for docket in self._dockets.values() if not docket.is_open]
        for key in ended[: max(len(self._dockets) - self._remembered_max, 0)]:
            del self._dockets[key]
            with suppress(OSError):
                (self._directory / _file_name(key)).unlink(missing_ok=True)


def _file_name(key: Key) -> str:
    event, machine = key
    return f"{quote(event, safe='')}.{quote(machine.lower(), safe='')}.json"


def _read(file: Path) -> Docket:
    try:
        return _decoder.decode(file.read_bytes())
    except msgspec.MsgspecError as error:
        raise Refused(
            f"{file} cannot be understood ({error}): if no impact was under way, move it away"
        ) from error
