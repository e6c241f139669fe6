"""The libvirt fabric when somebody else has a hand in it: starts what was stopped, moves it, breaks it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

libvirt = pytest.importorskip(
    "libvirt", reason="libvirt-python is not installed: pip install libvirt-python"
)

from forewarn.clocks import SystemClock
from forewarn.core.events import EventType
from forewarn.core.names import EventId, HostName, MachineName, ScopeId
from forewarn.core.orders import Order, Progress, Report
from forewarn.errors import Refused, Unavailable
from forewarn.fabrics.libvirt.dockets import Docket, Dockets, Step
from forewarn.fabrics.libvirt.fabric import LibvirtFabric
from forewarn.fabrics.libvirt.link import Link
from forewarn.fabrics.libvirt.plans import PLANS
from forewarn.fabrics.libvirt.pursuits import Pursuit
from forewarn.testing.hypervisors import (
    HASTE,
    Fabrics,
    Feelings,
    PretendedHost,
    Threads,
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
XML = domain_xml(
    "web-0",
    metadata=ours("scope='web' group='rg1'", "<forewarn:ephemeral disk='vdb'/>"),
    devices=DISKS,
)
VOLUME = (
    "<volume><name>web-0.img</name><capacity>10485760</capacity><allocation>0</allocation></volume>"
)
FILLED = VOLUME.replace("<allocation>0<", "<allocation>7340032<")
POOL = "<pool type='dir'><name>pool</name><target><path>/pool</path></target>{}</pool>"


class Hosts:
    """Three of them; the machine runs on the first."""

    def __init__(self, directory: Path, feelings: Feelings) -> None:
        self.a = PretendedHost(directory, "host-a", XML, POOL.format(FILLED))
        self.b = PretendedHost(directory, "host-b", POOL.format(""))
        self.c = PretendedHost(directory, "host-c", POOL.format(""))
        self.all = (self.a, self.b, self.c)
        for host in self.all:
            feelings.attach(host.connection)

    def running(self) -> list[list[str]]:
        return [host.names() for host in self.all]

    def move_by_hand(self) -> None:
        """What somebody else's migration leaves behind."""
        domain = self.a.domain("web-0")
        domain.destroy()
        domain.undefine()
        self.c.connection.defineXML(XML).create()


@pytest.fixture
def feelings() -> Feelings:
    return Feelings()


@pytest.fixture
def hosts(tmp_path: Path, feelings: Feelings) -> Hosts:
    return Hosts(tmp_path, feelings)


@pytest.fixture
def fabrics(tmp_path: Path, hosts: Hosts) -> Iterator[Fabrics]:
    made = Fabrics(tmp_path / "dockets", [host.link for host in hosts.all])
    yield made
    made.close()


def ordered(impact: EventType) -> Order:
    return Order(EventId("E1"), ScopeId("rg1/web"), WEB_0, impact, timedelta(seconds=0.2))


def left_at(directory: Path, order: Order, step: Step, *, is_persistent: bool = True) -> None:
    """Leave behind what a process does that died before this step of an order."""
    assert Dockets(directory).open(replace(left(order, step), is_persistent=is_persistent))


def left(order: Order, step: Step) -> Docket:
    """The docket of an order at a step."""
    plan = PLANS[order.impact]
    moves = order.impact is EventType.REDEPLOY
    return Docket(
        event=order.event,
        scope=order.scope,
        machine=order.machine,
        impact=order.impact,
        duration=order.duration,
        domain=uuid_of("web-0"),
        host=HostName("host-a"),
        target=HostName("host-b") if moves else None,
        number=1,
        xml=XML,
        volumes=(("/pool/web-0.img", VOLUME),) if Step.MEASURE in plan else (),
        steps=plan[plan.index(step) :],
        since=SystemClock().now(),
    )


def finished(fabrics: Fabrics, order: Order) -> tuple[LibvirtFabric, Report]:
    fabric = fabrics.start()
    wait_until_over(fabric, order)
    return fabric, fabric.observe(order)


def filled(host: PretendedHost) -> dict[str, int]:
    volumes = host.connection.storagePoolLookupByName("pool").listAllVolumes()
    return {volume.name(): volume.info()[2] for volume in volumes}


@pytest.mark.parametrize("step", [Step.DISCARD, Step.DEFINE, Step.UNDEFINE, Step.RENEW, Step.START])
def test_a_machine_that_was_started_in_the_middle_of_its_redeploy_does_not_run_twice(
    step: Step, tmp_path: Path, hosts: Hosts, fabrics: Fabrics
) -> None:
    """Its host came up again and started it; two runs would share the disks that are kept."""
    order = ordered(EventType.REDEPLOY)
    left_at(tmp_path / "dockets", order, step)
    if PLANS[order.impact].index(step) > PLANS[order.impact].index(Step.DEFINE):
        hosts.b.connection.defineXML(XML)

    _, report = finished(fabrics, order)

    assert report == Report(Progress.DONE)
    assert hosts.running() == [[], ["web-0"], []]
    assert hosts.a.connection.listAllDomains() == []
    assert filled(hosts.b) == {"web-0.img": 0}


def test_a_machine_that_was_started_in_the_middle_of_its_preemption_is_taken_down_again(
    tmp_path: Path, hosts: Hosts, fabrics: Fabrics
) -> None:
    """Its disk is not made anew under its feet."""
    order = ordered(EventType.PREEMPT)
    left_at(tmp_path / "dockets", order, Step.RENEW)

    _, report = finished(fabrics, order)

    assert report == Report(Progress.DONE)
    assert hosts.running() == [[], [], []]
    assert filled(hosts.a) == {"web-0.img": 0}


def test_a_host_that_comes_up_in_the_middle_of_a_redeploy_does_not_start_what_is_not_its_own_yet(
    hosts: Hosts,
) -> None:
    """Both hosts know it for a moment, and only one of them would start it."""
    for host in hosts.all:
        host.link.connect()
    links = {host.link.host: host.link for host in hosts.all}
    hosts.a.domain("web-0").destroy()
    docket = replace(
        left(ordered(EventType.REDEPLOY), Step.DEFINE), starts_with_host=True, steps=(Step.DEFINE,)
    )
    pursuit = Pursuit(
        docket, links.__getitem__, SystemClock(), HASTE, lambda _: None, finds=lambda *_: None
    )

    assert pursuit.look()

    assert hosts.b.domain("web-0").autostart() == 0
    for host in hosts.all:
        host.link.close()


@pytest.mark.parametrize("step", [Step.DISCARD, Step.UNDEFINE])
def test_a_machine_that_was_started_in_the_middle_of_its_end_ends_all_the_same(
    step: Step, tmp_path: Path, hosts: Hosts, fabrics: Fabrics
) -> None:
    order = ordered(EventType.TERMINATE)
    left_at(tmp_path / "dockets", order, step)

    _, report = finished(fabrics, order)

    assert report == Report(Progress.DONE)
    assert hosts.running() == [[], [], []]
    assert hosts.a.connection.listAllDomains() == []


@pytest.mark.parametrize(
    ("impact", "step"),
    [
        (EventType.TERMINATE, Step.DESTROY),
        (EventType.TERMINATE, Step.DISCARD),
        (EventType.PREEMPT, Step.DESTROY),
        (EventType.REDEPLOY, Step.STOP),
        (EventType.REDEPLOY, Step.DEFINE),
        (EventType.REDEPLOY, Step.START),
        (EventType.REBOOT, Step.STOP),
        (EventType.REBOOT, Step.START),
        (EventType.POWER_OFF, Step.STOP),
    ],
)
@pytest.mark.parametrize("is_persistent", [True, False])
def test_what_was_moved_by_hand_in_the_middle_fails_and_is_left_as_it_is(
    impact: EventType,
    step: Step,
    is_persistent: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    hosts: Hosts,
    fabrics: Fabrics,
) -> None:
    """That it is not where it was does not mean that it is off."""
    order = ordered(impact)
    hosts.move_by_hand()
    left_at(tmp_path / "dockets", order, step, is_persistent=is_persistent)

    _, report = finished(fabrics, order)

    assert report.progress is Progress.FAILED
    assert "web-0 runs on host-c, where somebody else took it" in report.detail
    assert hosts.running() == [[], [], ["web-0"]]


CRASHED = XML.replace(
    "<domain type='test'>",
    "<domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>",
).replace("</domain>", f"<test:runstate>{libvirt.VIR_DOMAIN_CRASHED}</test:runstate></domain>")


@pytest.mark.parametrize(
    ("impact", "running"),
    [
        (EventType.REBOOT, [["web-0"], []]),
        (EventType.REDEPLOY, [[], ["web-0"]]),
        (EventType.PREEMPT, [[], []]),
        (EventType.TERMINATE, [[], []]),
    ],
)
def test_a_machine_that_crashed_and_was_kept_is_not_off(
    impact: EventType, running: list[list[str]], tmp_path: Path
) -> None:
    """With <on_crash>preserve</on_crash> its process goes on to have its memory and its disks."""
    first = PretendedHost(tmp_path, "host-d", CRASHED, POOL.format(FILLED))
    other = PretendedHost(tmp_path, "host-e", POOL.format(""))
    assert first.domain("web-0").info()[0] == libvirt.VIR_DOMAIN_CRASHED
    fabrics = Fabrics(tmp_path / "crashed", [first.link, other.link])
    try:
        fabric = fabrics.start()
        fabric.begin(ordered(impact))
        wait_until_over(fabric, ordered(impact))

        assert fabric.observe(ordered(impact)) == Report(Progress.DONE)
        assert [first.names(), other.names()] == running
    finally:
        fabrics.close()


def test_a_pool_that_rests_is_at_work_for_the_moment(hosts: Hosts, fabrics: Fabrics) -> None:
    pool = hosts.a.connection.storagePoolLookupByName("pool")
    pool.destroy()
    fabric = fabrics.start()

    fabric.begin(ordered(EventType.PREEMPT))
    wait_until_over(fabric, ordered(EventType.PREEMPT))

    assert fabric.observe(ordered(EventType.PREEMPT)) == Report(Progress.DONE)
    assert pool.isActive() == 0
    assert [one.name() for one in hosts.a.connection.listAllStoragePools()] == ["pool"]


@pytest.mark.parametrize("step", [Step.DISCARD, Step.DEFINE, Step.UNDEFINE, Step.RENEW, Step.START])
@pytest.mark.parametrize("impact", [EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY])
def test_an_order_that_overtakes_a_redeploy_leaves_no_machine_down_or_without_its_disks(
    step: Step, impact: EventType, tmp_path: Path, hosts: Hosts
) -> None:
    """Hardware that fails waits for nobody."""
    plan = PLANS[EventType.REDEPLOY]
    done = plan[: plan.index(step)]
    domain = hosts.a.domain("web-0")
    domain.destroy()
    pool = hosts.a.connection.storagePoolLookupByName("pool")
    if Step.DISCARD in done:
        pool.storageVolLookupByName("web-0.img").delete()
    if Step.DEFINE in done:
        hosts.b.connection.defineXML(XML)
    if Step.UNDEFINE in done:
        domain.undefine()
    threads, dockets = Threads(), Dockets(tmp_path / "overtaken")
    links = [host.link for host in hosts.all]
    fabric = LibvirtFabric(links, dockets, SystemClock(), spawn=threads.spawn, patience=HASTE)
    fabric.start()
    wait_until(lambda: fabric.has_seen_all)
    # It stands at that step when it is overtaken: nobody goes on with it.
    assert dockets.open(left(ordered(EventType.REDEPLOY), step))
    order = replace(ordered(impact), event=EventId("E2"))

    fabric.begin(order)
    wait_until_over(fabric, order)
    fabric.stop()
    threads.join()

    assert fabric.observe(order) == Report(Progress.DONE)
    (where,) = [host for host in hosts.all if host.names()]
    assert "web-0.img" in filled(where)


class LockedLink(Link):
    """A host where somebody holds the domain for a while."""

    refusals = 0

    def resume(self, uuid: str) -> None:
        self._refuse()
        super().resume(uuid)

    def start(self, uuid: str) -> None:
        self._refuse()
        super().start(uuid)

    def _refuse(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise Refused("cannot acquire state change lock")


def looks(pursuit: Pursuit) -> bool:
    """Whether the order is over after a look; what was refused is to be tried again."""
    try:
        return pursuit.look()
    except Unavailable:
        return False


@pytest.mark.parametrize("impact", [EventType.FREEZE, EventType.REBOOT])
def test_a_machine_is_not_left_down_because_its_host_is_busy_for_a_minute(
    impact: EventType, hosts: Hosts
) -> None:
    link = LockedLink(hosts.a.link.uri, "host-a", open_connection=lambda _: hosts.a.connection)
    link.connect()
    link.refusals = 60
    pursuit = Pursuit(
        replace(left(ordered(impact), PLANS[impact][0]), duration=timedelta()),
        lambda _: link,
        SystemClock(),
        HASTE,
        lambda _: None,
        finds=lambda *_: None,
    )

    for _ in range(200):
        if looks(pursuit):
            break
    link.close()

    assert pursuit.docket.detail == ""
    assert hosts.running()[0] == ["web-0"]
    assert hosts.a.domain("web-0").state()[0] == libvirt.VIR_DOMAIN_RUNNING
