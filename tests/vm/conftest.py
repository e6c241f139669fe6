"""Two real hosts for all tests here: starting one costs seconds, and each test leaves them empty."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    # Without libvirt-python there is no such module, and whoever needs it is skipped.
    from forewarn.testing.qemu_hosts import QemuHost


@pytest.fixture(scope="session")
def daemons() -> Iterator[tuple[QemuHost, QemuHost]]:
    from forewarn.testing.qemu_hosts import QemuHost  # noqa: PLC0415

    hosts = (QemuHost(f"fwa{os.getpid()}", 1), QemuHost(f"fwb{os.getpid()}", 2))
    try:
        hosts[0].tie(hosts[1])
        for host in hosts:
            host.start()
        yield hosts
    finally:
        for host in hosts:
            host.close()


@pytest.fixture
def hosts(daemons: tuple[QemuHost, QemuHost]) -> Iterator[tuple[QemuHost, QemuHost]]:
    """Hosts without machines."""
    yield daemons
    for host in daemons:
        host.clear()
