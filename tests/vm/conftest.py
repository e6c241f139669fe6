"""Two real hosts for all tests here: starting one costs seconds, and each test leaves them empty."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    # Without libvirt-python there is no such module, and whoever needs it is skipped.
    from forewarn.testing.qemu_hosts import QemuHost


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where there can be no real machines, one line says so, not one for each test."""
    here = [item for item in items if item.get_closest_marker("vm")]
    # Whoever lacks libvirt-python has skipped the modules, and collected nothing.
    if not here:
        return
    from forewarn.testing.qemu_hosts import why_not  # noqa: PLC0415

    if reason := why_not():
        first, *others = here
        first.add_marker(pytest.mark.skip(reason=f"{len(here)} tests not run: {reason}"))
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=others)


@pytest.fixture(scope="session")
def daemons() -> Iterator[tuple[QemuHost, QemuHost]]:
    from forewarn.fabrics.libvirt.link import run_callbacks  # noqa: PLC0415
    from forewarn.testing.qemu_hosts import QemuHost  # noqa: PLC0415

    # Connections of whoever does not hear what hosts tell die after a while.
    stopping = threading.Event()
    hearing = threading.Thread(target=run_callbacks, args=(stopping,))
    hearing.start()
    hosts = (QemuHost(f"fwa{os.getpid()}", 1), QemuHost(f"fwb{os.getpid()}", 2))
    try:
        hosts[0].tie(hosts[1])
        for host in hosts:
            host.start()
        yield hosts
    finally:
        for host in hosts:
            host.close()
        stopping.set()
        hearing.join()


@pytest.fixture
def hosts(daemons: tuple[QemuHost, QemuHost]) -> Iterator[tuple[QemuHost, QemuHost]]:
    """Hosts without machines."""
    yield daemons
    for host in daemons:
        host.clear()
