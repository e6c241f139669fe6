"""Where tests of this folder may make network namespaces."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

PROGRAMS = ("ip", "nft", "sysctl", "nsenter")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs root and its programs, with one line that says why."""
    reason = missing()
    for item in items:
        if reason and item.get_closest_marker("namespaces"):
            item.add_marker(pytest.mark.skip(reason=reason))


def missing() -> str:
    if os.geteuid() != 0:
        return "network namespaces need root: run the tests as root"
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
    gone = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if gone:
        return f"no {', '.join(gone)} here: apt-get install iproute2 nftables procps util-linux"
    return "" if Path("/dev/net/tun").exists() else "no /dev/net/tun here: modprobe tun"
