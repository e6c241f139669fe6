"""The client in a VM that has Python and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import forewarn
from forewarn.testing.scheduled_events import ScheduledEvents

SOURCE: Final = str(Path(forewarn.__file__).parents[1])
# Without site-packages, without PYTHONPATH, and without whatever a user has installed.
BARE: Final = [sys.executable, "-I", "-S", "-W", "error", "-c"]
ALONE: Final = f"""
import sys

sys.path.append({SOURCE!r})
import forewarn.client

assert 'asyncio' not in sys.modules
import forewarn.client.asynchronous

foreign = {{name.partition(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names)
print(sorted(foreign - {{"__main__", "forewarn"}}))
"""
ASKS: Final = f"""
import sys

sys.path.append({SOURCE!r})
from forewarn.client import Client

with Client() as client:
    print(client.name(), client.endpoint)
    client.approve(next(client.watch()).event)
"""
# What would go by any of these would go nowhere.
PROXIES: Final = dict.fromkeys(
    ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"], "http://127.0.0.1:9"
)


def run(program: str, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [*BARE, program], capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_standard_library_is_all_it_needs() -> None:
    assert run(ALONE) == "[]"


def test_it_finds_the_endpoint_by_the_environment_and_goes_by_no_proxy(
    scheduled_events: ScheduledEvents,
) -> None:
    event = scheduled_events.reboot("web-0")
    address = scheduled_events.environment()["SCHEDULEDEVENTSIP"]

    said = run(ASKS, {**os.environ, **PROXIES, "SCHEDULEDEVENTSIP": address, "no_proxy": ""})

    assert said == f"web-0 {scheduled_events.url}"
    assert event.approved_by == "web-0"


def test_it_finds_azures_address_by_itself(scheduled_events: ScheduledEvents) -> None:
    scheduled_events.skip_without_namespaces()
    event = scheduled_events.reboot("web-0")
    kept = ("FOREWARN_", "SCHEDULEDEVENTS")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(kept)}

    done = scheduled_events.run([*BARE, ASKS], vm="web-0", env={**environment, **PROXIES})

    assert done.stdout.strip() == "web-0 http://169.254.169.254", done.stderr
    assert event.approved_by == "web-0"
