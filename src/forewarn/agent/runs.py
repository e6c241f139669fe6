"""Runs of hooks: processes that outlive the agent, and say on disk how they ended.

A run has a directory. Its lock is held by the hook's processes themselves, from before the first of them, a shell around
the hook, whose first act is to write its `pid`, and whose last one to write `exit`. So an agent that was killed learns
from the directory alone what became of the hooks it had begun:

    `exit` is there     it is over, and how
    the lock is held    it goes on; unless only those hold it who left the hook's group, as daemons do
    `pid` is there      it was cut off, by a reboot or a SIGKILL
    otherwise           it was never begun

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from forewarn.agent.names import file_name
from forewarn.errors import Unavailable

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
_STDERR: Final = 2


@dataclass(frozen=True, slots=True)
class Over:
    """It ended by itself, with this status."""

    code: int


@dataclass(frozen=True, slots=True)
class Going:
    """It goes on."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """Nothing of it is left, and nobody knows how far it came."""


@dataclass(frozen=True, slots=True)
class Absent:
    """It was never begun."""


Look: TypeAlias = Over | Going | CutOff | Absent


class Runs(Protocol):
    """Who runs hooks. A run's id has parts, the first of which is its event's."""

    def begin(self, run: str, command: tuple[str, ...], environment: Mapping[str, str]) -> None:
        """Begin a run, unless it was begun under this id before. Raises: Unavailable."""
        ...

    def look(self, run: str) -> Look:
        """How a run is now. Raises: Unavailable."""
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
        # Of those begun here, as long as they go on; others say in a file who they are.
        self._pids: dict[str, int] = {}

    def begin(self, run: str, command: tuple[str, ...], environment: Mapping[str, str]) -> None:
        place = self._directory / run
        if not isinstance(self.look(run), Absent):
            return
        try:
            place.mkdir(parents=True, exist_ok=True)
            self._start(run, place, command, environment)
        except OSError as error:
            raise _away(place, error) from error

    def _start(
        self, run: str, place: Path, command: tuple[str, ...], environment: Mapping[str, str]
    ) -> None:
        lock = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = subprocess.Popen(  # noqa: S603 - the owner's own hooks
                ["/bin/sh", "-c", _AROUND, str(place), *command],
                stdin=subprocess.DEVNULL,
                # What hooks say is for the log.
                stdout=_STDERR,
                env={**self._environment, **_sayable(environment)},
                cwd="/",
                start_new_session=True,
                pass_fds=(lock,),
            )
        except (OSError, ValueError) as error:
            _log.error("hook %s could not be started: %s", run, error)
            (place / "exit").write_text(f"{_COULD_NOT_START}\n")
            return
        finally:
            os.close(lock)
        self._pids[run] = process.pid
        threading.Thread(target=self._await, args=(run, process), name="hook", daemon=True).start()

    def _await(self, run: str, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        del self._pids[run]
        self._wake()

    def look(self, run: str) -> Look:
        place = self._directory / run
        try:
            # The lock first: who writes `exit` holds it, so that nothing is missed in between.
            is_going = _is_held(place / "lock") and self._is_alive(run)
        except OSError as error:
            raise _away(place, error) from error
        try:
            return Over(int((place / "exit").read_text()))
        except (FileNotFoundError, ValueError):
            if is_going:
                return Going()
            return CutOff() if (place / "pid").exists() else Absent()

    def signal(self, run: str, number: signal.Signals) -> None:
        pid = self._pid(run)
        if pid is not None and self._is_alive(run):
            with suppress(ProcessLookupError):
                os.killpg(pid, number)

    def _pid(self, run: str) -> int | None:
        """Who is the first of a run's group; None if it has not said so yet."""
        try:
            return self._pids.get(run) or int((self._directory / run / "pid").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def _is_alive(self, run: str) -> bool:
        """Whether one of its group is there, or is about to be.

        After a while, others may have their numbers: only who has the lock is meant.
        """
        pid, lock = self._pid(run), self._directory / run / "lock"
        return pid is None or _holds(pid, lock) or any(_holds(one, lock) for one in _group(pid))

    def forget(self, event_id: str) -> None:
        shutil.rmtree(self._directory / file_name(event_id), ignore_errors=True)


def _away(place: Path, error: OSError) -> Unavailable:
    return Unavailable(f"cannot keep runs of hooks in {place}: {error.strerror}")


def _is_held(lock: Path) -> bool:
    try:
        file = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
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


def _group(leader: int) -> Iterator[int]:
    """The processes of a group."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # After the name, which may have anything in it: state, parent, group.
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == leader:
                yield int(process.name)


def _sayable(environment: Mapping[str, str]) -> dict[str, str]:
    """What a process can be told: documents may have signs in them that no environment can."""
    return {
        name: value.replace("\0", "").encode(errors="replace").decode()
        for name, value in environment.items()
    }
