"""Many machines: how long a start takes, what each costs in memory, and what idling costs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from bench import measuring
from bench.contenders import Service
from bench.fleets import write_database

MACHINES_PER_SCOPE: Final = 10
SETTLE_SECONDS: Final = 3


def measure(*, scopes: int, idle_seconds: float) -> dict[str, float]:
    """A start with many scopes, and idling with one, with a thousand and with all of them."""
    figures: dict[str, float] = {}
    idle: dict[int, float] = {}
    with measuring.workplace() as directory:
        empty = 0
        for count in (1, max(scopes // 100, 2), scopes):
            service = _prepared(directory / str(count), count)
            began = time.perf_counter()
            with service:
                seconds = time.perf_counter() - began
                size = measuring.resident_bytes(service.pid)
                empty = empty or size
                if count == scopes:
                    machines = scopes * MACHINES_PER_SCOPE
                    figures["load_1m_machines_s"] = seconds
                    figures["load_1m_machines_cpu_s"] = measuring.processor_seconds(service.pid)
                    figures["bytes_per_machine"] = (size - empty) / machines
                    figures["machines_loaded"] = machines
                idle[count] = _idling(service, idle_seconds)
    for count, cost in idle.items():
        figures[f"idle_cpu_ms_per_s_{count}"] = cost
    figures["idle_extra_cpu_ms_per_s_100k"] = idle[scopes] - idle[1]
    return figures


def _prepared(data: Path, scopes: int) -> Service:
    service = Service(data, None)
    write_database(data / "forewarn.db", scopes=scopes, machines_per_scope=MACHINES_PER_SCOPE)
    return service


def _idling(service: Service, seconds: float) -> float:
    """Milliseconds of processor time for each second in which nobody asks."""
    time.sleep(min(SETTLE_SECONDS, seconds))
    began, before = time.perf_counter(), measuring.processor_seconds(service.pid)
    time.sleep(seconds)
    used = measuring.processor_seconds(service.pid) - before
    return used / (time.perf_counter() - began) * 1e3
