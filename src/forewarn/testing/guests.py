"""A guest for real machines in tests: Debian's cloud kernel, busybox, and one script that tells of itself.

Everything it has to say goes to its serial port, a line each: which boot it is, what it finds on its disks,
a beat twice a second, and what it reads at 169.254.169.254 if it was given an address. It approves every event it
reads of, and obeys the power button. It may be told to try and pass for a neighbor once. It is made of
Debian's packages, which are downloaded and taken apart, never installed. Or it is told of a disk that is
its root, and then only finds that (`agent_guests`).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, Final

from forewarn.testing import debian

KERNEL_OF: Final = "linux-image-cloud-amd64"
BUSYBOX: Final = "busybox-static"
# In the order in which they need each other.
MODULES: Final = (
    "virtio",
    "virtio_ring",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "virtio_blk",
    "failover",
    "net_failover",
    "virtio_net",
    "button",
    "evdev",
)

_INIT: Final = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
for module in $(cat /modules); do insmod /$module.ko; done
told() { sed -n "s/.*forewarn.$1=\\([^ ]*\\).*/\\1/p" /proc/cmdline; }
if [ -n "$(told root)" ]; then
  mount -o ro /dev/$(told root) /root && exec switch_root /root /sbin/init
fi
tell() { echo "guest $*" > /dev/ttyS0; }
boot=$(cat /proc/sys/kernel/random/boot_id)
for event in /sys/class/input/event*; do
  if grep -q 'Power Button' $event/device/name; then
    (dd if=/dev/input/${event##*/} bs=24 count=1 of=/dev/null; tell button; poweroff -f) &
  fi
done 2>/dev/null
for disk in vda vdb; do
  if [ -b /dev/$disk ]; then
    found=$(dd if=/dev/$disk bs=7 count=1 2>/dev/null | tr -d '\\000')
    tell disk $disk ${found:-empty}
    printf written | dd of=/dev/$disk conv=notrunc,fsync 2>/dev/null
  fi
done
tell boot $boot

endpoint=http://169.254.169.254/metadata
events="$endpoint/scheduledevents?api-version=2020-07-01"
name="$endpoint/instance/compute/name?api-version=2021-02-01&format=text"
speak_from() {
  ip addr flush dev eth0; ip addr add $1/32 dev eth0
  ip link set eth0 up; ip route add 169.254.169.254 dev eth0
}
# Its own option for that is broken in Debian's busybox.
ask() { timeout 5 wget -q -S -O - --header 'Metadata: true' "$@" 2>/head; }
poll() {
  document=$(ask "$events") || { tell unanswered; return; }
  tell poll $boot $(cut -d' ' -f1 /proc/uptime) $(sed -n 's/^ *Date: *//p' /head | tr -d '\\r')
  tell document "$document"
  for event in $(echo "$document" | grep -o '"EventId":"[^}]*"EventStatus":"Scheduled"' | cut -d'"' -f4); do
    ask --post-data "{\\"StartRequests\\":[{\\"EventId\\":\\"$event\\"}]}" "$events" && tell approved $event
  done
}
# Once there is somebody to ask.
introduce() { [ -n "$known" ] || { known=$(ask "$name") && tell name $known; }; }
known= address=$(told address) neighbor=$(told neighbor)
if [ -n "$address" ]; then
  speak_from $address
  introduce
fi
if [ -n "$neighbor" ]; then
  speak_from $neighbor
  tell passed for $(ask "$name" || grep -o 'HTTP/.*' /head || echo nobody)
  speak_from $address
fi
while :; do
  tell beat $boot
  [ -n "$address" ] && { introduce; poll; }
  sleep 0.5
done
"""


@dataclass(frozen=True, slots=True)
class Guest:
    """What a machine boots: a kernel and its first file system."""

    kernel: Path
    initrd: Path

    def boot_xml(self, **told: str) -> str:
        """For a domain's <os>; the guest is told its `address`, a `neighbor` to pass for, and a `root`."""
        words = ["console=ttyS0", "quiet", *(f"forewarn.{key}={told[key]}" for key in told)]
        return (
            f"<kernel>{self.kernel}</kernel><initrd>{self.initrd}</initrd>"
            f"<cmdline>{' '.join(words)}</cmdline>"
        )


@dataclass(frozen=True, slots=True)
class Poll:
    """An answer to a guest: in which boot, at which time of its own, and at which of the service's."""

    boot: str
    uptime: timedelta
    date: datetime

    @property
    def began(self) -> datetime:
        """When it booted, if its time has never stood still."""
        return self.date - self.uptime


class Diary:
    """What a guest wrote to its serial port."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @property
    def device(self) -> str:
        """For a domain's devices; what other runs wrote stays."""
        return (
            f"<serial type='file'><source path='{self.file}' append='on'/><target port='0'/>"
            "</serial>"
        )

    def said(self, *words: str) -> list[str]:
        """What was said that begins so, oldest first."""
        begin = " ".join(("guest", *words))
        text = self.file.read_text("utf-8", "replace") if self.file.exists() else ""
        # The last line may be on its way still.
        lines = text.replace("\r", "").split("\n")[:-1]
        return [line[len(begin) :].strip() for line in lines if line.startswith(begin)]

    @property
    def boots(self) -> list[str]:
        return self.said("boot")

    @property
    def beats(self) -> list[str]:
        return self.said("beat")

    @property
    def polls(self) -> list[Poll]:
        """The times when it was answered."""
        found = [line.split(" ", 2) for line in self.said("poll")]
        return [
            Poll(boot, timedelta(seconds=float(uptime)), parsedate_to_datetime(date))
            for boot, uptime, date in found
        ]

    @property
    def documents(self) -> list[Any]:
        """What it read, oldest first."""
        return [json.loads(line) for line in self.said("document")]


def guest(directory: Path) -> Guest:
    """The guest that is kept in a directory; made there if it is not. Needs apt and a network."""
    # Another script is another guest.
    mark = hashlib.sha256(f"{_INIT}{MODULES}".encode()).hexdigest()[:12]
    made = Guest(directory / "vmlinuz", directory / f"initrd-{mark}.gz")
    if not (made.kernel.exists() and made.initrd.exists()):
        directory.mkdir(parents=True, exist_ok=True)
        _make(made)
    return made


def _make(made: Guest) -> None:
    kernel = _package(debian.dependency(KERNEL_OF, "linux-image-"))
    busybox = _package(BUSYBOX)
    files = {"init": _INIT.encode(), "bin/busybox": _one(busybox, "busybox")}
    for module in MODULES:
        content = _one(kernel, f"{module}.ko")
        # What is built in has no file.
        if content:
            files[f"{module}.ko"] = content
    present = [module for module in MODULES if f"{module}.ko" in files]
    files["modules"] = "\n".join(present).encode()
    made.initrd.write_bytes(gzip.compress(b"".join(_archive(files))))
    made.kernel.write_bytes(next(v for k, v in kernel.items() if k.name.startswith("vmlinuz-")))


def _package(name: str) -> dict[PurePosixPath, bytes]:
    """The files of a package that may matter here."""
    found: dict[PurePosixPath, bytes] = {}
    with tarfile.open(fileobj=BytesIO(debian.files(name))) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            wanted = path.stem in MODULES or path.name == "busybox" or "vmlinuz-" in path.name
            content = archive.extractfile(member) if wanted and member.isfile() else None
            if content is not None:
                found[path] = content.read()
    return found


def _one(package: dict[PurePosixPath, bytes], name: str) -> bytes:
    return next((content for path, content in package.items() if path.name == name), b"")


def _archive(files: dict[str, bytes]) -> Iterator[bytes]:
    """The files as the kernel wants its first file system: a cpio archive of the newer form."""
    for number, folder in enumerate(("bin", "proc", "sys", "dev", "root"), start=1):
        yield from _entry(number, folder, 0o040755, b"")
    for number, (name, content) in enumerate(files.items(), start=100):
        yield from _entry(number, name, 0o100755, content)
    yield from _entry(0, "TRAILER!!!", 0, b"")


def _entry(number: int, name: str, mode: int, content: bytes) -> Iterator[bytes]:
    ended = name.encode() + b"\0"
    numbers = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(ended), 0)
    header = b"070701" + b"".join(b"%08x" % each for each in numbers)
    yield _padded(header + ended)
    yield _padded(content)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)
