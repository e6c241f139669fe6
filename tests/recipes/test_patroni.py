"""Failing over a real PostgreSQL under Patroni: whoever writes all the while finds every row that was acknowledged."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.recipes.clusters import POSTGRES, DatabaseVm, Etcd, Writer
from tests.recipes.machines import A_DAY, PATIENCE_SECONDS, Vm, subnet, wait_until
from tests.recipes.pages import Page

from forewarn.testing.scheduled_events import ScheduledEvents

pytestmark = [
    pytest.mark.recipes,
    pytest.mark.daemons("patroni", "etcd", str(POSTGRES / "postgres")),
    pytest.mark.scheduled_events(vms=["db-0", "db-1"]),
]

PAGE: Final = Page("patroni")
A_FEW: Final = 10


class Cluster:
    """Two members, of which the first leads."""

    def __init__(self, folder: Path, net: str, events: ScheduledEvents) -> None:
        self.etcd = Etcd("etcd", folder, net=net, host=2)
        self.primary, self.replica = self.members = [
            DatabaseVm(name, folder, net=net, host=4 + number, url=events.url_of(name))
            for number, name in enumerate(("db-0", "db-1"))
        ]

    def start(self) -> None:
        self.etcd.start_etcd()
        for member, is_so in ((self.primary, "/read-write"), (self.replica, "/replica")):
            member.start_member(self.etcd.address, is_so)

    def install(self) -> None:
        """Do as the page says on each member, of which the second has another address."""
        for member in self.members:
            text = PAGE.file("/etc/forewarn/patroni.toml")
            member.write(
                "/etc/forewarn/patroni.toml", text.replace("10.0.0.4:", f"{member.address}:")
            )
            member.install(PAGE)
            member.start_agent()


@pytest.fixture
def cluster(
    folder: Path, net: str, power: Callable[[Vm], None], scheduled_events: ScheduledEvents
) -> Cluster:
    cluster = Cluster(folder, net, scheduled_events)
    for vm in (*cluster.members, cluster.etcd):
        power(vm)
    cluster.start()
    cluster.install()
    return cluster


def run_hook(vm: Vm, *, seconds: float = A_DAY) -> tuple[int, str]:
    with vm.hook("prepare/50-patroni", seconds=seconds) as hook:
        _, said = hook.communicate(timeout=PATIENCE_SECONDS)
        return hook.returncode, said


def test_no_row_is_lost_when_the_primary_is_rebooted(
    cluster: Cluster,
    scheduled_events: ScheduledEvents,
    record_property: Callable[[str, object], None],
) -> None:
    with Writer(cluster.members) as writer:
        writer.go_on(A_FEW)
        # A replica's Reboot changes nothing for anybody.
        other = scheduled_events.reboot("db-1")
        wait_until(lambda: other.approved, "the replica's agent approves at once")
        assert cluster.primary.is_so("/read-write")
        scheduled_events.advance_to_next()
        writer.go_on(A_FEW)

        event = scheduled_events.reboot("db-0")
        wait_until(lambda: event.started, f"the agent approves: {cluster.primary.log('agent')}")
        assert cluster.replica.is_so("/read-write")
        cluster.primary.power_off()
        writer.go_on(A_FEW)
        cluster.primary.start_patroni()
        cluster.primary.start_agent()
        scheduled_events.advance_to_next()
        wait_until(lambda: cluster.primary.is_so("/replica"), "the old primary follows")
        writer.go_on(A_FEW)

    kept = set(map(int, writer.ask("SELECT number FROM orders").split()))
    record_property(
        "Patroni, told by the hook",
        f"{len(writer.committed)} rows acknowledged, {len(set(writer.committed) - kept)} lost",
    )
    assert set(writer.committed) <= kept
    assert (event.approved_by, event.completed, other.completed) == ("db-0", True, True)


@pytest.fixture(scope="module")
def alone() -> Iterator[DatabaseVm]:
    """A member that leads, and has nobody to hand the lead to."""
    with tempfile.TemporaryDirectory(prefix="forewarn-recipe-") as name:
        Path(name).chmod(0o755)
        net = subnet()
        etcd = Etcd("etcd", Path(name), net=net, host=2)
        member = DatabaseVm("db-0", Path(name), net=net, host=4)
        try:
            etcd.start_etcd()
            member.start_member(etcd.address, "/read-write")
            member.type(PAGE.lines[0])
            yield member
        finally:
            member.power_off()
            etcd.power_off()


def told(alone: DatabaseVm, old: str = "", new: str = "") -> DatabaseVm:
    """The member, with the page's file but for what is changed."""
    text = PAGE.file("/etc/forewarn/patroni.toml")
    assert old in text
    alone.write("/etc/forewarn/patroni.toml", text.replace(old, new))
    return alone


def test_who_has_nobody_to_hand_the_lead_to_tries_until_the_time_is_up(alone: DatabaseVm) -> None:
    ended, said = run_hook(told(alone), seconds=6)

    assert ended == 1
    assert re.match("db-0 leads still: switchover is not possible", said), said


def test_a_hook_that_is_asked_to_end_does(alone: DatabaseVm) -> None:
    before = alone.log("patroni").count("switchover")

    with told(alone).hook("prepare/50-patroni", seconds=A_DAY) as hook:
        wait_until(lambda: alone.log("patroni").count("switchover") > before, "it asks Patroni")
        hook.terminate()
        _, said = hook.communicate(timeout=PATIENCE_SECONDS)

    assert (hook.returncode, said[:12]) == (1, "asked to end"), said


def test_a_cluster_that_is_paused_is_left_to_people(alone: DatabaseVm) -> None:
    alone.pause(is_paused=True)

    try:
        ended, said = run_hook(told(alone))
    finally:
        alone.pause(is_paused=False)

    assert ended == 1
    assert re.match("db-0 leads still: .*pause", said), said


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('password = "secret"', 'password = "guessed"', "db-0 leads still: .*authenticat"),
        (":8008", ":8009", "refused"),
        ("api =", "url =", "patroni.toml: write api ="),
        ("http://", "", "patroni.toml: write api ="),
        ("10.0.0.4:8008", "10.0.0.2:2379", "is this Patroni?"),
        ("api =", "api", "patroni.toml: Expected '='"),
    ],
)
def test_a_mistake_in_its_file_is_told(
    alone: DatabaseVm, old: str, new: str, expected: str
) -> None:
    ended, said = run_hook(told(alone, old, new))

    assert ended == 1
    assert re.search(expected, said), said
    assert "Traceback" not in said
