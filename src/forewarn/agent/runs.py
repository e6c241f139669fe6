"""Runs of hooks: processes that outlive the agent, and say on disk how they ended.

A run has a directory. Its lock is held by the hook's processes themselves, from before the first of them until the last
is gone; its `exit` is written by a shell around the hook. So an agent that was killed learns from the directory alone
what became of the hooks it had begun:

    `exit` is there     it is over, and how
    the lock is held    it goes on
    neither             it was cut off, by a reboot or a SIGKILL, or never began

Rule: what was begun under an id is never begun under that id again.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from forewarn.agent.names import file_name

_log: Final = logging.getLogger("forewarn.agent")

# The shell waits for its hook even if it is asked to end itself, to say how the hook ended.
_AROUND: Final = """trap : TERM INT HUP
run=$0
echo $$ > "$run/pid"
"$@"
echo $? > "$run/exit.new"
sync "$run/exit.new" 2> /dev/null
mv "$run/exit.new" "$run/exit"
"""
_COULD_NOT_START: Final = 126


@dataclass(frozen=True, slots=True)
class Over:
    """It ended by itself, with this status."""

    code: int


@dataclass(frozen=True, slots=True)
class Going:
    """It goes on."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """Nothing of it is left, and nobody knows how far it came, if it began."""


Look: TypeAlias = Over | Going | CutOff


class Runs(Protocol):
    """Who runs hooks. A run's id has parts, the first of which is its event's."""

    def begin(self, run: str, command: tuple[str, ...], environment: Mapping[str, str]) -> None:
        """Begin a run, unless it was begun under this id before."""
        ...

    def look(self, run: str) -> Look:
        """How a run is now."""
        ...

    def signal(self, run: str, number: signal.Signals) -> None:
        """Send it a signal, with all its processes; if it is over, nobody gets it."""
        ...

    def forget(self, event_id: str) -> None:
        """Remove what is kept of an event's runs."""
        ...


class ProcessRuns:
    """Runs that are real processes."""

    def __init__(
        self, directory: Path, environment: Mapping[str, str], wake: Callable[[], None]
    ) -> None:
        """`wake` is called in a thread of its own whenever a run is over that was begun here."""
        self._directory = directory
        self._environment = dict(environment)
        self._wake = wake

    def begin(self, run: str, command: tuple[str, ...], environment: Mapping[str, str]) -> None:
        place = self._directory / run
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            place.mkdir()
        except FileExistsError:
            return
        lock = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = subprocess.Popen(  # noqa: S603 - the owner's own hooks
                ["/bin/sh", "-c", _AROUND, str(place), *command],
                stdin=subprocess.DEVNULL,
                env={**self._environment, **environment},
                cwd="/",
                start_new_session=True,
                pass_fds=(lock,),
            )
        except OSError as error:
            _log.error("hook %s could not be started: %s", run, error)
            (place / "exit").write_text(f"{_COULD_NOT_START}\n")
            return
        finally:
            os.close(lock)
        threading.Thread(target=self._await, args=(process,), name="hook", daemon=True).start()

    def _await(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        self._wake()

    def look(self, run: str) -> Look:
        place = self._directory / run
        # The lock first: who writes `exit` holds it, so that nothing is missed in between.
        is_held = _is_held(place / "lock")
        try:
            return Over(int((place / "exit").read_text()))
        except (FileNotFoundError, ValueError):
            return Going() if is_held else CutOff()

    def signal(self, run: str, number: signal.Signals) -> None:
        place = self._directory / run
        try:
            pid = int((place / "pid").read_text())
        except (FileNotFoundError, ValueError):
            return
        # After a while, another process may have that number: only who has the lock is meant.
        if _holds(pid, place / "lock"):
            with suppress(ProcessLookupError):
                os.killpg(pid, number)

    def forget(self, event_id: str) -> None:
        shutil.rmtree(self._directory / file_name(event_id), ignore_errors=True)


def _is_held(lock: Path) -> bool:
    try:
        file = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)


def _holds(pid: int, lock: Path) -> bool:
    """Whether a process has a file open."""
    try:
        opened = [os.stat(one) for one in Path(f"/proc/{pid}/fd").iterdir()]  # noqa: PTH116
        wanted = lock.stat()
    except OSError:
        return False
    return any(os.path.samestat(one, wanted) for one in opened)
