"""What each impact does to domains, over libvirt's test driver; and what becomes of it when things break."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

libvirt = pytest.importorskip(
    "libvirt", reason="libvirt-python is not installed: pip install libvirt-python"
)

from forewarn.core.events import EventType
from forewarn.core.names import EventId, HostName, MachineName, ScopeId
from forewarn.core.orders import Order, Progress, Report
from forewarn.errors import Refused
from forewarn.fabrics.libvirt.fabric import LibvirtFabric
from forewarn.testing.hypervisors import (
    Fabrics,
    Feelings,
    PretendedHost,
    domain_xml,
    ours,
    uuid_of,
    wait_until,
    wait_until_over,
)

WEB_0 = MachineName("web-0")
DISKS = (
    "<disk type='file' device='disk'><source file='/pool/os.img'/><target dev='vda'/></disk>"
    "<disk type='file' device='disk'><source file='/pool/web-0.img'/><target dev='vdb'/></disk>"
)
EPHEMERAL = ours(
    "scope='web' group='rg1' kind='availability-set'", "<forewarn:ephemeral disk='vdb'/>"
)


def pool(*files: str) -> str:
    volumes = "".join(
        f"<volume><name>{file}</name><capacity unit='MiB'>10</capacity>"
        "<allocation unit='MiB'>7</allocation></volume>"
        for file in files
    )
    return f"<pool type='dir'><name>pool</name><target><path>/pool</path></target>{volumes}</pool>"


def ordered(impact: EventType, event: str = "E1", seconds: float = 0.2) -> Order:
    return Order(EventId(event), ScopeId("rg1/web"), WEB_0, impact, timedelta(seconds=seconds))


def files(host: PretendedHost) -> dict[str, int]:
    """The files in the pool of a host, and how much is in them."""
    volumes = host.connection.storagePoolLookupByName("pool").listAllVolumes()
    return {volume.name(): volume.info()[2] for volume in volumes}


@pytest.fixture
def feelings() -> Feelings:
    return Feelings()


@pytest.fixture
def host_a(tmp_path: Path, feelings: Feelings) -> PretendedHost:
    domain = domain_xml("web-0", metadata=EPHEMERAL, devices=DISKS)
    host = PretendedHost(tmp_path, "host-a", domain, pool("os.img", "web-0.img"))
    feelings.attach(host.connection)
    return host


@pytest.fixture
def host_b(tmp_path: Path, feelings: Feelings) -> PretendedHost:
    host = PretendedHost(tmp_path, "host-b", pool("os.img"))
    feelings.attach(host.connection)
    return host


@pytest.fixture
def fabrics(tmp_path: Path, host_a: PretendedHost, host_b: PretendedHost) -> Iterator[Fabrics]:
    made = Fabrics(tmp_path / "dockets", [host_a.link, host_b.link])
    yield made
    made.close()


@pytest.fixture
def fabric(fabrics: Fabrics) -> LibvirtFabric:
    return fabrics.start()


def done(fabric: LibvirtFabric, order: Order) -> Report:
    fabric.begin(order)
    wait_until_over(fabric, order)
    return fabric.observe(order)


def host_of(fabric: LibvirtFabric) -> HostName | None:
    (declared,) = fabric.census()
    return declared.scope.machines[0].host


def test_a_freeze_pauses_and_goes_on_in_the_same_run(
    fabric: LibvirtFabric, host_a: PretendedHost, feelings: Feelings
) -> None:
    """Keeps S10: memory is untouched, since the domain is never off."""
    before = host_a.domain("web-0").ID()
    order = ordered(EventType.FREEZE)

    fabric.begin(order)
    wait_until(lambda: host_a.domain("web-0").state()[0] == libvirt.VIR_DOMAIN_PAUSED)
    wait_until_over(fabric, order)

    assert fabric.observe(order) == Report(Progress.DONE)
    assert host_a.domain("web-0").state()[0] == libvirt.VIR_DOMAIN_RUNNING
    assert host_a.domain("web-0").ID() == before
    assert feelings.count("web-0", libvirt.VIR_DOMAIN_EVENT_STOPPED) == 0


def test_a_reboot_is_another_run_on_the_same_host_with_the_same_disks(
    fabric: LibvirtFabric, host_a: PretendedHost
) -> None:
    """Keeps S10: memory that does not persist is lost."""
    before, disks = host_a.domain("web-0").ID(), files(host_a)

    assert done(fabric, ordered(EventType.REBOOT)) == Report(Progress.DONE)

    assert host_a.domain("web-0").ID() != before
    assert files(host_a) == disks


def test_a_redeploy_moves_the_machine_and_makes_its_ephemeral_disks_anew(
    fabric: LibvirtFabric, host_a: PretendedHost, host_b: PretendedHost
) -> None:
    """Keeps S10: moved to another node, ephemeral disks lost, others kept."""
    uuid = host_a.domain("web-0").UUIDString()

    assert done(fabric, ordered(EventType.REDEPLOY)) == Report(Progress.DONE)

    assert host_a.connection.listAllDomains() == []
    assert host_b.names() == ["web-0"]
    assert host_b.domain("web-0").UUIDString() == uuid
    assert files(host_a).keys() == {"os.img"}
    assert files(host_b)["web-0.img"] == 0
    assert host_of(fabric) == "host-b"


def test_who_starts_with_its_host_does_so_on_the_other_host_too(
    fabrics: Fabrics, host_a: PretendedHost, host_b: PretendedHost
) -> None:
    host_a.domain("web-0").setAutostart(1)
    fabric = fabrics.start()

    assert done(fabric, ordered(EventType.REDEPLOY)) == Report(Progress.DONE)

    assert host_b.domain("web-0").autostart() == 1


def test_a_redeploy_and_back_finds_the_first_host_again(
    fabric: LibvirtFabric, host_a: PretendedHost
) -> None:
    done(fabric, ordered(EventType.REDEPLOY))

    assert done(fabric, ordered(EventType.REDEPLOY, "E2")) == Report(Progress.DONE)

    assert host_a.names() == ["web-0"]


def test_a_preempted_machine_is_off_and_its_ephemeral_disks_are_empty(
    fabric: LibvirtFabric, host_a: PretendedHost
) -> None:
    """Keeps S10: a spot VM loses its ephemeral disks; the record of it stays."""
    assert done(fabric, ordered(EventType.PREEMPT)) == Report(Progress.DONE)

    assert host_a.names() == []
    assert host_a.domain("web-0").isActive() == 0
    assert files(host_a) == {"os.img": files(host_a)["os.img"], "web-0.img": 0}


def test_a_terminated_machine_is_forgotten_and_its_ephemeral_disks_are_deleted(
    fabric: LibvirtFabric, host_a: PretendedHost
) -> None:
    """Keeps S10: the VM is deleted."""
    assert done(fabric, ordered(EventType.TERMINATE)) == Report(Progress.DONE)

    assert host_a.connection.listAllDomains() == []
    assert files(host_a).keys() == {"os.img"}
    assert fabric.census() == ()


def test_owners_can_power_off_start_and_deallocate(
    fabric: LibvirtFabric, host_a: PretendedHost
) -> None:
    assert done(fabric, ordered(EventType.POWER_OFF, "E1")) == Report(Progress.DONE)
    assert host_a.names() == []

    assert done(fabric, ordered(EventType.START, "E2")) == Report(Progress.DONE)
    assert host_a.names() == ["web-0"]

    assert done(fabric, ordered(EventType.DEALLOCATE, "E3")) == Report(Progress.DONE)
    assert host_a.names() == []
    assert files(host_a)["web-0.img"] == 0


@pytest.mark.parametrize("impact", [EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY])
def test_what_needs_a_running_machine_is_refused_for_one_that_is_off(
    fabric: LibvirtFabric, impact: EventType
) -> None:
    done(fabric, ordered(EventType.POWER_OFF))

    with pytest.raises(Refused, match="web-0 is off on host-a"):
        fabric.begin(ordered(impact, "E2"))


def test_a_machine_that_somebody_paused_is_not_frozen(
    fabrics: Fabrics, host_a: PretendedHost
) -> None:
    """Its pause would end with ours."""
    host_a.domain("web-0").suspend()
    fabric = fabrics.start()

    with pytest.raises(Refused, match="paused already on host-a: resume it first"):
        fabric.begin(ordered(EventType.FREEZE))


def test_without_another_host_a_redeploy_is_refused_and_says_why(
    tmp_path: Path, host_a: PretendedHost
) -> None:
    alone = Fabrics(tmp_path / "alone", [host_a.link])
    fabric = alone.start()

    with pytest.raises(Refused, match=r"web-0 cannot leave host-a.*there is no other"):
        fabric.begin(ordered(EventType.REDEPLOY))

    assert host_a.names() == ["web-0"]
    alone.close()


def test_a_freeze_by_migration_needs_another_host_too(tmp_path: Path) -> None:
    domain = domain_xml("web-0", metadata=ours("scope='web' group='rg1' freeze='migrate'"))
    alone = Fabrics(tmp_path / "alone", [PretendedHost(tmp_path, "host-c", domain).link])
    fabric = alone.start()

    with pytest.raises(Refused, match="no other host can take it"):
        fabric.begin(ordered(EventType.FREEZE))

    alone.close()


def test_a_machine_is_moved_live_only_to_a_host_that_others_can_reach(
    tmp_path: Path, host_b: PretendedHost
) -> None:
    domain = domain_xml("web-0", metadata=ours("scope='web' group='rg1' freeze='migrate'"))
    host = PretendedHost(tmp_path, "host-c", domain)
    both = Fabrics(tmp_path / "both", [host.link, host_b.link])
    fabric = both.start()

    with pytest.raises(Refused, match="host host-b was given as test:///"):
        fabric.begin(ordered(EventType.FREEZE))

    assert host.names() == ["web-0"]
    both.close()


def test_a_host_that_refuses_to_move_it_live_leaves_it_where_it_is(tmp_path: Path) -> None:
    """The test driver cannot migrate, and says so."""
    domain = domain_xml("web-0", metadata=ours("scope='web' group='rg1' freeze='migrate'"))
    host = PretendedHost(tmp_path, "host-c", domain)
    other = PretendedHost(tmp_path, "host-d", uri="test+ssh://host-d/default")
    both = Fabrics(tmp_path / "both", [host.link, other.link])
    fabric = both.start()

    fabric.begin(ordered(EventType.FREEZE))
    wait_until_over(fabric, ordered(EventType.FREEZE))

    report = fabric.observe(ordered(EventType.FREEZE))
    assert report.progress is Progress.FAILED
    assert "libvirt on host-c" in report.detail
    assert host.names() == ["web-0"]
    both.close()


def test_a_machine_that_cannot_start_on_the_other_host_comes_back(
    fabric: LibvirtFabric, host_a: PretendedHost, host_b: PretendedHost
) -> None:
    """Down on both would be worse than not moved."""
    # Of the same name, and another one: the other host will not have it.
    own = host_a.domain("web-0").UUIDString()
    host_b.connection.defineXML(domain_xml("web-0").replace(own, uuid_of("namesake")))

    fabric.begin(ordered(EventType.REDEPLOY))
    wait_until_over(fabric, ordered(EventType.REDEPLOY))

    report = fabric.observe(ordered(EventType.REDEPLOY))
    assert report.progress is Progress.FAILED
    assert "it goes back to host-a" in report.detail
    assert host_a.names() == ["web-0"]
    assert files(host_a)["web-0.img"] == 0


def test_a_transient_domain_is_rebooted_and_redeployed_from_memory(
    fabrics: Fabrics, host_a: PretendedHost, host_b: PretendedHost
) -> None:
    host_a.domain("web-0").destroy()
    host_a.domain("web-0").undefine()
    host_a.connection.createXML(domain_xml("web-0", metadata=ours("scope='web' group='rg1'")))
    fabric = fabrics.start()

    assert done(fabric, ordered(EventType.REBOOT, "E1")) == Report(Progress.DONE)
    assert host_a.names() == ["web-0"]

    assert done(fabric, ordered(EventType.REDEPLOY, "E2")) == Report(Progress.DONE)
    assert host_b.names() == ["web-0"]
    assert host_b.domain("web-0").isPersistent() == 0
    assert host_a.names() == []


def test_nobody_is_placed_on_a_drained_host(
    fabric: LibvirtFabric, host_a: PretendedHost, host_b: PretendedHost
) -> None:
    """Keeps S20: a host that is to become empty is given nobody."""
    fabric.is_drained = lambda host: host == host_b.name
    with pytest.raises(Refused, match="host-b is drained"):
        fabric.begin(ordered(EventType.REDEPLOY))

    fabric.is_drained = lambda host: host == host_a.name
    assert done(fabric, ordered(EventType.REDEPLOY)) == Report(Progress.DONE)
    assert host_b.names() == ["web-0"]


def test_hosts_are_told_with_what_is_free_and_who_moves_live(
    fabric: LibvirtFabric, tmp_path: Path
) -> None:
    scope = ScopeId("rg1/web")
    assert [one.host for one in fabric.standings()] == ["host-a", "host-b"]
    assert all((one.memory_free_mib or 0) > 0 and not one.trouble for one in fabric.standings())
    assert not fabric.is_moved_live(scope, WEB_0)
    assert not fabric.is_moved_live(scope, MachineName("nobody"))

    live = domain_xml("web-0", metadata=ours("scope='web' group='rg1' freeze='migrate'"))
    other = Fabrics(tmp_path / "other", [PretendedHost(tmp_path, "host-c", live).link])
    try:
        assert other.start().is_moved_live(scope, WEB_0)
    finally:
        other.close()
