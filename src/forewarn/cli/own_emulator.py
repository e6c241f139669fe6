"""An emulator of one's own, for as long as a scenario is played: a process that is gone afterwards."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NoReturn

from forewarn.cli.client import Client
from forewarn.cli.transport import Service, Session, Transport
from forewarn.errors import ForewarnError, Malformed, Refused

STOP_SECONDS_MAX: Final = 10
# As everywhere on the command line.
CANNOT_BE_MEANT: Final = 2
ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
# Added to a signal's number, as shells do.
KILLED: Final = 128


@contextmanager
def own_emulator(fleet_toml: str, options: Sequence[str]) -> Iterator[Client]:
    """The way to an emulator of this fleet, started with these options. Raises: Malformed, Refused."""
    with TemporaryDirectory(prefix="forewarn-scenario-") as directory, _ending_with_us():
        fleet, log = Path(directory) / "fleet.toml", Path(directory) / "log"
        fleet.write_text(fleet_toml, encoding="utf-8")
        command = [sys.executable, "-m", "forewarn", "emulate", "--json", "--fleet", str(fleet)]
        with log.open("wb") as out:
            process = subprocess.Popen(  # noqa: S603 - our own program
                [*command, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=out
            )
        try:
            assert process.stdout is not None, "see Popen"
            line = process.stdout.readline()
            if not line:
                raise _refusal(process.wait(), _last_words(log))
            told = json.loads(line)
            remedy = "the scenario's own emulator has ended: play it again"
            service = Service(url=told["control"], token=told["token"], remedy=remedy)
            yield Client(Transport(service, Session(told["token"])))
        finally:
            _stop(process)


@contextmanager
def _ending_with_us() -> Iterator[None]:
    """Whoever ends this process ends the emulator too; so does a terminal that closes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    for number, handler in before.items():
        # Whoever has it ignored, as nohup does, means that.
        if handler is not signal.SIG_IGN:
            signal.signal(number, _exit)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit(number: int, _frame: object) -> NoReturn:
    sys.exit(KILLED + number)


def _refusal(status: int, words: str) -> ForewarnError:
    """Why there is no emulator: its options cannot be meant, or it cannot be where it is asked to."""
    if status == CANNOT_BE_MEANT:
        return Malformed(words)
    return Refused(f"no emulator could be started: {words}")


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix("forewarn: ") if lines else "it said nothing"


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    if process.stdout is not None:
        process.stdout.close()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
