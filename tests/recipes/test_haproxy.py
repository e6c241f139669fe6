"""Leaving haproxy under load: a VM is killed as its Reboot starts, and who asked through haproxy notices nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from forewarn.testing.emulated_events import Event
from forewarn.testing.scheduled_events import ScheduledEvents
from tests.recipes.load import CLIENTS, Load
from tests.recipes.machines import PATIENCE_SECONDS, Vm, wait_until
from tests.recipes.pages import ROOT, Page

pytestmark = [
    pytest.mark.recipes,
    pytest.mark.daemons("haproxy", "curl"),
    pytest.mark.scheduled_events(vms=["web-0", "web-1"]),
]

PAGE: Final = Page("haproxy")
SERVERS: Final = ("web-0", "web-1")
HOOK: Final = ROOT / "docs" / "recipes" / "hooks" / "haproxy.py"
# Enough for each client to have asked several times.
A_WHILE: Final = 10 * CLIENTS


class Site:
    """haproxy, and two VMs behind it."""

    def __init__(self, folder: Path, net: str, events: ScheduledEvents) -> None:
        self.balancer = Vm("balancer", folder, net=net, host=2)
        self.vms = [
            Vm(name, folder, net=net, host=4 + number, url=events.url_of(name))
            for number, name in enumerate(SERVERS)
        ]
        self.web = self.vms[0]

    def start(self, *, number: int = 1, servers: int = 2) -> None:
        """Start haproxy, as the page has it the first or the second time, and what the VMs serve."""
        text = PAGE.file("/etc/haproxy/haproxy.cfg", number=number)
        config = self.balancer.write("/etc/haproxy/haproxy.cfg", text)
        self.balancer.start(["haproxy", "-db", "-f", config], "haproxy")
        for vm in self.vms[:servers]:
            serve(vm)

    def install(self, *, number: int = 1) -> None:
        """Do as the page says on both VMs, of which the second is called and addressed otherwise."""
        for vm in self.vms:
            if number == 1:
                text = PAGE.file("/etc/forewarn/haproxy.toml")
                vm.write("/etc/forewarn/haproxy.toml", of(vm, text))
            vm.install(PAGE, number=number)
            file = vm.path("etc/forewarn/agent.toml")
            file.write_text(of(vm, file.read_text()))
            vm.start_agent()

    def ask(self, command: str) -> str:
        """What haproxy says at its stats socket."""
        with socket.create_connection((self.balancer.address, 9999), PATIENCE_SECONDS) as line:
            line.sendall(f"{command}\n".encode())
            return b"".join(iter(lambda: line.recv(65536), b"")).decode()

    def state(self) -> str:
        """web-0, as haproxy's statistics have it."""
        header, *rows = self.ask("show stat web 4 -1").removeprefix("# ").splitlines()
        found = (dict(zip(header.split(","), row.split(","), strict=True)) for row in rows if row)
        return next(row["status"] for row in found if row["svname"] == self.web.name)

    def load(self) -> Load:
        return Load(self.balancer.address, 8080)


def of(vm: Vm, text: str) -> str:
    """What the page says of web-0, for a VM that may be another one."""
    web = vm.address.rpartition(".")[0] + ".4"
    return text.replace("web/web-0", f"web/{vm.name}").replace(f"{web}:", f"{vm.address}:")


def serve(vm: Vm) -> None:
    program = Path(__file__).with_name("backend.py")
    vm.start([sys.executable, program, vm.address, "8080", vm.name], "web")


@pytest.fixture
def site(
    folder: Path, net: str, power: Callable[[Vm], None], scheduled_events: ScheduledEvents
) -> Site:
    site = Site(folder, net, scheduled_events)
    for vm in (*site.vms, site.balancer):
        power(vm)
    return site


def hit(site: Site, load: Load, event: Event) -> None:
    """What a host does to a VM whose Reboot has started: its power goes, and comes again."""
    wait_until(lambda: event.started, f"{event} starts; {site.web.log('agent')}")
    site.web.power_off()
    load.go_on(A_WHILE)
    serve(site.web)


def test_without_the_agent_a_reboot_loses_what_the_vm_was_at(
    site: Site, scheduled_events: ScheduledEvents, record_property: Callable[[str, object], None]
) -> None:
    site.start()

    with site.load() as load:
        for name in SERVERS:
            load.go_on(A_WHILE, by=name)
        event = scheduled_events.reboot("web-0")
        load.go_on(A_WHILE)
        site.web.path("var/log/agent").touch()
        scheduled_events.advance_to(event.not_before)
        hit(site, load, event)
        scheduled_events.advance_to_next()
        load.go_on(A_WHILE, by="web-0")

    record_property("haproxy without the agent", load.summary)
    assert event.completed
    assert load.failures


def test_the_hook_has_a_reboot_lose_nothing(
    site: Site, scheduled_events: ScheduledEvents, record_property: Callable[[str, object], None]
) -> None:
    site.start()
    site.install()

    with site.load() as load:
        for name in SERVERS:
            load.go_on(A_WHILE, by=name)
        event = scheduled_events.reboot("web-0")
        wait_until(lambda: event.approved, "the agent approves")
        assert site.state() == "DRAIN"
        hit(site, load, event)
        site.web.start_agent()
        scheduled_events.advance_to_next()
        load.go_on(A_WHILE, by="web-0")

    record_property("haproxy, told by the hook", load.summary)
    assert load.failures == []
    assert (event.approved_by, event.completed, site.state()) == ("web-0", True, "UP")


def test_a_readiness_that_haproxy_asks_for_has_a_reboot_lose_nothing(
    site: Site, scheduled_events: ScheduledEvents, record_property: Callable[[str, object], None]
) -> None:
    site.start(number=2)
    site.install(number=2)

    with site.load() as load:
        for name in SERVERS:
            load.go_on(A_WHILE, by=name)
        event = scheduled_events.reboot("web-0")
        wait_until(lambda: event.approved, "the agent approves")
        hit(site, load, event)
        site.web.start_agent()
        scheduled_events.advance_to_next()
        load.go_on(A_WHILE, by="web-0")

    record_property("haproxy, asking the agent", load.summary)
    assert load.failures == []
    assert (event.approved_by, event.completed) == ("web-0", True)


def test_an_event_that_is_called_off_has_the_vm_come_back(
    site: Site, scheduled_events: ScheduledEvents
) -> None:
    site.start()
    site.install()

    with site.load() as load:
        load.go_on(A_WHILE, by="web-0")
        # A peer in the same event's way cannot be: the VM of the other is held by nobody.
        event = scheduled_events.reboot("web-0")
        wait_until(lambda: site.state() == "DRAIN", "it is drained")
        if not event.started:
            scheduled_events.cancel(event)
        else:
            scheduled_events.advance_to_next()
        load.go_on(A_WHILE, by="web-0")

    assert load.failures == []
    assert site.state() == "UP"
