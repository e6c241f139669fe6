"""Measure everything, print a table, and write bench/latest.json; or put that into README.md."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from bench import (
    agents,
    approving,
    emulating,
    loading,
    measuring,
    noticing,
    pages,
    polling,
    waiting,
)

LATEST: Final = Path(__file__).parent / "latest.json"

# What each figure means, and what it should be at most ("<=") or at least (">=").
MEANINGS: Final[Mapping[str, tuple[str, str]]] = {
    "poll_keepalive_vs_nginx": ("poll, kept connection: processor time, nginx = 1", "<= 1.0"),
    "poll_close_vs_nginx": ("poll, new connection each: processor time, nginx = 1", "<= 1.1"),
    "poll_keepalive_vs_flask": ("poll, kept connection: Flask under gunicorn = 1", ""),
    "poll_keepalive_vs_go": ("poll, kept connection: Go's net/http = 1", ""),
    "poll_keepalive_us_forewarn": ("poll, kept connection: microseconds", ""),
    "poll_keepalive_us_nginx": ("  the same, nginx", ""),
    "poll_keepalive_us_flask": ("  the same, Flask", ""),
    "poll_keepalive_us_go": ("  the same, Go", ""),
    "poll_close_us_forewarn": ("poll, new connection each: microseconds", ""),
    "poll_close_us_nginx": ("  the same, nginx", ""),
    "longpoll_kb_each": ("memory of a waiting guest, of 10,000: kB", "<= 3"),
    "longpoll_last_ms_of_10000": ("announce until the last of 10,000 knows: ms", "<= 200"),
    "longpoll_kb_each_of_50000": ("memory of a waiting guest, of 50,000: kB", ""),
    "announce_to_1000_guests_ms_p99": ("announce until 1,000 waiting guests know, p99: ms", ""),
    "approvals_per_s": ("durable approvals a second", ""),
    "approvals_per_commit": ("  approvals that shared a commit", ""),
    "approve_vs_sqlite": ("  the same rows in such groups, SQLite alone = 1", ">= 0.5"),
    "load_1m_machines_s": ("start with 1,000,000 machines: s", "<= 60"),
    "load_1m_machines_cpu_s": ("  the same, processor time: s", ""),
    "bytes_per_machine": ("memory of a machine: bytes", "<= 3072"),
    "idle_extra_cpu_ms_per_s_100k": ("idling with 100,000 scopes, beyond one: ms a second", "<= 5"),
    "emulator_ready_ms": ("start of an emulator: ms", "<= 1000"),
    "emulator_ready_cpu_ms": ("  the same, processor time: ms", ""),
    "emulator_reset_ms": ("reset of an emulator: ms", ""),
    "emulator_story_15_minutes_ms": ("a reboot of 15 minutes in an emulator: ms", "<= 50"),
    "story_15_minutes_ms": ("a reboot of 15 minutes in a test, by the plugin: ms", "<= 50"),
    "client_notice_longpoll_ms": (
        "Preempt until a client knows, slowest by long poll: ms",
        "<= 100",
    ),
    "client_notice_polling_ms": ("Preempt until a client knows, slowest by polling: ms", "<= 1200"),
    "agent_notice_ms_longpoll": ("Preempt until a hook acts, slowest by long poll: ms", "<= 100"),
    "agent_notice_ms_polling": ("Preempt until a hook acts, slowest by polling: ms", "<= 1200"),
    "agent_idle_mb_longpoll": ("idle agent, long poll: MB", "<= 30"),
    "agent_idle_mb_polling": ("idle agent, polling: MB", "<= 30"),
    "agent_idle_core_percent_longpoll": ("idle agent, long poll: % of a core", "<= 0.1"),
    "agent_idle_core_percent_polling": ("idle agent, polling: % of a core", "<= 0.1"),
}

Figures = dict[str, float]
FULL: Final[Mapping[str, Callable[[], Figures]]] = {
    "polling": lambda: polling.measure(rounds=15, polls=100_000),
    "waiting": lambda: waiting.measure(guests=10_000, many=50_000, few=1000, rounds=20),
    "approving": lambda: approving.measure(approvals=2000, rounds=3),
    "loading": lambda: loading.measure(scopes=100_000, idle_seconds=15),
    "emulating": lambda: emulating.measure(starts=5, stories=20),
    "noticing": lambda: {
        **noticing.measure(rounds=20),
        **agents.measure(rounds=20, idle_seconds=30),
    },
}
QUICK: Final[Mapping[str, Callable[[], Figures]]] = {
    "polling": lambda: polling.measure(rounds=5, polls=20_000),
    "waiting": lambda: waiting.measure(guests=10_000, many=0, few=1000, rounds=5),
    "approving": lambda: approving.measure(approvals=500, rounds=1),
    "loading": lambda: loading.measure(scopes=5000, idle_seconds=5),
    "emulating": lambda: emulating.measure(starts=2, stories=5),
    "noticing": lambda: {
        **noticing.measure(rounds=5),
        **agents.measure(rounds=5, idle_seconds=10),
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *FULL], help="only these; all if none")
    parser.add_argument("--quick", action="store_true", help="rough figures in a minute")
    parser.add_argument(
        "--write-readme", action="store_true", help="measure nothing; put the last figures there"
    )
    arguments = parser.parse_args()
    if arguments.write_readme:
        write_readme()
        return
    measures = QUICK if arguments.quick else FULL
    asked = " ".join([*(["--quick"] if arguments.quick else []), *arguments.parts])
    command = f'{pages.WHOLE} BENCH="{asked}"' if asked else pages.WHOLE
    found: dict[str, object] = {**measuring.machine(), "command": command}
    everywhere = os.sched_getaffinity(0)
    for part in arguments.parts or measures:
        print(f"measuring: {part}", flush=True)  # noqa: T201 - what is printed is the purpose
        os.sched_setaffinity(0, everywhere)
        found |= {name: round(value, 4) for name, value in measures[part]().items()}
    found["load_average_1m_after"] = round(os.getloadavg()[0], 2)
    LATEST.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(table(found))  # noqa: T201


def write_readme() -> None:
    """Put the figures of the last whole run into README.md."""
    if not LATEST.exists():
        sys.exit(f"there are no figures yet: run `{pages.WHOLE}` first")
    found = json.loads(LATEST.read_text(encoding="utf-8"))
    try:
        block = pages.markdown(found, MEANINGS)
    except pages.NotWhole as refusal:
        sys.exit(str(refusal))
    page = pages.README.read_text(encoding="utf-8")
    pages.README.write_text(pages.placed(page, block), encoding="utf-8")


def table(found: Mapping[str, object]) -> str:
    """The figures that matter, as people read them."""
    lines = [f"{'':58} {'measured':>10}  aim"]
    for name, (meaning, aim) in MEANINGS.items():
        if name in found:
            lines.append(f"{meaning:58} {found[name]!s:>10}  {aim}")
    place = ", ".join(f"{key} {found[key]}" for key in ("cpu_model", "cpu_count", "python"))
    load = f"load average {found['load_average_1m']} to {found['load_average_1m_after']}"
    return "\n".join([*lines, "", f"{place}, {load}", f"all figures: {LATEST}"])


if __name__ == "__main__":
    main()
