"""The libvirt fabric over libvirt's own test driver: the contract, and each impact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("libvirt", reason="libvirt-python is not installed: pip install libvirt-python")

from forewarn.core.events import EventType
from forewarn.core.names import EventId, MachineName, ScopeId
from forewarn.core.orders import Order
from forewarn.fabrics.libvirt.fabric import LibvirtFabric
from forewarn.testing.fabric_contract import FabricContract, Impacts, UntilOver
from forewarn.testing.hypervisors import (
    Fabrics,
    Feelings,
    PretendedHost,
    domain_xml,
    wait_until_over,
)

FREEZE = Order(
    EventId("E1"),
    ScopeId("default/web-0"),
    MachineName("web-0"),
    EventType.FREEZE,
    timedelta(seconds=1.2),
)


@pytest.fixture
def feelings() -> Feelings:
    return Feelings()


@pytest.fixture
def hosts(tmp_path: Path, feelings: Feelings) -> tuple[PretendedHost, PretendedHost]:
    found = (
        PretendedHost(tmp_path, "host-a", domain_xml("web-0")),
        PretendedHost(tmp_path, "host-b", domain_xml("other")),
    )
    for host in found:
        feelings.attach(host.connection)
    return found


@pytest.fixture
def fabrics(tmp_path: Path, hosts: tuple[PretendedHost, PretendedHost]) -> Iterator[Fabrics]:
    made = Fabrics(tmp_path / "dockets", [host.link for host in hosts])
    yield made
    made.close()


@pytest.fixture
def fabric(fabrics: Fabrics) -> LibvirtFabric:
    return fabrics.start()


class TestLibvirtFabric(FabricContract):
    @pytest.fixture
    def order(self) -> Order:
        return FREEZE

    @pytest.fixture
    def refused(self) -> Order:
        return replace(FREEZE, machine=MachineName("nobody"))

    @pytest.fixture
    def until_over(self) -> UntilOver:
        return wait_until_over

    @pytest.fixture
    def impacts(self, feelings: Feelings) -> Impacts:
        return feelings.impacts
