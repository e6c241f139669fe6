"""Machines with guests for stories on real hosts: each has a tap, an address and a diary of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from forewarn.testing.guests import Diary, Guest
from forewarn.testing.hypervisors import ours
from forewarn.testing.processes import run
from forewarn.testing.qemu_hosts import QemuHost, bare_xml


@dataclass(frozen=True)
class Actor:
    """A machine of the story, by its number."""

    number: int
    name: str
    directory: Path

    @property
    def address(self) -> str:
        return f"10.77.0.{10 + self.number}"

    @property
    def mac(self) -> str:
        return f"52:54:00:77:00:{10 + self.number:02x}"

    @property
    def diary(self) -> Diary:
        return Diary(self.directory / f"{self.name}.log")

    @property
    def link(self) -> str:
        return (
            f"[[tap]]\ndevice = 'tap-{self.name}'\nmac = '{self.mac}'\naddress = '{self.address}'\n"
        )

    def xml(
        self, kit: Guest, attributes: str = "", content: str = "", devices: str = "", **told: str
    ) -> str:
        """The domain; `attributes` and `content` are our element's, and `told` is for the guest."""
        address = f"<forewarn:address mac='{self.mac}' ip='{self.address}'/>"
        card = (
            f"<interface type='ethernet'><mac address='{self.mac}'/>"
            f"<target dev='tap-{self.name}' managed='no'/><model type='virtio'/><rom enabled='no'/>"
            "</interface>"
        )
        return bare_xml(
            self.name,
            metadata=ours(attributes, address + content),
            inside=kit.boot_xml(address=self.address, **told),
            devices=devices + card + self.diary.device,
        )


def disk_xml(file: Path, target: str, *, inside: str = "") -> str:
    """For a domain's devices; `inside` is for its <disk>."""
    return (
        f"<disk type='file' device='disk'><driver name='qemu' type='raw' cache='none'/>"
        f"<source file='{file}'/><target dev='{target}' bus='virtio'/>{inside}</disk>"
    )


@contextmanager
def prepared(hosts: Sequence[QemuHost], networks: Sequence[Path]) -> Iterator[None]:
    """Have the hosts' links as their network files say; afterwards there are none, and no machines."""
    for file in networks:
        _host("prepare", str(file))
    try:
        yield
    finally:
        for host in hosts:
            host.clear()
            _host("unprepare", "--namespace", host.name)


def _host(*words: str) -> None:
    done = run("host", *words)
    assert done.returncode == 0, done.stderr
