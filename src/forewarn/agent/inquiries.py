"""Questions that a command of the owner's answers: exit status 0 is yes, and all else is no."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Final

LIMIT: Final = timedelta(seconds=5)

_log: Final = logging.getLogger("forewarn.agent")


def says_yes(
    command: tuple[str, ...], environment: Mapping[str, str], within: timedelta = LIMIT
) -> bool:
    """Ask, and wait for the answer; a command that takes longer is killed, with all its children."""
    try:
        process = subprocess.Popen(  # noqa: S603 - the owner's own command
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        _log.error("%s could not be asked: %s", shlex.join(command), error)
        return False
    try:
        return process.wait(within.total_seconds()) == 0
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _log.warning("%s did not answer within %s", shlex.join(command), within)
        return False
