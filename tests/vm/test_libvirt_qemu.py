"""The libvirt fabric over real QEMU domains: the contract, and hosts that really fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

libvirt = pytest.importorskip(
    "libvirt", reason="libvirt-python is not installed: pip install libvirt-python"
)

from forewarn.core.events import EventType
from forewarn.core.names import EventId, MachineName, ScopeId
from forewarn.core.orders import Order, Progress, Report
from forewarn.errors import Unavailable
from forewarn.fabrics.libvirt.fabric import LibvirtFabric
from forewarn.testing.fabric_contract import FabricContract, Impacts, UntilOver
from forewarn.testing.hypervisors import Fabrics, Feelings, ours, wait_until, wait_until_over
from forewarn.testing.qemu_hosts import QemuHost, bare_xml

pytestmark = pytest.mark.vm

WEB_0 = MachineName("web-0")
FREEZE = Order(
    EventId("E1"), ScopeId("default/web-0"), WEB_0, EventType.FREEZE, timedelta(seconds=1.2)
)


@pytest.fixture
def web_0(hosts: tuple[QemuHost, QemuHost]) -> QemuHost:
    hosts[0].run(bare_xml("web-0"))
    return hosts[0]


@pytest.fixture
def feelings(hosts: tuple[QemuHost, QemuHost]) -> Feelings:
    made = Feelings()
    for host in hosts:
        host.feel(made)
    return made


@pytest.fixture
def fabrics(tmp_path: Path, hosts: tuple[QemuHost, QemuHost]) -> Iterator[Fabrics]:
    made = Fabrics(tmp_path / "dockets", [host.link for host in hosts])
    yield made
    made.close()


@pytest.fixture
def fabric(fabrics: Fabrics, web_0: QemuHost) -> LibvirtFabric:
    assert web_0.names() == ["web-0"]
    return fabrics.start()


class TestLibvirtFabricOnQemu(FabricContract):
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


def test_a_machine_moves_live_and_is_never_off(
    fabrics: Fabrics, hosts: tuple[QemuHost, QemuHost]
) -> None:
    """Keeps S10, S20: a freeze by live migration, to another host, in the same run of its memory."""
    hosts[0].run(bare_xml("web-0", metadata=ours("freeze='migrate'")))
    hosts[0].connection.lookupByName("web-0").setAutostart(1)
    fabric = fabrics.start()

    fabric.begin(FREEZE)
    wait_until_over(fabric, FREEZE)

    assert fabric.observe(FREEZE) == Report(Progress.DONE)
    assert (hosts[0].names(), hosts[1].names()) == ([], ["web-0"])
    moved = hosts[1].connection.lookupByName("web-0")
    # What libvirt's own migration forgets is remembered.
    assert (moved.isPersistent(), moved.autostart()) == (1, 1)
    assert hosts[0].connection.listAllDomains() == []


def test_a_daemon_that_dies_in_the_middle_is_waited_for_and_the_order_finished_once(
    fabric: LibvirtFabric, hosts: tuple[QemuHost, QemuHost]
) -> None:
    order = replace(FREEZE, duration=timedelta(seconds=2))
    fabric.begin(order)
    wait_until(lambda: _state(hosts[0]) == libvirt.VIR_DOMAIN_PAUSED)

    hosts[0].kill()
    wait_until(lambda: _is_away(fabric, order))
    hosts[0].start()

    wait_until_over(fabric, order)
    assert fabric.observe(order) == Report(Progress.DONE)
    assert _state(hosts[0]) == libvirt.VIR_DOMAIN_RUNNING
    assert fabric.troubles == ()


def test_a_daemon_that_hangs_keeps_nobody_waiting(
    fabric: LibvirtFabric, hosts: tuple[QemuHost, QemuHost]
) -> None:
    """Keeps N3: what guests are told does not wait for a hypervisor."""
    hosts[0].hang()
    try:
        wait_until(lambda: any(hosts[0].name in line for line in fabric.troubles))
        with pytest.raises(Unavailable):
            fabric.begin(FREEZE)
        assert len(fabric.census()) == 1
    finally:
        hosts[0].go_on()

    wait_until(lambda: fabric.troubles == ())
    fabric.begin(FREEZE)
    wait_until_over(fabric, FREEZE)
    assert fabric.observe(FREEZE) == Report(Progress.DONE)


def _state(host: QemuHost) -> int:
    state: int = host.connection.lookupByName("web-0").state()[0]
    return state


def _is_away(fabric: LibvirtFabric, order: Order) -> bool:
    try:
        fabric.observe(order)
    except Unavailable:
        return True
    return False
