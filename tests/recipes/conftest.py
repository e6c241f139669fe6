"""What every recipe's test has: a service that announces, VMs that end with the test, and daemons or a reason."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.recipes.machines import PATH, Vm, subnet

from forewarn.pytest_plugin import scheduled_events as scheduled_events

# What tests start, and the Debian package that has it.
PACKAGES: Final = {
    "haproxy": "haproxy",
    "nginx": "nginx-light",
    "patroni": "patroni",
    "etcd": "etcd-server",
    "/usr/lib/postgresql/15/bin/postgres": "postgresql-15",
    "curl": "curl",
    "start-stop-daemon": "dpkg",
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what has no daemon here, and say whose package it is in."""
    for mark in item.iter_markers("daemons"):
        for name in mark.args:
            if shutil.which(name, path=PATH) is None:
                pytest.skip(f"no {name} here: sudo apt-get install {PACKAGES[name]}")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where whoever runs PostgreSQL can come to, unlike what pytest makes for root."""
    with tempfile.TemporaryDirectory(prefix="forewarn-recipe-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def power() -> Iterator[Callable[[Vm], None]]:
    """Register VMs, which have power until the test is over."""
    vms: list[Vm] = []
    yield vms.append
    for vm in vms:
        vm.power_off()


@pytest.fixture
def net() -> str:
    return subnet()
