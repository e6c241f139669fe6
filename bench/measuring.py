"""What the kernel says of a process: the time it ran, the memory it holds; and where it may run."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Final

KB: Final = 1024
MICRO: Final = 1e6
_PROC: Final = Path("/proc")
_WORKPLACES: Final = Path(__file__).parent / ".work"


def processor_seconds(pid: int) -> float:
    """The processor time that all threads of a process took, those that are gone included.

    From the process's own clock, which counts nanoseconds; /proc/PID/stat counts hundredths of a
    second.
    """
    # linux/posix-timers_types.h: the number of another process's clock.
    return time.clock_gettime((~pid << 3) | 2)


def resident_bytes(pid: int) -> int:
    """The memory that a process really has."""
    for line in (_PROC / str(pid) / "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * KB
    raise AssertionError("every living process says how large it is")


@contextmanager
def workplace() -> Iterator[Path]:
    """A directory on the disk of this clone: elsewhere, files may be in memory only."""
    _WORKPLACES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=_WORKPLACES) as name:
        yield Path(name)


def cores() -> tuple[int, int]:
    """One core for the server, and another for the load; the same one where there is no other."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[-1], usable[0]


def pin(pid: int, core: int) -> None:
    """Let all threads of a process run on one core only."""
    for task in (_PROC / str(pid) / "task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(task.name), {core})


def machine() -> dict[str, str | float | int]:
    """Where all this was measured."""
    model = next(
        line.partition(":")[2].strip()
        for line in (_PROC / "cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    return {
        "cpu_model": model,
        "cpu_count": os.cpu_count() or 1,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average_1m": round(os.getloadavg()[0], 2),
    }


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of ratios, each of one round: what slows the machine slows both."""
    return median(mine / other for mine, other in zip(ours, theirs, strict=True))


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
