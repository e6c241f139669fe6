"""Commands for which 169.254.169.254 really is a served world, without root.

Each has a network of its own (`launcher`), with nothing in it but loopback and that address. The socket
that listens there is made inside and handed out to us, so nothing stands between the two: the
world's own endpoint takes the connections.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from forewarn.errors import Malformed, Refused
from forewarn.testing import launcher, sayings
from forewarn.testing.served_worlds import ServedWorld
from forewarn.web.door import Door

# An interpreter is started, on a busy machine.
START_SECONDS_MAX: Final = 30.0
STOP_SECONDS_MAX: Final = 5.0
_MESSAGE_BYTES_MAX: Final = 4096
# Told to go on.
_GO: Final = b"\0"

# What becomes of a command's output: a file, or one of subprocess's words.
Output = IO[str] | IO[bytes] | int | None


class NoNamespaces(Refused):
    """This system does not let its users make networks of their own."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"no network of its own can be made for a command here ({why}): allow user namespaces "
            "(in a container by its seccomp profile, on Ubuntu by the sysctl "
            "kernel.apparmor_restrict_unprivileged_userns=0), or point the code at `url` instead"
        )


class Command:
    """A command in a network of its own, as one machine; ended at the end of the `with`."""

    def __init__(  # noqa: PLR0913 - as subprocess has it
        self,
        world: ServedWorld,
        machine: str,
        command: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stdin: Output = None,
        stdout: Output = None,
        stderr: Output = None,
    ) -> None:
        """Start it. Raises: Malformed, NoNamespaces."""
        self._world = world
        self._door: Door | None = None
        words = sayings.command(command)
        # What was asked for; the process begins as something else.
        self.words: Final = tuple(words)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                script, number = str(Path(launcher.__file__)), str(theirs.fileno())
                self.process: Final = subprocess.Popen(  # noqa: S603 - the user's own command
                    [sys.executable, "-I", "-S", script, number, *words],
                    env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr, text=True,
                    pass_fds=[theirs.fileno()], start_new_session=True,
                )  # fmt: skip
            # What it will be; errors name it so.
            self.process.args = words
            try:
                ours.settimeout(START_SECONDS_MAX)
                self._begin(ours, machine)
            except BaseException:
                self.stop()
                raise

    def _begin(self, launching: socket.socket, machine: str) -> None:
        flags = socket.MSG_CMSG_CLOEXEC
        said, descriptors, *_ = socket.recv_fds(launching, _MESSAGE_BYTES_MAX, 1, flags)
        if not descriptors:
            raise NoNamespaces(said.decode() or "the launcher died")
        self._door = self._world.open(self._world.real_place(machine, descriptors[0]))
        launching.send(_GO)
        # Its end of the socket closes when it becomes the command.
        if why := launching.recv(_MESSAGE_BYTES_MAX):
            raise Malformed(f"cannot run {why.decode()}: check the name and the path")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def communicate(self, said: str | None, timeout: timedelta) -> tuple[str, str]:
        """Wait for its end; what it wrote. Raises: subprocess.TimeoutExpired."""
        return self.process.communicate(said, timeout.total_seconds())

    def stop(self) -> int:
        """Have it end, unless it has, and whatever it started; the exit status."""
        self._signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_SECONDS_MAX)
        self._signal(signal.SIGKILL)
        # Closes its pipes too.
        with self.process:
            pass
        self.close_door()
        return self.process.returncode

    def _signal(self, number: signal.Signals) -> None:
        # It leads a group of its own, whose number stays taken for as long as anybody is in it.
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def close_door(self) -> None:
        """Let nobody else in from its network."""
        if self._door is not None:
            self._world.shut(self._door)
            self._door = None
