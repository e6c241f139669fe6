"""What impacts are to real guests in real machines, by their own words: warned, asked, and then hit.

Two hosts, each in a network namespace of its own with links that were prepared; three guests that read
169.254.169.254 from inside; and one service.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

libvirt = pytest.importorskip(
    "libvirt", reason="libvirt-python is not installed: pip install libvirt-python"
)

from forewarn.testing.actors import Actor, disk_xml, prepared
from forewarn.testing.guests import Diary, Guest, guest
from forewarn.testing.hypervisors import wait_until
from forewarn.testing.processes import ServiceProcess
from forewarn.testing.qemu_hosts import QemuHost

pytestmark = pytest.mark.vm

# An emulated guest boots in some seconds; on a busy machine, in many.
SECONDS = 180.0
FROZEN = timedelta(seconds=6)
# What two dates in whole seconds may differ by.
WHOLE_SECONDS = timedelta(seconds=2)
# Only a scale set's VMs are told of a Terminate; where web-0 is and what it is made of is libvirt's word.
FLEET = """
[[scope]]
name = "web"
kind = "scale-set"
terminate_notice = "5m"
  [[scope.machine]]
  name = "web-0"
"""


def empty_disk(file: Path, target: str, mebibytes: int) -> str:
    with file.open("wb") as out:
        out.truncate(mebibytes << 20)
    return disk_xml(file, target)


class Stage:
    """The hosts, the guests and the service."""

    def __init__(self, tmp_path: Path, hosts: tuple[QemuHost, QemuHost]) -> None:
        self.hosts = hosts
        self.disks = tmp_path / "disks"
        self.disks.mkdir()
        self.web, self.live, self.rogue = (
            Actor(number, name, tmp_path)
            for number, name in enumerate(("web-0", "live-0", "rogue"))
        )
        # Named as the file that the hosts' commands are given.
        self.networks = [tmp_path / f"{host.name}.toml" for host in hosts]
        for host, file in zip(hosts, self.networks, strict=True):
            links = "".join(actor.link for actor in (self.web, self.live, self.rogue))
            file.write_text(f"namespace = '{host.name}'\n{links}")
        named = (f"--libvirt={host.name}={host.uri}" for host in hosts)
        linked = (word for file in self.networks for word in ("--network", str(file)))
        self.service = ServiceProcess(tmp_path / "data", FLEET, *named, *linked)

    def boot(self, kit: Guest) -> None:
        """Three guests on the first host; one of them will try to pass for its neighbor."""
        disks = empty_disk(self.disks / "data.img", "vda", 4)
        disks += empty_disk(self.disks / "lost.img", "vdb", 8)
        lost = "<forewarn:ephemeral disk='vdb'/>"
        self.hosts[0].run(self.web.xml(kit, content=lost, devices=disks))
        self.hosts[0].run(self.live.xml(kit, "freeze='migrate'"))
        self.hosts[0].run(self.rogue.xml(kit, "spot='yes'", neighbor=self.web.address))

    def undergo(
        self, actor: Actor, impact: str, *words: str, meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        """Announce an impact; the guest reads of it and approves, and it happens."""
        (event,) = self.service.announce(impact, actor.name, *words)
        # The guest may be gone before it can write that it did.
        wait_until(lambda: self._record(event)["approved"] is not None, SECONDS)
        meanwhile()
        wait_until(lambda: self._record(event)["status"] == "Completed", SECONDS)
        record = self._record(event)
        assert (record["approved"]["role"], record["approved"]["by"]) == ("guest", actor.name)
        assert record["approved"]["address"] == actor.address
        assert [one["result"] for one in record["outcomes"]] == ["done"], record
        read = [one for document in actor.diary.documents for one in document["Events"]]
        seen = {one["EventStatus"] for one in read if one["EventId"] == event["event_id"]}
        assert "Scheduled" in seen

    def where(self, actor: Actor) -> list[bool]:
        """On which of the hosts it runs."""
        return [actor.name in host.names() for host in self.hosts]

    def _record(self, event: Mapping[str, str]) -> Mapping[str, Any]:
        shown: Mapping[str, Any] = self.service.json("show", event["event_id"])
        return shown


@pytest.fixture(scope="module")
def kit() -> Guest:
    return guest(Path(__file__).resolve().parents[2] / ".venv" / "guest")


@pytest.fixture
def stage(tmp_path: Path, hosts: tuple[QemuHost, QemuHost]) -> Iterator[Stage]:
    made = Stage(tmp_path, hosts)
    with prepared(hosts, made.networks), made.service:
        yield made


def test_guests_are_warned_and_feel_every_impact_as_it_is_promised(
    kit: Guest, stage: Stage
) -> None:
    """Keeps S1, S10, S20, N3: Freeze, Reboot, Redeploy, Preempt and Terminate, told by guests themselves."""
    stage.boot(kit)
    for actor in (stage.web, stage.live, stage.rogue):
        wait_until(lambda actor=actor: actor.diary.polls, SECONDS)  # type: ignore[misc]
        assert actor.diary.said("name") == [actor.name]
    assert stage.rogue.diary.said("passed for") == ["nobody"]

    freeze(stage)
    reboot(stage)
    migrate(stage)
    redeploy(stage)
    preempt(stage)
    terminate(stage)


def freeze(stage: Stage) -> None:
    """The same boot, whose time stood still; and no poll meanwhile."""
    diary = stage.web.diary
    domain = stage.hosts[0].connection.lookupByName("web-0")

    def hear_nothing() -> None:
        wait_until(lambda: domain.state()[0] == libvirt.VIR_DOMAIN_PAUSED, SECONDS)
        said = len(diary.said())
        time.sleep(2)
        assert (len(diary.said()), domain.state()[0]) == (said, libvirt.VIR_DOMAIN_PAUSED)

    seconds = f"{FROZEN.total_seconds():.0f}s"
    before = diary.polls[-1]
    stage.undergo(stage.web, "Freeze", "--duration", seconds, meanwhile=hear_nothing)
    polls = len(diary.polls)
    wait_until(lambda: len(diary.polls) > polls, SECONDS)
    after = diary.polls[-1]

    assert len(diary.said("approved")) == 1
    assert (after.boot, diary.boots) == (before.boot, [before.boot])
    assert after.began - before.began > FROZEN - WHOLE_SECONDS


def reboot(stage: Stage) -> None:
    """Asked for by the power button, another boot, all disks as they were."""
    diary = stage.web.diary
    assert (diary.said("disk vda"), diary.said("disk vdb")) == (["empty"], ["empty"])

    stage.undergo(stage.web, "Reboot")
    wait_until(lambda: len(diary.boots) == 2, SECONDS)

    assert len(set(diary.boots)) == 2
    assert diary.said("button") == [""]
    assert (diary.said("disk vda")[1:], diary.said("disk vdb")[1:]) == (["written"], ["written"])
    assert stage.where(stage.web) == [True, False]


def migrate(stage: Stage) -> None:
    """The same boot goes on on the other host, and is answered there."""
    diary = stage.live.diary
    (boot,) = diary.boots

    stage.undergo(stage.live, "Freeze")
    assert stage.where(stage.live) == [False, True]
    polls = len(diary.polls)
    wait_until(lambda: len(diary.polls) > polls, SECONDS)

    assert (diary.boots, diary.polls[-1].boot) == ([boot], boot)


def redeploy(stage: Stage) -> None:
    """Another boot, on the other host, without what was on the ephemeral disk."""
    diary = stage.web.diary

    stage.undergo(stage.web, "Redeploy")
    wait_until(lambda: len(diary.boots) == 3, SECONDS)
    polls = len(diary.polls)
    wait_until(lambda: len(diary.polls) > polls, SECONDS)

    assert len(set(diary.boots)) == 3
    assert stage.where(stage.web) == [False, True]
    assert (diary.said("disk vda")[2:], diary.said("disk vdb")[2:]) == (["written"], ["empty"])


def preempt(stage: Stage) -> None:
    """No word any more, and the machine stays known."""
    stage.undergo(stage.rogue, "Preempt")

    hear_no_more(stage.rogue.diary)
    assert stage.where(stage.rogue) == [False, False]
    assert stage.hosts[0].connection.lookupByName("rogue").isActive() == 0


def terminate(stage: Stage) -> None:
    """No word any more, and nobody knows the machine; a disk that is not ephemeral is left."""
    stage.undergo(stage.web, "Terminate")

    hear_no_more(stage.web.diary)
    known = [one.name() for host in stage.hosts for one in host.connection.listAllDomains()]
    assert known == ["rogue", "live-0"]
    assert (stage.disks / "data.img").read_bytes()[:7] == b"written"
    assert not (stage.disks / "lost.img").exists()


def hear_no_more(diary: Diary) -> None:
    said = len(diary.said())
    time.sleep(2)
    assert len(diary.said()) == said
