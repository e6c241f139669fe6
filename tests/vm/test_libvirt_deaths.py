"""A service that is killed in the middle of an impact on a real machine, and finishes it after restart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

libvirt = pytest.importorskip(
    "libvirt", reason="libvirt-python is not installed: pip install libvirt-python"
)

from forewarn.core.events import EventType
from forewarn.testing.hypervisors import FELT_BY, Feelings, ours, wait_until
from forewarn.testing.processes import ServiceProcess
from forewarn.testing.qemu_hosts import QemuHost, bare_xml

pytestmark = pytest.mark.vm


def ran(xml: str, hosts: tuple[QemuHost, QemuHost]) -> Feelings:
    """Run a machine on the first host; what happens to it from then on."""
    hosts[0].run(xml)
    made = Feelings()
    for host in hosts:
        host.feel(made)
    return made


def steps_left(data: Path) -> int | None:
    """How many steps the only order has before it; None if there is none."""
    for file in (data / "libvirt").glob("*.json"):
        return len(json.loads(file.read_bytes())["steps"])
    return None


@pytest.mark.parametrize(
    ("impact", "left"),
    [
        # Paused, and nobody there to resume it.
        (EventType.FREEZE, 1),
        # Asked to stop.
        (EventType.REBOOT, 2),
        # Stopped here, and not yet there.
        (EventType.REDEPLOY, 4),
        (EventType.PREEMPT, 2),
        (EventType.TERMINATE, 3),
    ],
)
def test_an_impact_that_was_cut_off_is_finished_once(
    impact: EventType, left: int, tmp_path: Path, hosts: tuple[QemuHost, QemuHost]
) -> None:
    """Keeps S10, N3: `kill -9` in the middle of each, and it happens once all the same."""
    feelings = ran(bare_xml("web-0", metadata=ours("spot='yes'")), hosts)

    cut_off(impact, left, tmp_path / "data", hosts)

    wait_until(lambda: feelings.count("web-0", FELT_BY[impact]) == 1)
    running = [host.names() for host in hosts]
    expected = {
        EventType.FREEZE: [["web-0"], []],
        EventType.REBOOT: [["web-0"], []],
        EventType.REDEPLOY: [[], ["web-0"]],
    }
    assert running == expected.get(impact, [[], []])


def test_a_live_migration_that_was_cut_off_is_finished_once(
    tmp_path: Path, hosts: tuple[QemuHost, QemuHost]
) -> None:
    """Keeps S10, N3: the hosts move it between themselves, whether we live or not."""
    feelings = ran(bare_xml("web-0", metadata=ours("freeze='migrate'")), hosts)

    cut_off(EventType.FREEZE, 1, tmp_path / "data", hosts)

    # It left one host and came up on the other, once each.
    for event in (libvirt.VIR_DOMAIN_EVENT_STOPPED, libvirt.VIR_DOMAIN_EVENT_STARTED):
        wait_until(lambda event=event: feelings.count("web-0", event) == 1)  # type: ignore[misc]
    assert [host.names() for host in hosts] == [[], ["web-0"]]


def cut_off(impact: EventType, left: int, data: Path, hosts: tuple[QemuHost, QemuHost]) -> None:
    """Kill a service when an impact has so many steps left; start it again, and wait for the end."""
    named = (f"--libvirt={host.name}={host.uri}" for host in hosts)
    options = (*named, "--stop-within", "2s")
    with ServiceProcess(data, None, *options) as service:
        told = service.json("announce", impact.value, "web-0", "--unannounced")
        (event,) = told["unannounced"]

        wait_until(lambda: (found := steps_left(service.data)) is not None and found <= left)
        service.restart()

        wait_until(lambda: _status(service, event["event_id"]) == "Completed")
        shown = json.dumps(service.json("show", event["event_id"]))
        assert '"done"' in shown, shown


def _status(service: ServiceProcess, event: str) -> str:
    status: str = service.json("show", event)["status"]
    return status
