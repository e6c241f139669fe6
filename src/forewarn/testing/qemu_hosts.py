"""Real hosts for tests: a libvirtd each, with a name, sockets and a configuration of its own.

A host is a process in network, mount and UTS namespaces of its own, so that several fit on one machine and none touches
the machine's own libvirt. Its domains are real QEMU processes, emulated (TCG) unless told otherwise:
/dev/kvm may well be there and be of no use.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

import libvirt

from forewarn.fabrics.libvirt.link import Link
from forewarn.testing.hypervisors import Feelings, uuid_of, wait_until

LIBVIRTD: Final = "/usr/sbin/libvirtd"
EMULATOR: Final = "/usr/bin/qemu-system-x86_64"
IP: Final = "/usr/sbin/ip"
TUN: Final = Path("/dev/net/tun")
# Debian's, of which no other is needed.
PACKAGES: Final = "qemu-system-x86 libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients iproute2 nftables procps e2fsprogs"
PROGRAMS: Final = (
    LIBVIRTD,
    EMULATOR,
    IP,
    "/usr/bin/virsh",
    "/usr/sbin/nft",
    "/usr/sbin/sysctl",
    "/usr/sbin/mke2fs",
)

# No security driver, no cgroups, no namespaces: a machine without systemd has none of them to give.
_QEMU_CONF: Final = """
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
security_default_confined = 0
cgroup_controllers = [ ]
namespaces = [ ]
stdio_handler = "file"
migration_host = "{address}"
"""
_DAEMON_CONF: Final = """
auth_unix_ro = "none"
auth_unix_rw = "none"
unix_sock_group = "root"
unix_sock_rw_perms = "0700"
host_uuid = "{uuid}"
"""
_UNSHARE: Final = ("/usr/bin/unshare", "-m", "-u", "--propagation", "private")
_PLACES: Final = {
    "run": "/run/libvirt",
    "lib": "/var/lib/libvirt",
    "cache": "/var/cache/libvirt",
    "etc": "/etc/libvirt",
    "log": "/var/log/libvirt",
}


def why_not() -> str:
    """Why there can be no real hosts here; "" if there can."""
    if os.geteuid() != 0:
        return "real VMs need root"
    if not TUN.exists():
        return f"real VMs need {TUN}"
    missing = [program for program in PROGRAMS if not Path(program).exists()]
    if missing:
        return f"real VMs need {missing[0]}: apt-get install --no-install-recommends {PACKAGES}"
    return ""


class QemuHost:
    """A libvirtd of our own. Its domains outlive its restarts, as they do in earnest."""

    def __init__(self, name: str, number: int) -> None:
        """A host of this name, which is that of its network namespace too; numbers begin at 1."""
        self.name = name
        self.address = f"10.213.0.{number}"
        # A socket's path is short by law; a test's own directory often is not.
        self.root = Path(tempfile.mkdtemp(prefix="fwhost-"))
        for place in _PLACES:
            (self.root / place).mkdir()
        conf = _QEMU_CONF.format(address=self.address)
        (self.root / "etc/qemu.conf").write_text(conf, encoding="utf-8")
        uuid = uuid5(NAMESPACE_URL, f"forewarn:host:{name}")
        (self.root / "etc/libvirtd.conf").write_text(_DAEMON_CONF.format(uuid=uuid), "utf-8")
        self.uri = f"qemu+unix:///system?socket={self.root}/run/libvirt-sock"
        self._daemon: subprocess.Popen[bytes] | None = None
        self.connection: Any = None

        self.link = Link(self.uri, name)
        _ip("netns", "add", name)
        _ip("-n", name, "link", "set", "lo", "up")

    def tie(self, other: QemuHost) -> None:
        """Lay a cable between two hosts."""
        ends = ("to-" + other.name, "to-" + self.name)
        _ip("-n", self.name, "link", "add", ends[0], "type", "veth", "peer", ends[1])
        _ip("-n", self.name, "link", "set", ends[1], "netns", other.name)
        for host, end in zip((self, other), ends, strict=True):
            _ip("-n", host.name, "addr", "add", f"{host.address}/24", "dev", end)
            _ip("-n", host.name, "link", "set", end, "up")

    def start(self) -> None:
        """Start the daemon, and wait until it can be asked."""
        _make_user()
        for place in _PLACES.values():
            Path(place).mkdir(parents=True, exist_ok=True)
        binds = "; ".join(f"mount --bind {self.root}/{p} {at}" for p, at in _PLACES.items())
        daemon = f"{LIBVIRTD} --config {self.root}/etc/libvirtd.conf --pid-file {self.root}/pid"
        script = f"hostname {self.name}; {binds}; exec {daemon}"
        with (self.root / "log/daemon.log").open("ab") as log:
            self._daemon = subprocess.Popen(  # noqa: S603 - our own command
                [IP, "netns", "exec", self.name, *_UNSHARE, "sh", "-c", script],
                stdout=log,
                stderr=log,
            )
        wait_until(self._is_up)

    @property
    def inside(self) -> Sequence[str]:
        """The command that runs another one on this host, where libvirt is this libvirt."""
        assert self._daemon is not None, "start it first"
        return ("nsenter", f"--target={self._daemon.pid}", "--mount", "--net", "--uts", "--")

    def kill(self) -> None:
        """`kill -9` the daemon. Domains go on."""
        if self._daemon is not None:
            self._daemon.send_signal(signal.SIGKILL)
            self._daemon.wait()
            self._daemon = None
            (self.root / "run/libvirt-sock").unlink(missing_ok=True)

    def hang(self) -> None:
        """Let the daemon answer nobody."""
        assert self._daemon is not None, "start it first"
        self._daemon.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._daemon is not None, "start it first"
        self._daemon.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End the daemon and all that runs on it."""
        if self.connection is not None:
            self.clear()
        self.connection = None
        self.kill()
        _ip("netns", "del", self.name)
        shutil.rmtree(self.root, ignore_errors=True)

    def clear(self) -> None:
        """Take every domain away."""
        for domain in self.connection.listAllDomains():
            with suppress(libvirt.libvirtError):
                if domain.isActive():
                    domain.destroy()
            with suppress(libvirt.libvirtError):
                domain.undefine()

    def run(self, xml: str) -> Any:  # noqa: ANN401 - libvirt has no types
        """Define a domain, and start it."""
        domain = self.connection.defineXML(xml)
        domain.create()
        return domain

    def names(self) -> list[str]:
        """The domains that run."""
        return sorted(domain.name() for domain in self.connection.listAllDomains(1))

    def feel(self, feelings: Feelings) -> None:
        """Have what happens here counted, over a connection of its own."""
        feelings.attach(libvirt.open(self.uri))

    def _is_up(self) -> bool:
        assert self._daemon is not None, "it was started"
        assert self._daemon.poll() is None, (self.root / "log/daemon.log").read_text()
        try:
            self.connection = libvirt.open(self.uri)
        except libvirt.libvirtError:
            return False
        return True


def bare_xml(name: str, *, metadata: str = "", inside: str = "", devices: str = "") -> str:
    """A machine that has nothing to boot from, and is up at once. `inside` is for its <os>."""
    return f"""<domain type='qemu'><name>{name}</name><uuid>{uuid_of(name)}</uuid>{metadata}
<memory unit='MiB'>{128 if inside else 32}</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='pc'>hvm</type>{inside}</os><features><acpi/></features>
<cpu mode='custom'><model>qemu64</model></cpu><clock offset='utc'/>
<devices><emulator>{EMULATOR}</emulator><controller type='usb' model='none'/>
<memballoon model='none'/>{devices}</devices></domain>"""


def _ip(*arguments: str) -> None:
    subprocess.run([IP, *arguments], check=True)  # noqa: S603 - our own command


def _make_user() -> None:
    """libvirt looks its usual user up, and does not start without, whomever it is told to use."""
    try:
        pwd.getpwnam("libvirt-qemu")
    except KeyError:
        subprocess.run(
            ["/usr/sbin/useradd", "--system", "--user-group", "--no-create-home", "libvirt-qemu"],
            check=True,
        )
