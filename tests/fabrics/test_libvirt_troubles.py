"""The libvirt fabric when things break: restarts in the middle, hosts that go away, domains that vanish."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

libvirt = pytest.importorskip(
    "libvirt", reason="libvirt-python is not installed: pip install libvirt-python"
)

from forewarn.clocks import SystemClock
from forewarn.core.events import EventType
from forewarn.core.names import EventId, HostName, MachineName, ScopeId
from forewarn.core.orders import Order, Progress, Report
from forewarn.errors import Refused, Unavailable
from forewarn.fabrics.libvirt.dockets import Docket, Dockets, Step, over
from forewarn.fabrics.libvirt.link import Link
from forewarn.fabrics.libvirt.plans import PLANS
from forewarn.fabrics.libvirt.pursuits import Pursuit
from forewarn.testing.hypervisors import (
    HASTE,
    Fabrics,
    Feelings,
    PretendedHost,
    domain_xml,
    uuid_of,
    wait_until,
    wait_until_over,
)

WEB_0 = MachineName("web-0")
FREEZE = Order(
    EventId("E1"), ScopeId("default/web-0"), WEB_0, EventType.FREEZE, timedelta(seconds=0.5)
)
STARTED, STOPPED = libvirt.VIR_DOMAIN_EVENT_STARTED, libvirt.VIR_DOMAIN_EVENT_STOPPED
SUSPENDED, RESUMED = libvirt.VIR_DOMAIN_EVENT_SUSPENDED, libvirt.VIR_DOMAIN_EVENT_RESUMED


@pytest.fixture
def feelings() -> Feelings:
    return Feelings()


@pytest.fixture
def hosts(tmp_path: Path, feelings: Feelings) -> tuple[PretendedHost, PretendedHost]:
    found = (
        PretendedHost(tmp_path, "host-a", domain_xml("web-0")),
        PretendedHost(tmp_path, "host-b"),
    )
    for host in found:
        feelings.attach(host.connection)
    return found


@pytest.fixture
def fabrics(tmp_path: Path, hosts: tuple[PretendedHost, PretendedHost]) -> Iterator[Fabrics]:
    made = Fabrics(tmp_path / "dockets", [host.link for host in hosts])
    yield made
    made.close()


class _Killed(Exception):
    """The process dies here."""


def killed_after(
    hosts: tuple[PretendedHost, PretendedHost], directory: Path, order: Order, keeps: int
) -> None:
    """Carry an order out as a process does that dies before it keeps its docket for the nth time."""
    for host in hosts:
        host.link.connect()
    links = {host.link.host: host.link for host in hosts}
    dockets = Dockets(directory)
    domain = hosts[0].domain("web-0")
    moves = order.impact is EventType.REDEPLOY
    docket = Docket(
        event=order.event,
        scope=order.scope,
        machine=order.machine,
        impact=order.impact,
        duration=order.duration,
        domain=uuid_of("web-0"),
        host=HostName("host-a"),
        target=HostName("host-b") if moves else None,
        number=domain.ID(),
        xml=domain.XMLDesc(),
        steps=PLANS[order.impact],
        since=SystemClock().now(),
    )
    assert dockets.open(docket)
    left = keeps

    def keep(docket: Docket) -> None:
        nonlocal left
        if not left:
            raise _Killed
        left -= 1
        dockets.keep(docket)

    pursuit = Pursuit(docket, links.__getitem__, SystemClock(), HASTE, keep, finds=lambda *_: None)
    with pytest.raises(_Killed):
        wait_until(pursuit.look)
    for host in hosts:
        host.link.close()


IMPACTS = [
    (impact, keeps)
    for impact, plan in PLANS.items()
    if impact is not EventType.START
    for keeps in range(len(plan) + 1)
]


@pytest.mark.parametrize(("impact", "keeps"), IMPACTS)
def test_a_process_that_dies_after_any_step_is_followed_by_one_that_finishes_it_once(
    impact: EventType,
    keeps: int,
    tmp_path: Path,
    hosts: tuple[PretendedHost, PretendedHost],
    fabrics: Fabrics,
    feelings: Feelings,
) -> None:
    """Keeps S10: each really happens, and once, whoever died in between."""
    order = replace(FREEZE, impact=impact, duration=timedelta(seconds=0.1))
    killed_after(hosts, tmp_path / "dockets", order, keeps)

    fabric = fabrics.start()
    wait_until_over(fabric, order)

    assert fabric.observe(order) == Report(Progress.DONE)
    wait_until(lambda: feelings.impacts(fabric, order) == 1)
    lost = feelings.count("web-0", STOPPED)
    assert lost == (0 if impact is EventType.FREEZE else 1)
    # It is told a moment after it happened.
    wait_until(lambda: feelings.count("web-0", SUSPENDED) == feelings.count("web-0", RESUMED))


def test_what_was_done_before_a_restart_is_not_done_again(
    fabrics: Fabrics, feelings: Feelings
) -> None:
    fabric = fabrics.start()
    fabric.begin(FREEZE)
    wait_until_over(fabric, FREEZE)
    fabrics.stop()

    fabric = fabrics.start()
    fabric.begin(FREEZE)

    assert fabric.observe(FREEZE) == Report(Progress.DONE)
    assert feelings.impacts(fabric, FREEZE) == 1


def test_a_freeze_goes_on_over_a_restart_and_is_not_longer_for_it(
    fabrics: Fabrics, hosts: tuple[PretendedHost, PretendedHost], feelings: Feelings
) -> None:
    fabric = fabrics.start()
    fabric.begin(FREEZE)
    wait_until(lambda: hosts[0].domain("web-0").state()[0] == libvirt.VIR_DOMAIN_PAUSED)

    fabrics.stop()
    assert hosts[0].domain("web-0").state()[0] == libvirt.VIR_DOMAIN_PAUSED
    fabric = fabrics.start()
    wait_until_over(fabric, FREEZE)

    assert fabric.observe(FREEZE) == Report(Progress.DONE)
    assert hosts[0].domain("web-0").state()[0] == libvirt.VIR_DOMAIN_RUNNING
    assert feelings.impacts(fabric, FREEZE) == 1


def test_somebody_who_resumes_a_frozen_machine_ends_the_freeze(
    fabrics: Fabrics, hosts: tuple[PretendedHost, PretendedHost], feelings: Feelings
) -> None:
    order = replace(FREEZE, duration=timedelta(hours=1))
    fabric = fabrics.start()
    fabric.begin(order)
    wait_until(lambda: hosts[0].domain("web-0").state()[0] == libvirt.VIR_DOMAIN_PAUSED)

    hosts[0].domain("web-0").resume()

    wait_until_over(fabric, order)
    assert fabric.observe(order) == Report(Progress.DONE)
    assert feelings.impacts(fabric, order) == 1


def test_a_domain_that_vanishes_in_the_middle_fails_its_order(
    fabrics: Fabrics, hosts: tuple[PretendedHost, PretendedHost]
) -> None:
    order = replace(FREEZE, duration=timedelta(hours=1))
    fabric = fabrics.start()
    fabric.begin(order)
    wait_until(lambda: hosts[0].domain("web-0").state()[0] == libvirt.VIR_DOMAIN_PAUSED)

    domain = hosts[0].domain("web-0")
    domain.destroy()
    domain.undefine()

    wait_until_over(fabric, order)
    report = fabric.observe(order)
    assert report.progress is Progress.FAILED
    assert "host-a" in report.detail
    wait_until(lambda: fabric.census() == ())


def test_a_host_out_of_reach_is_told_and_tried_again(
    fabrics: Fabrics, hosts: tuple[PretendedHost, PretendedHost]
) -> None:
    hosts[0].go_away()
    fabric = fabrics.start(looks=False)
    wait_until(lambda: any("host-a cannot be reached" in line for line in fabric.troubles))

    with pytest.raises(Unavailable, match="host-a cannot be reached"):
        fabric.begin(FREEZE)
    with pytest.raises(Unavailable, match="not every host was seen yet"):
        fabric.census()

    hosts[0].come_back()
    wait_until(lambda: fabric.has_seen_all)
    assert fabric.troubles == ()
    fabric.begin(FREEZE)
    wait_until_over(fabric, FREEZE)
    assert fabric.observe(FREEZE) == Report(Progress.DONE)


def test_an_order_whose_host_is_away_after_a_restart_says_so_and_goes_on_later(
    fabrics: Fabrics, hosts: tuple[PretendedHost, PretendedHost]
) -> None:
    fabric = fabrics.start()
    fabric.begin(FREEZE)
    wait_until(lambda: hosts[0].domain("web-0").state()[0] == libvirt.VIR_DOMAIN_PAUSED)
    fabrics.stop()
    hosts[0].go_away()

    fabric = fabrics.start(looks=False)
    wait_until(lambda: _is_unavailable(lambda: fabric.observe(FREEZE)))
    hosts[0].come_back()

    wait_until_over(fabric, FREEZE)
    assert fabric.observe(FREEZE) == Report(Progress.DONE)
    assert hosts[0].domain("web-0").state()[0] == libvirt.VIR_DOMAIN_RUNNING


def test_a_connection_that_drops_is_made_again(tmp_path: Path) -> None:
    """The driver's default node is shared by all connections of a process."""
    opened: list[Any] = []

    def open_connection(uri: str) -> object:
        opened.append(libvirt.open(uri))
        return opened[-1]

    link = Link("test:///default", "here", open_connection=open_connection)
    fabrics = Fabrics(tmp_path / "dockets", [link])
    fabric = fabrics.start()
    order = replace(FREEZE, scope=ScopeId("default/test"), machine=MachineName("test"))

    opened[0].close()

    wait_until(lambda: len(opened) > 1)
    wait_until(lambda: fabric.troubles == ())
    fabric.begin(order)
    wait_until_over(fabric, order)
    assert fabric.observe(order) == Report(Progress.DONE)
    fabrics.close()


def test_two_hosts_of_one_name_are_told_apart_by_the_operator(tmp_path: Path) -> None:
    first = PretendedHost(tmp_path, "twin", domain_xml("web-0"))
    (tmp_path / "b").mkdir()
    second = PretendedHost(tmp_path / "b", "twin")
    fabrics = Fabrics(tmp_path / "dockets", [first.link, second.link])

    fabric = fabrics.start(looks=False)

    wait_until(lambda: any("both are host twin" in line for line in fabric.troubles))
    with pytest.raises(Unavailable):
        fabric.census()
    fabrics.close()


def test_a_later_order_for_the_same_machine_takes_the_place_of_one_under_way(
    fabrics: Fabrics, hosts: tuple[PretendedHost, PretendedHost], feelings: Feelings
) -> None:
    """A host that fails does not wait for a freeze to end."""
    freeze = replace(FREEZE, duration=timedelta(hours=1))
    reboot = replace(FREEZE, event=EventId("E2"), impact=EventType.REBOOT)
    fabric = fabrics.start()
    fabric.begin(freeze)
    wait_until(lambda: hosts[0].domain("web-0").state()[0] == libvirt.VIR_DOMAIN_PAUSED)

    fabric.begin(reboot)
    wait_until_over(fabric, reboot)

    assert fabric.observe(reboot) == Report(Progress.DONE)
    assert fabric.observe(freeze) == Report(Progress.FAILED, "overtaken by the Reboot of event E2")
    assert feelings.count("web-0", STARTED) == 1


def test_a_docket_that_cannot_be_understood_is_named(tmp_path: Path) -> None:
    (tmp_path / "E1.web-0.json").write_text("{", encoding="utf-8")

    with pytest.raises(Refused, match=r"E1\.web-0\.json cannot be understood"):
        Dockets(tmp_path)


def test_only_ended_dockets_are_forgotten_and_the_oldest_first(tmp_path: Path) -> None:
    dockets = Dockets(tmp_path, remembered_max=2)
    now = SystemClock().now()
    made = [
        Docket(
            event=EventId(f"E{number}"),
            scope=ScopeId("default/web-0"),
            machine=WEB_0,
            impact=EventType.FREEZE,
            duration=timedelta(),
            domain=uuid_of(f"{number}"),
            host=HostName("host-a"),
            steps=(Step.PAUSE,),
            since=now + timedelta(seconds=number),
        )
        for number in range(4)
    ]

    for docket in made:
        dockets.open(docket)
        if docket is not made[0]:
            dockets.keep(over(docket, now))

    kept = {docket.event for docket in Dockets(tmp_path).all().values()}
    assert kept == {"E0", "E3"}


def test_a_docket_that_cannot_be_written_begins_nothing(
    tmp_path: Path, fabrics: Fabrics, feelings: Feelings
) -> None:
    fabric = fabrics.start()
    (tmp_path / "dockets").rmdir()

    with pytest.raises(Unavailable, match="cannot be written"):
        fabric.begin(FREEZE)

    assert fabric.observe(FREEZE).progress is Progress.UNKNOWN
    assert feelings.impacts(fabric, FREEZE) == 0


def _is_unavailable(call: Callable[[], object]) -> bool:
    try:
        call()
    except Unavailable:
        return True
    return False
