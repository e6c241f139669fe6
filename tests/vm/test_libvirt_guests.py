"""What impacts are to a real guest in a real machine, by its own words."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

libvirt = pytest.importorskip(
    "libvirt", reason="libvirt-python is not installed: pip install libvirt-python"
)

from forewarn.core.events import EventType
from forewarn.core.names import EventId, MachineName, ScopeId
from forewarn.core.orders import Order, Progress, Report
from forewarn.fabrics.libvirt.pursuits import Patience
from forewarn.testing.guests import Diary, Guest, guest
from forewarn.testing.hypervisors import Fabrics, is_over, ours, wait_until
from forewarn.testing.qemu_hosts import QemuHost, bare_xml, why_not

pytestmark = [pytest.mark.vm, pytest.mark.skipif(bool(why_not()), reason=why_not())]

# An emulated guest boots in some seconds; on a busy machine, in many.
SECONDS = 180.0
# Time enough for the guest to go by itself.
PATIENCE = Patience(stop=timedelta(seconds=120), look=timedelta(milliseconds=100))


@pytest.fixture(scope="module")
def kit() -> Guest:
    return guest(Path(__file__).resolve().parents[2] / ".venv" / "guest")


def disk(file: Path, target: str, mebibytes: int) -> str:
    with file.open("wb") as out:
        out.truncate(mebibytes << 20)
    return (
        f"<disk type='file' device='disk'><driver name='qemu' type='raw' cache='none'/>"
        f"<source file='{file}'/><target dev='{target}' bus='virtio'/></disk>"
    )


def done(
    fabrics: Fabrics,
    event: str,
    impact: EventType,
    meanwhile: Callable[[], object] = lambda: None,
) -> None:
    order = Order(
        EventId(event),
        ScopeId("default/web-0"),
        MachineName("web-0"),
        impact,
        timedelta(seconds=4),
    )
    fabric = fabrics.start()
    fabric.begin(order)
    meanwhile()
    wait_until(lambda: is_over(fabric, order), SECONDS)
    assert fabric.observe(order) == Report(Progress.DONE)
    fabrics.stop()


def test_a_guest_feels_every_impact_as_it_is_promised(
    kit: Guest, tmp_path: Path, hosts: tuple[QemuHost, QemuHost]
) -> None:
    """Keeps S10: Freeze, Reboot, Redeploy and Preempt, told by the guest itself."""
    diary = Diary(tmp_path / "serial.log")
    (tmp_path / "disks").mkdir()
    devices = (
        disk(tmp_path / "disks/data.img", "vda", 4)
        + disk(tmp_path / "disks/temporary.img", "vdb", 8)
        + diary.device
    )
    metadata = ours("", "<forewarn:ephemeral disk='vdb'/>")
    xml = bare_xml("web-0", metadata=metadata, inside=kit.boot_xml, devices=devices)
    fabrics = Fabrics(tmp_path / "dockets", [host.link for host in hosts], PATIENCE)
    hosts[0].run(xml)
    wait_until(lambda: diary.beats, SECONDS)
    assert (diary.said("disk vda"), diary.said("disk vdb")) == (["empty"], ["empty"])

    # A Freeze: the same boot, and no beat meanwhile.
    def hear_nothing() -> None:
        domain = hosts[0].connection.lookupByName("web-0")
        wait_until(lambda: domain.state()[0] == libvirt.VIR_DOMAIN_PAUSED)
        beats = len(diary.beats)
        time.sleep(2)
        assert len(diary.beats) == beats

    done(fabrics, "E1", EventType.FREEZE, hear_nothing)
    beats = len(diary.beats)
    wait_until(lambda: len(diary.beats) > beats, SECONDS)
    assert len(set(diary.beats)) == 1

    # A Reboot: asked for by the power button, another boot, all disks as they were.
    done(fabrics, "E2", EventType.REBOOT)
    wait_until(lambda: len(diary.boots) == 2, SECONDS)
    assert len(set(diary.boots)) == 2
    assert diary.said("button") == [""]
    assert (diary.said("disk vda")[1:], diary.said("disk vdb")[1:]) == (["written"], ["written"])

    # A Redeploy: another boot, on the other host, without what was on the ephemeral disk.
    done(fabrics, "E3", EventType.REDEPLOY)
    wait_until(lambda: len(diary.boots) == 3, SECONDS)
    assert len(set(diary.boots)) == 3
    assert (hosts[0].names(), hosts[1].names()) == ([], ["web-0"])
    assert (diary.said("disk vda")[2:], diary.said("disk vdb")[2:]) == (["written"], ["empty"])

    # A Preempt: no word any more, and what it had written is gone.
    done(fabrics, "E4", EventType.PREEMPT)
    beats = len(diary.beats)
    time.sleep(2)
    assert len(diary.beats) == beats
    assert hosts[1].names() == []
    assert (tmp_path / "disks/data.img").read_bytes()[:7] == b"written"
    assert not any((tmp_path / "disks/temporary.img").read_bytes())
