"""The agent inside a real machine: it drains, approves, and undoes; after the reboot too, and exactly once.

One host, one service, and one guest that runs the agent of this source. What its hooks do they tell over
the serial port, and whether it serves is told by the guest: drained, it does not, in the next boot either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

libvirt = pytest.importorskip(
    "libvirt", reason="libvirt-python is not installed: pip install libvirt-python"
)

from forewarn.testing.actors import Actor, disk_xml, prepared
from forewarn.testing.agent_guests import OWN, SYSTEM, own_disk, system_disk
from forewarn.testing.guests import Guest, guest
from forewarn.testing.hypervisors import wait_until
from forewarn.testing.processes import ServiceProcess
from forewarn.testing.qemu_hosts import QemuHost

pytestmark = pytest.mark.vm

KEPT: Final = Path(__file__).resolve().parents[2] / ".venv" / "guest"
# An emulated guest boots in some seconds; on a busy machine, in many.
SECONDS: Final = 180.0
# The endpoint is not named: 169.254.169.254 is where every VM looks.
CONFIG: Final = """
state = "/own/state"
hooks = "/own/hooks.d"
"""
SAY: Final = """#!/bin/sh
say() { echo "guest $EVENT_PHASE $EVENT_ID $*" > /dev/ttyS0; }
boot=$(cat /proc/sys/kernel/random/boot_id)
"""
DRAIN: Final = """
say begun $EVENT_TYPE $EVENT_ATTEMPT $boot
touch /own/drained
if [ "$EVENT_DESCRIPTION" = slowly ]; then
  trap 'say stopped; exit 1' TERM
  sleep 600 & wait $!
fi
# Had it been approved already, it would have started by now.
sleep 3
document=$(wget -q -O - --header 'Metadata: true' \\
  'http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01')
say drained $(echo "$document" | grep -o "$EVENT_ID[^}]*" | grep -o 'Scheduled\\|Started')
"""
RETURN: Final = """
say begun $EVENT_TYPE $EVENT_ATTEMPT $boot
rm /own/drained
"""
HOOKS: Final = {"prepare/10-drain": SAY + DRAIN, "undo/10-return": SAY + RETURN}


class Stage:
    """The guest with its agent, and the service that warns it."""

    def __init__(self, tmp_path: Path, host: QemuHost) -> None:
        self.host = host
        self.web = Actor(0, "web-0", tmp_path)
        self.diary = self.web.diary
        self.own = own_disk(tmp_path / "own.img", CONFIG, HOOKS)
        self.network = tmp_path / f"{host.name}.toml"
        self.network.write_text(f"namespace = '{host.name}'\n{self.web.link}")
        options = (f"--libvirt={host.name}={host.uri}", "--network", str(self.network))
        self.service = ServiceProcess(tmp_path / "data", None, *options)

    def boot(self, kit: Guest, system: Path) -> None:
        disks = disk_xml(system, SYSTEM, inside="<readonly/>") + disk_xml(self.own, OWN)
        self.host.run(self.web.xml(kit, devices=disks, root=SYSTEM))
        # Whose agent asks is told of events; until then nobody is.
        self.wait(self._is_enabled)
        self.serves_again()

    def _is_enabled(self) -> bool:
        return any(scope["enabled"] for scope in self.service.json("fleet")["scopes"])

    def announce(self, impact: str, *words: str) -> str:
        (event,) = self.service.announce(impact, self.web.name, *words)
        event_id: str = event["event_id"]
        return event_id

    def record(self, event: str) -> Mapping[str, Any]:
        shown: Mapping[str, Any] = self.service.json("show", event)
        return shown

    def hears(self, *words: str) -> str:
        """What the guest says that begins so, once it has said it; it says so only once."""
        self.wait(lambda: self.diary.said(*words))
        (said,) = self.diary.said(*words)
        return said

    def serves_again(self) -> None:
        served = len(self.diary.said("serving"))
        self.wait(lambda: len(self.diary.said("serving")) > served)

    def wait(self, condition: Callable[[], object]) -> None:
        """Wait for something that the guest does; if it does not, show all that it wrote."""
        try:
            wait_until(condition, SECONDS)
        except AssertionError:
            pytest.fail(
                self.diary.file.read_text("utf-8", "replace").replace("guest serving\n", "")
            )

    def undergo(self, impact: str, *words: str) -> str:
        """An event that the agent drains for before it approves, and undoes after it has happened."""
        event = self.announce(impact, *words)
        assert self.hears("prepare", event, "begun") == f"{impact} 1 {self.diary.boots[-1]}"
        assert self.hears("prepare", event, "drained") == "Scheduled"
        assert self.hears("undo", event, "begun") == f"{impact} 1 {self.diary.boots[-1]}"
        self.serves_again()

        record = self.record(event)
        assert record["status"] == "Completed"
        assert (record["approved"]["role"], record["approved"]["by"]) == ("guest", self.web.name)
        assert record["approved"]["address"] == self.web.address
        assert [one["result"] for one in record["outcomes"]] == ["done"], record
        said = self.diary.said()
        drained = said.index(f"prepare {event} drained Scheduled")
        undone = said.index(f"undo {event} begun {impact} 1 {self.diary.boots[-1]}")
        assert "serving" not in said[drained:undone]
        return event


@pytest.fixture
def stage(tmp_path: Path, hosts: tuple[QemuHost, QemuHost]) -> Iterator[Stage]:
    made = Stage(tmp_path, hosts[0])
    with prepared(hosts[:1], [made.network]), made.service:
        yield made


def test_the_agent_drains_approves_and_undoes_once_in_whichever_boot(stage: Stage) -> None:
    """Keeps S22, N4, N7: a cancel, a Reboot and a Freeze, by the words of the guest that undergoes them."""
    stage.boot(guest(KEPT), system_disk(KEPT))

    canceled = cancel(stage)
    rebooted = reboot(stage)
    frozen = freeze(stage)

    for phase in ("prepare", "undo"):
        told = [line.split()[0] for line in stage.diary.said(phase) if " begun " in line]
        assert told == [canceled, rebooted, frozen]


def cancel(stage: Stage) -> str:
    """Called off while the guest still drains: that is ended, and undone; nothing was approved."""
    event = stage.announce("Reboot", "--description", "slowly")
    stage.hears("prepare", event, "begun")
    stage.service.json("cancel", event)

    stage.hears("prepare", event, "stopped")
    stage.hears("undo", event, "begun")
    stage.serves_again()

    record = stage.record(event)
    assert (record["status"], record["approved"]) == ("Canceled", None)
    assert len(stage.diary.boots) == 1
    return event


def reboot(stage: Stage) -> str:
    """The agent is stopped with the machine; what it undoes in the next boot, it did in this one."""
    (first,) = stage.diary.boots

    event = stage.undergo("Reboot")

    assert stage.diary.said("button") == [""]
    assert (stage.diary.said("agent ended"), stage.diary.said("let go")) == (["0"], [""])
    assert stage.diary.boots[0] == first
    assert len(set(stage.diary.boots)) == 2
    return event


def freeze(stage: Stage) -> str:
    """No boot in between."""
    event = stage.undergo("Freeze", "--duration", "3s")

    assert len(stage.diary.boots) == 2
    return event
