"""Leaving haproxy under load: a VM is killed as its Reboot starts, and who asked through haproxy notices nothing."""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from tests.recipes.load import CLIENTS, Load
from tests.recipes.machines import A_DAY, PATIENCE_SECONDS, Vm, status, wait_until
from tests.recipes.pages import Page

from forewarn.testing.emulated_events import Event
from forewarn.testing.scheduled_events import ScheduledEvents

pytestmark = [
    pytest.mark.recipes,
    pytest.mark.daemons("haproxy", "curl"),
    pytest.mark.scheduled_events(vms=["web-0", "web-1"]),
]

PAGE: Final = Page("haproxy")
SERVERS: Final = ("web-0", "web-1")
# Enough for each client to have asked several times.
A_WHILE: Final = 10 * CLIENTS
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Site:
    """haproxy, and two VMs behind it."""

    def __init__(self, folder: Path, net: str, events: ScheduledEvents) -> None:
        self.balancer = Vm("balancer", folder, net=net, host=2)
        self.vms = [
            Vm(name, folder, net=net, host=4 + number, url=events.url_of(name))
            for number, name in enumerate(SERVERS)
        ]
        self.web = self.vms[0]
        self.socket = f"{self.balancer.address}:9999"

    def serve(self) -> None:
        for vm in self.vms:
            serve(vm)
        for vm in self.vms:
            url = f"http://{vm.address}:8080"
            # Or haproxy may have it down at first.
            wait_until(partial(answers, url), f"{vm.name} serves")

    def start(self, *, number: int = 1, instead: Mapping[str, str] = NOTHING) -> None:
        """Start what the VMs serve, and haproxy as the page has it the first or the second time."""
        self.serve()
        self.balance(number=number, instead=instead)

    def balance(self, *, number: int = 1, instead: Mapping[str, str] = NOTHING) -> None:
        """Start haproxy, and wait until it sends requests to somebody."""
        text = changed(PAGE.file("/etc/haproxy/haproxy.cfg", number=number), instead)
        config = self.balancer.write("/etc/haproxy/haproxy.cfg", text)
        self.balancer.start(["haproxy", "-db", "-f", config], "haproxy")
        wait_until(partial(answers, f"http://{self.balancer.address}:8080"), "haproxy sends to VMs")

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

    @contextmanager
    def long_request(self) -> Iterator[None]:
        """A request that web-0 is at until the end."""
        while True:
            line = http.client.HTTPConnection(self.balancer.address, 8080, PATIENCE_SECONDS)
            with closing(line):
                line.request("GET", "/long")
                if self.web.name in line.getresponse().read1().decode():
                    yield
                    return


def of(vm: Vm, text: str) -> str:
    """What the page says of web-0, for a VM that may be another one."""
    web = vm.address.rpartition(".")[0] + ".4"
    return text.replace("web/web-0", f"web/{vm.name}").replace(f"{web}:", f"{vm.address}:")


def answers(url: str) -> bool:
    return status(url, "/health") == 200


def serve(vm: Vm) -> None:
    program = Path(__file__).with_name("backend.py")
    vm.start([sys.executable, program, vm.address, "8080", vm.name], "web")


def changed(text: str, instead: Mapping[str, str]) -> str:
    for old, new in instead.items():
        assert old in text
        text = text.replace(old, new)
    return text


def start_hook(
    site: Site, phase: str, *, seconds: float = A_DAY, instead: Mapping[str, str] = NOTHING
) -> subprocess.Popen[str]:
    """Start the hook on web-0, as the agent would."""
    text = changed(PAGE.file("/etc/forewarn/haproxy.toml"), instead)
    site.web.write("/etc/forewarn/haproxy.toml", text)
    site.web.type(PAGE.lines[0])
    return site.web.hook(f"{phase}/50-haproxy", seconds=seconds)


def run_hook(
    site: Site, phase: str, *, seconds: float = A_DAY, instead: Mapping[str, str] = NOTHING
) -> subprocess.CompletedProcess[str]:
    hook = start_hook(site, phase, seconds=seconds, instead=instead)
    out, err = hook.communicate(timeout=2 * PATIENCE_SECONDS)
    return subprocess.CompletedProcess(hook.args, hook.returncode, out, err)


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
    site.serve()
    site.install(number=2)
    for vm in site.vms:
        wait_until(lambda vm=vm: vm.says("/readyz") == 200, f"{vm.name} is ready")  # type: ignore[misc]
    site.balance(number=2)

    with site.load() as load:
        for name in SERVERS:
            load.go_on(A_WHILE, by=name)
        event = scheduled_events.reboot("web-0")
        wait_until(lambda: event.approved, "the agent approves")
        assert site.web.says("/readyz") == 503
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

    with site.long_request():
        event = scheduled_events.reboot("web-0")
        wait_until(lambda: site.state() == "DRAIN", "it is drained")
        scheduled_events.cancel(event)
        wait_until(lambda: site.state() == "UP", "it is back")

    assert not event.approved


def test_who_is_still_served_is_told_when_the_time_is_up(site: Site) -> None:
    site.start()

    with site.long_request():
        done = run_hook(site, "prepare", seconds=2)

    assert done.returncode == 1
    assert done.stderr == f"there are sessions still: 1 at web/web-0 at {site.socket}\n"


def test_a_hook_that_is_asked_to_end_says_what_is_not_done(site: Site) -> None:
    site.start()

    with site.long_request():
        hook = start_hook(site, "prepare")
        wait_until(lambda: site.state() == "DRAIN", "it is drained")
        hook.terminate()
        _, said = hook.communicate(timeout=PATIENCE_SECONDS)

    assert (hook.returncode, said[:24]) == (1, "there are sessions still")


def test_what_people_have_in_maintenance_stays_there(site: Site) -> None:
    site.start()
    site.ask("set server web/web-0 state maint")

    statuses = [run_hook(site, phase).returncode for phase in ("prepare", "undo")]

    assert statuses == [70, 70]
    assert site.state() == "MAINT"


def test_a_hook_that_is_run_twice_does_the_same(site: Site) -> None:
    site.start()

    statuses = [
        run_hook(site, phase).returncode for phase in ("prepare", "prepare", "undo", "undo")
    ]

    assert statuses == [0, 0, 0, 70]
    assert site.state() == "UP"


def test_a_vm_that_does_not_serve_is_left_drained(site: Site) -> None:
    site.start()
    assert run_hook(site, "prepare").returncode == 0
    site.web.power_off()

    done = run_hook(site, "undo", seconds=2)

    assert done.returncode == 1
    assert "left drained, as this VM does not serve: curl" in done.stderr
    assert site.state().startswith(("DRAIN", "DOWN"))


@pytest.mark.parametrize(
    ("told", "instead", "said"),
    [
        ("web/web-0", "web/web-7", "web/web-7 at .* is unknown there"),
        ("web/web-0", "shop/web-0", "Can't find backend"),
        ("web/web-0", "web-0", 'write servers = \\["backend/server"\\]'),
        ("servers", "server", "write servers = "),
        ('["10.0.0.2:9999"]', '"10.0.0.2:9999"', "write haproxies = "),
        (":9999", ":9998", "haproxy at .*:9998 does not answer: .*refused"),
        ("haproxies = [", "haproxies = ", "haproxy.toml: Expected newline"),
    ],
)
def test_a_mistake_in_its_file_is_told(site: Site, told: str, instead: str, said: str) -> None:
    site.start()

    done = run_hook(site, "prepare", instead={told: instead})

    assert done.returncode == 1
    assert re.search(said, done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_a_haproxy_on_the_same_vm_is_told_by_its_unix_socket(site: Site) -> None:
    path = f"{site.balancer.root}/haproxy.sock"
    site.start(instead={"ipv4@10.0.0.2:9999": path})
    wait_until(Path(path).exists, "haproxy has its socket")

    done = run_hook(site, "prepare", instead={"10.0.0.2:9999": path})

    assert (done.returncode, done.stdout) == (0, f"web/web-0 at {path}: drained\n")


def test_the_page_shows_how_to_try_it(site: Site) -> None:
    site.start()
    site.install()

    said = site.web.type(PAGE.lines[1])

    assert said.count("50-haproxy is ready") == 2
    assert said.endswith("all is well\n")
    assert site.state() == "UP"
