"""Azure's own command line, unmodified, against a running service: each command and its outcome.

    python tools/az_story.py --az /path/to/az

Every command of the list must succeed, and what it says is looked at where it matters. Prints a line
for each, and ends with status 1 if one did not do what it should.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from forewarn.testing.clouds import FLEET, SUBSCRIPTION, WILLING, WillingGuests
from forewarn.testing.processes import ServiceProcess

COMMAND_SECONDS_MAX: Final = 180
COMPUTE: Final = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg1/providers/Microsoft.Compute"

Check = Callable[[Any], bool]


def anything(_said: object) -> bool:
    return True


def named(*names: str) -> Check:
    """Whether a list has exactly these, whatever else they are."""
    return lambda said: {one["name"] for one in said} >= set(names)


def counting(number: int) -> Check:
    """Whether a list has so many."""
    return lambda said: len(said) == number


def capacity(number: int) -> Check:
    """Whether a scale set has so many instances."""
    return lambda said: bool(said["sku"]["capacity"] == number)


@dataclass(frozen=True, slots=True)
class Step:
    """One command, and what must hold of its JSON."""

    command: str
    check: Check = anything


# The commands that are promised, in an order in which each finds what it needs.
STEPS: Final = (
    Step("vm list -g rg1", named("web-0", "web-1", "lone", "cheap")),
    Step("vm list", named("web-0", "elsewhere")),
    Step("vm list -g rg1 -d", named("web-0")),
    Step("vm show -g rg1 -n web-0", lambda said: said["name"] == "web-0"),
    Step("vm show -g rg1 -n web-0 -d", lambda said: said["powerState"] == "VM running"),
    Step(
        "vm get-instance-view -g rg1 -n web-0",
        lambda said: said["instanceView"]["statuses"][-1]["code"] == "PowerState/running",
    ),
    Step("vm restart -g rg1 -n web-0"),
    Step("vm restart -g rg1 -n web-0 --force"),
    Step("vm redeploy -g rg1 -n web-0"),
    Step("vm restart -g rg1 -n lone --no-wait"),
    Step("vm perform-maintenance -g rg1 -n web-0"),
    Step("vm reapply -g rg1 -n web-0"),
    Step("vm stop -g rg1 -n web-1"),
    Step("vm start -g rg1 -n web-1"),
    Step("vm deallocate -g rg1 -n web-1"),
    Step("vm start -g rg1 -n web-1"),
    Step("vm simulate-eviction -g rg1 -n cheap"),
    Step(
        "vm update -g rg2 -n elsewhere --enable-user-reboot-scheduled-events true"
        " --enable-user-redeploy-scheduled-events true --additional-scheduled-events true",
        lambda said: said["scheduledEventsPolicy"]["userInitiatedReboot"]["automaticallyApprove"],
    ),
    Step("vm restart -g rg2 -n elsewhere"),
    Step("vm delete -g rg1 -n many-10 --yes"),
    Step("vmss list -g rg1", named("ss1", "spots")),
    Step("vmss show -g rg1 -n ss1", capacity(3)),
    Step("vmss list-instances -g rg1 -n ss1", counting(3)),
    Step("vmss show -g rg1 -n ss1 --instance-id 0", lambda said: said["instanceId"] == "0"),
    Step("vmss get-instance-view -g rg1 -n ss1 --instance-id 0"),
    Step(
        "vmss update -g rg1 -n ss1 --enable-terminate-notification true"
        " --terminate-notification-time 6",
        lambda said: (
            said["virtualMachineProfile"]["scheduledEventsProfile"]["terminateNotificationProfile"][
                "notBeforeTimeout"
            ]
            == "PT6M"
        ),
    ),
    Step("vmss restart -g rg1 -n ss1 --instance-ids 1"),
    Step("vmss perform-maintenance -g rg1 -n ss1 --instance-ids 1"),
    Step("vmss deallocate -g rg1 -n ss1 --instance-ids 1"),
    Step("vmss start -g rg1 -n ss1 --instance-ids 1"),
    Step("vmss reimage -g rg1 -n ss1 --instance-ids 1"),
    Step("vmss delete-instances -g rg1 -n ss1 --instance-ids 2"),
    Step("vmss list-instances -g rg1 -n ss1", counting(2)),
    Step("vmss simulate-eviction -g rg1 -n spots --instance-id 0"),
    Step(
        f"rest -m put -u {COMPUTE}/virtualMachineScaleSets/made?api-version=2024-11-01"
        ' -b {"location":"local","sku":{"name":"x","capacity":2},"properties":{}}'
    ),
    Step("vmss scale -g rg1 -n made --new-capacity 4", capacity(4)),
    Step("vmss delete -g rg1 -n made"),
    Step("vm availability-set list -g rg1", named("web", "many")),
    Step("vm availability-set show -g rg1 -n web", lambda said: said["name"] == "web"),
    Step("vm availability-set update -g rg1 -n web --set tags.a=b"),
    Step("vm availability-set create -g rg1 -n fresh --platform-update-domain-count 3"),
    Step("group list", named("rg1", "rg2")),
    Step("group show -n rg1"),
    Step("account list-locations"),
    Step(f"rest -m post -u {COMPUTE}/virtualMachines/web-0/restart?api-version=2024-11-01"),
    Step(f"resource show --ids {COMPUTE}/virtualMachines/web-0"),
    Step(f"resource invoke-action --action redeploy --ids {COMPUTE}/virtualMachines/web-1"),
    Step("resource list"),
)


@dataclass(slots=True)
class Story:
    """Runs the commands one by one, and keeps count."""

    az: Path
    environment: dict[str, str]
    failures: list[str] = field(default_factory=list)

    def run(self, step: Step) -> None:
        began = time.monotonic()
        done = subprocess.run(
            [str(self.az), *_words(step.command), "--only-show-errors", "-o", "json"],
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_SECONDS_MAX,
            env=self.environment,
        )
        reason = _reason(done, step.check)
        outcome = "ok    " if reason is None else "FAILED"
        _say(f"{outcome} {time.monotonic() - began:5.1f} s  az {step.command}")
        if reason is not None:
            _say(f"       {reason}")
            self.failures.append(step.command)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _words(command: str) -> Sequence[str]:
    return command.split(" ")


def _reason(done: subprocess.CompletedProcess[str], check: Check) -> str | None:
    """Why a command did not do what it should; None if it did."""
    if done.returncode != 0:
        return done.stderr.strip()[-500:]
    try:
        said = json.loads(done.stdout) if done.stdout.strip() else None
        return None if check(said) else f"said {done.stdout[:500]}"
    except (ValueError, KeyError, TypeError, IndexError) as error:
        return f"{type(error).__name__} {error} in {done.stdout[:500]}"


def environment(service: ServiceProcess) -> dict[str, str]:
    """The variables that `forewarn env` tells, for a shell that has no others of Azure's."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AZURE_")}
    told: dict[str, str] = service.json("env")
    return {**inherited, **told, "AZURE_CORE_COLLECT_TELEMETRY": "0"}


def main() -> int:
    """Run the story; 1 if a command failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--az", type=Path, required=True, help="the az to drive")
    az = parser.parse_args().az.absolute()
    with tempfile.TemporaryDirectory(prefix="forewarn-az-") as data:
        service = ServiceProcess(Path(data), FLEET, "--impacts-take", "1s")
        with service, WillingGuests(service, *WILLING):
            setup = service.run("az-setup", "--az", str(az))
            _say(setup.stdout + setup.stderr)
            if setup.returncode != 0:
                return 1
            story = Story(az, environment(service))
            for step in STEPS:
                story.run(step)
    _say(f"{len(STEPS)} commands, {len(story.failures)} failed")
    return 1 if story.failures else 0


if __name__ == "__main__":
    sys.exit(main())
