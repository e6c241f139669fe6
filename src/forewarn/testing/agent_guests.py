"""What a guest of tests boots into to run forewarn's agent: Debian's Python on one disk, the agent on another.

The first disk is read-only, made once of Debian's packages, and shared by all. The second is the machine's
own and outlives its reboots: the agent as it is in this source, its file, its hooks, and what it remembers.
Whoever lies drained on it says nothing of serving, in the next boot either. The guest obeys the power button
as systemd would: the agent is asked to stop, the disk is let go of, and then it is off.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from forewarn.agent import shipping
from forewarn.testing import debian
from forewarn.testing.guests import BUSYBOX, guest

MKE2FS: Final = "/usr/sbin/mke2fs"
SYSTEM: Final = "vda"
OWN: Final = "vdb"
# As far as the agent imports; its hooks are busybox's.
_LIBRARIES: Final = ("libc6", "libexpat1", "zlib1g")
_MERGED: Final = ("bin", "sbin", "lib", "lib64")
_EMPTY: Final = ("proc", "sys", "dev", "run", "tmp", "own")
_UNUSED: Final = ("usr/share", "usr/lib/*/gconv")

_INIT: Final = """#!/bin/sh
export PATH=/bin PYTHONPATH=/own
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mount -t tmpfs run /run; mount -t tmpfs tmp /tmp
tell() { echo "guest $*" > /dev/ttyS0; }
told() { sed -n "s/.*forewarn.$1=\\\\([^ ]*\\\\).*/\\\\1/p" /proc/cmdline; }
mount /dev/OWN /own
tell boot $(cat /proc/sys/kernel/random/boot_id)
ip link set lo up
ip addr add $(told address)/32 dev eth0
ip link set eth0 up; ip route add 169.254.169.254 dev eth0

(while :; do [ -e /own/drained ] || tell serving; sleep 0.5; done) &
python3 -m forewarn.agent run --config /own/agent.toml > /dev/ttyS0 2>&1 & agent=$!

for event in /sys/class/input/event*; do
  grep -q 'Power Button' $event/device/name && button=${event##*/}
done
dd if=/dev/input/$button bs=24 count=1 of=/dev/null 2>/dev/null
tell button
kill $agent; wait $agent; tell agent ended $?
# Everybody else, as every init does; that takes them a moment.
kill -9 -1
until umount /own 2>/dev/null; do sleep 0.1; done
tell let go
poweroff -f
""".replace("OWN", OWN)


def system_disk(directory: Path) -> Path:
    """The disk with Debian's Python that is kept in a directory; made there if it is not. As root."""
    mark = hashlib.sha256(f"{_INIT}{_LIBRARIES}{_UNUSED}".encode()).hexdigest()[:12]
    made = directory / f"python-{mark}.img"
    if not made.exists():
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as tree:
            _lay_system(Path(tree))
            _format(Path(tree), made, 96)
    return made


def own_disk(file: Path, config: str, hooks: Mapping[str, str]) -> Path:
    """A disk with the agent of this source; hooks are scripts by their place, as `prepare/10-drain`."""
    with tempfile.TemporaryDirectory() as tree:
        for module in shipping.shipped():
            copy = Path(tree, "forewarn", module)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(shipping.SOURCE / module, copy)
        Path(tree, "agent.toml").write_text(config, encoding="utf-8")
        for place, script in hooks.items():
            hook = Path(tree, "hooks.d", place)
            hook.parent.mkdir(parents=True, exist_ok=True)
            hook.write_text(script, encoding="utf-8")
            hook.chmod(0o755)
        _format(Path(tree), file, 16)
    return file


def _lay_system(tree: Path) -> None:
    for folder in _MERGED:
        (tree / "usr" / folder).mkdir(parents=True)
        (tree / folder).symlink_to(f"usr/{folder}")
    for folder in _EMPTY:
        (tree / folder).mkdir()
    python = debian.dependency("python3-minimal", "python3.").removesuffix("-minimal")
    for package in (f"{python}-minimal", f"lib{python}-minimal", f"lib{python}-stdlib"):
        debian.unpack(package, tree)
    for package in (*_LIBRARIES, BUSYBOX):
        debian.unpack(package, tree)
    for pattern in _UNUSED:
        for path in tree.glob(pattern):
            shutil.rmtree(path)
    (tree / "bin" / "python3").symlink_to(python)
    init = tree / "sbin" / "init"
    init.write_text(_INIT, encoding="utf-8")
    init.chmod(0o755)
    debian.run("chroot", str(tree), "/bin/busybox", "--install", "-s", "/bin")
    # Debian does it when it installs; an emulated machine would be busy with it for long.
    debian.run("chroot", str(tree), "/bin/python3", "-m", "compileall", "-q", f"/usr/lib/{python}")


def _format(tree: Path, file: Path, mebibytes: int) -> None:
    """Make a file system of a tree, and a disk of that."""
    being_made = file.with_suffix(".new")
    being_made.unlink(missing_ok=True)
    debian.run(MKE2FS, "-q", "-t", "ext4", "-d", str(tree), str(being_made), f"{mebibytes}M")
    being_made.rename(file)


if __name__ == "__main__":
    # All that machines of tests boot.
    guest(Path(sys.argv[1]))
    system_disk(Path(sys.argv[1]))
