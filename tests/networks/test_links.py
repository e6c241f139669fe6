"""Devices that come and go under a service that listens on them."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from forewarn.testing.networks import Namespace, NamespaceGuest, guest_at
from forewarn.testing.processes import ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.namespaces]

FLEET = """
[[scope]]
name = "web"
kind = "availability-set"
enabled = "always"
  [[scope.machine]]
  name = "web-0"
  address = ["10.77.0.11", "10.77.0.21"]
  [[scope.machine]]
  name = "web-1"
  address = "10.77.0.12"
"""
WEB_0 = '[[tap]]\ndevice = "tap0"\nmac = "52:54:00:77:00:11"\naddress = "10.77.0.11"\n'
WEB_1 = '[[tap]]\ndevice = "tap1"\nmac = "52:54:00:77:00:12"\naddress = "10.77.0.12"\n'
SECONDS_MAX = 20


@dataclass
class Site:
    """A host whose network file can be changed."""

    host: Namespace
    file: Path
    stack: ExitStack

    def guest(self, number: int) -> NamespaceGuest:
        made = guest_at(
            self.host, f"tap{number}", f"52:54:00:77:00:1{number + 1}", f"10.77.0.1{number + 1}"
        )
        return self.stack.enter_context(made)

    def prepare(self, network: str) -> None:
        self.file.write_text(network)
        done = self.host.forewarn("host", "prepare", str(self.file))
        assert done.returncode == 0, done.stderr

    def service(self) -> ServiceProcess:
        return ServiceProcess(
            self.file.parent / "data",
            FLEET,
            *("--network", str(self.file)),
            inside=tuple(self.host.inside),
        )


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        host = stack.enter_context(Namespace())
        host.ip("link set lo up")
        yield Site(host, tmp_path / "network.toml", stack)


def eventually(name: str, ask: Callable[[], str | None]) -> None:
    until = time.monotonic() + SECONDS_MAX
    while (heard := ask()) != name:
        assert time.monotonic() < until, heard
        time.sleep(0.2)


def test_a_device_that_comes_later_is_listened_on(site: Site) -> None:
    """Keeps S1: a guest that starts after the service is answered like all others."""
    first = site.guest(0)
    site.prepare(WEB_0)
    site.file.write_text(WEB_0 + WEB_1)
    with site.service() as service:
        assert first.name == "web-0"
        assert "there is no device tap1" in service.log.read_text()

        second = site.guest(1)
        site.prepare(WEB_0 + WEB_1)

        eventually("web-1", lambda: second.name)
        assert first.name == "web-0"


def test_another_device_of_the_same_name_is_listened_on(site: Site) -> None:
    first, second = site.guest(0), site.guest(1)
    site.prepare(WEB_0 + WEB_1)
    with site.service():
        assert (first.name, second.name) == ("web-0", "web-1")

        site.host.ip("link delete dev tap1")
        again = site.guest(1)
        site.prepare(WEB_0 + WEB_1)

        eventually("web-1", lambda: again.name)
        assert first.name == "web-0"


def test_a_reload_reads_the_network_file_again(site: Site) -> None:
    first, second = site.guest(0), site.guest(1)
    site.prepare(WEB_0)
    with site.service() as service:
        site.prepare(WEB_0.replace('"10.77.0.11"', '["10.77.0.11", "10.77.0.21"]') + WEB_1)
        first.speak_from("10.77.0.21")
        assert first.name != "web-0"

        service.signal(signal.SIGHUP)

        eventually("web-1", lambda: second.name)
        eventually("web-0", lambda: first.name)


def test_a_reload_without_a_fleet_file_is_no_error(site: Site) -> None:
    first, second = site.guest(0), site.guest(1)
    site.prepare(WEB_0)
    with site.service() as service:
        service.stop()
        service.fleet.unlink()
        service.start()
        assert first.name == "web-0"
        site.prepare(WEB_0 + WEB_1)

        service.signal(signal.SIGHUP)

        eventually("web-1", lambda: second.name)
        assert "ERROR" not in service.log.read_text()


def test_a_file_with_errors_changes_nothing(site: Site) -> None:
    first = site.guest(0)
    site.prepare(WEB_0)
    with site.service() as service:
        site.file.write_text("[[tap]]\n")

        service.signal(signal.SIGHUP)

        eventually("told", lambda: "told" if "device is missing" in service.log.read_text() else "")
        assert first.name == "web-0"


def test_a_host_that_was_not_prepared_is_told_how(site: Site) -> None:
    site.file.write_text(WEB_0)

    status, said = site.service().fail_to_start()

    assert status == 3
    assert f"run `forewarn host prepare {site.file}` first" in said


@pytest.mark.parametrize(
    ("network", "options", "says"),
    [
        ("", (), "declares no links"),
        (WEB_0, ("--metadata", "169.254.169.254:80"), "is on the links"),
        (WEB_0, ("--metadata", "127.0.0.1:0%nowhere"), "no such device"),
        (WEB_0, ("--metadata", "127.0.0.1:0%no/where"), "no name of a device"),
        (WEB_0, ("--metadata", "169.254.169.254:80=web-0"), "ADDR:PORT%DEVICE=VM"),
    ],
)
def test_what_cannot_be_listened_on_is_told(
    site: Site, network: str, options: tuple[str, ...], says: str
) -> None:
    site.guest(0)
    site.prepare(WEB_0)
    site.file.write_text(network)
    service = ServiceProcess(
        site.file.parent / "data",
        FLEET,
        *("--network", str(site.file), *options),
        inside=tuple(site.host.inside),
    )

    _, said = service.fail_to_start()

    assert says in said


def test_a_listener_on_a_device_may_play_a_machine(site: Site) -> None:
    """The device alone says who calls: here two guests have the same address."""
    first = site.guest(0)
    site.prepare(WEB_0)
    second = guest_at(site.host, "twin", "52:54:00:77:00:77", "10.77.0.11")
    site.stack.enter_context(second)
    site.host.ip("address add 169.254.169.253/32 peer 10.77.0.11 dev twin metric 99")
    service = ServiceProcess(
        site.file.parent / "data",
        FLEET,
        *("--metadata", "169.254.169.254:80%tap0=web-0"),
        *("--metadata", "169.254.169.253:80%twin=web-1"),
        inside=tuple(site.host.inside),
    )
    with service:
        second.speak_from("10.77.0.11", "169.254.169.253")
        path = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"

        assert first.name == "web-0"
        reply = second.get(path, endpoint="169.254.169.253")

    assert reply is not None
    assert reply.body == b"web-1"


def test_one_service_answers_on_several_hosts_in_namespaces(tmp_path: Path) -> None:
    """A machine that moves has a device of one name on each host, and is itself on each of them."""
    with ExitStack() as stack:
        lobby, *hosts = (stack.enter_context(Namespace()) for _ in range(3))
        lobby.ip("link set lo up")
        options: list[str] = []
        guests: list[NamespaceGuest] = []
        for number, host in enumerate(hosts):
            guest = guest_at(host, "tap0", "52:54:00:77:00:11", "10.77.0.11")
            guests.append(stack.enter_context(guest))
            file = tmp_path / f"host{number}.toml"
            file.write_text(f'namespace = "{host.path}"\n{WEB_0}')
            done = lobby.forewarn("host", "prepare", str(file))
            assert done.returncode == 0, done.stderr
            options += ["--network", str(file)]
        service = ServiceProcess(tmp_path / "data", FLEET, *options, inside=tuple(lobby.inside))
        with service:
            assert [guest.name for guest in guests] == ["web-0", "web-0"]

            guests[1].speak_from("10.77.0.12")

            assert [guest.name for guest in guests] == ["web-0", None]
