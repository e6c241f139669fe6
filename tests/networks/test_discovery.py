"""Guests that learn where the endpoint is by DHCP option 245, with clients of other people's making."""

from __future__ import annotations

import os
import shutil
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from forewarn.testing.networks import Namespace, NamespaceGuest, guest_at
from forewarn.testing.processes import ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.namespaces]

WITH_BUSYBOX = pytest.mark.skipif(
    shutil.which("busybox") is None, reason="no busybox here: apt-get install busybox"
)
ENDPOINT = "168.63.129.16"
FLEET = """
[[scope]]
name = "service"
kind = "cloud-service"
enabled = "always"
  [[scope.machine]]
  name = "role-0"
  address = "10.77.1.21"
"""
NETWORK = f"""
endpoint = "{ENDPOINT}"
[[bridge]]
device = "br0"
dhcp_245 = "{ENDPOINT}"
port_8080 = true
  [[bridge.port]]
  device = "role-0"
  mac = "52:54:00:77:00:21"
  address = "10.77.1.21"
"""
# What udhcpc calls with what it was told, in its environment.
SCRIPT = """#!/bin/sh
[ "$1" = bound ] || exit 0
ip address add "$ip/$mask" dev "$interface"
ip route add {endpoint} dev "$interface"
env > {told}
"""


@dataclass(frozen=True)
class Office:
    """A host without a virtual network, and a guest of it that has no address yet."""

    host: Namespace
    guest: NamespaceGuest
    service: ServiceProcess
    file: Path


def office(stack: ExitStack, folder: Path, network: str) -> Office:
    host = stack.enter_context(Namespace())
    host.ip("link set lo up", "link add br0 type bridge")
    guest = guest_at(host, "role-0", "52:54:00:77:00:21", "10.77.1.21")
    stack.enter_context(guest)
    guest.ip("address flush dev eth0")
    host.ip("link set role-0 master br0")
    file = folder / "network.toml"
    file.write_text(network)
    done = host.forewarn("host", "prepare", str(file))
    assert done.returncode == 0, done.stderr
    options = ("--network", str(file))
    service = ServiceProcess(folder / "data", FLEET, *options, inside=tuple(host.inside))
    return Office(host, guest, stack.enter_context(service), file)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Office]:
    with ExitStack() as stack:
        yield office(stack, tmp_path, NETWORK)


def ask_as_the_sample_does(guest: NamespaceGuest, seconds_max: float) -> bytes | None:
    """The endpoint's address as the old sample for Linux finds it out; None if nobody says."""
    card = bytes.fromhex(guest.mac.replace(":", ""))
    asked = bytearray(244)
    asked[0:3], asked[4:8], asked[0x0A] = b"\x01\x01\x06", os.urandom(4), 0x80
    asked[0x1C:0x22], asked[0xEC:0xF4] = card, b"\x63\x82\x53\x63\x35\x01\x01\xff"
    with guest.do(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as asking:
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        asking.bind(("0.0.0.0", 68))
        asking.settimeout(seconds_max)
        asking.sendto(asked, ("255.255.255.255", 67))
        try:
            said = asking.recv(1024)
        except TimeoutError:
            return None
    assert len(said) >= 0xF6
    assert said[4:8] == asked[4:8]
    assert (said[0xEC:0xF0], said[0x1C:0x22]) == (b"\x63\x82\x53\x63", card)
    at = 0xF0
    while said[at] != 245:
        at += 2 + said[at + 1]
    return said[at + 2 : at + 6]


def test_the_sample_finds_the_endpoint_and_both_its_ports(opened: Office) -> None:
    """Keeps S2: option 245 leads to the endpoint, at port 80, and at 8080 where another sample asks."""
    guest = opened.guest
    guest.speak_from("10.77.1.21", ENDPOINT)
    guest.ip("route add default dev eth0")

    found = ask_as_the_sample_does(guest, 10)

    assert found == socket.inet_aton(ENDPOINT)
    for port in (80, 8080):
        reply = guest.get(endpoint=ENDPOINT, port=port)
        assert reply is not None
        assert reply.status == 200


@WITH_BUSYBOX
def test_a_client_without_an_address_gets_its_own_and_the_endpoint(
    opened: Office, tmp_path: Path
) -> None:
    """Keeps S2, with busybox's client: discover, offer, request, acknowledgment."""
    script, told = tmp_path / "script", tmp_path / "told"
    script.write_text(SCRIPT.format(endpoint=ENDPOINT, told=told))
    script.chmod(0o755)

    opened.guest.tell(
        *("busybox", "udhcpc", "-i", "eth0", "-f", "-n", "-q", "-t", "10", "-T", "1"),
        *("-O", "0xf5", "-s", str(script)),
    )

    words = dict(line.split("=", 1) for line in told.read_text().splitlines())
    assert (words["ip"], words["serverid"]) == ("10.77.1.21", ENDPOINT)
    assert words["opt245"] == socket.inet_aton(ENDPOINT).hex()
    reply = opened.guest.get(endpoint=ENDPOINT)
    assert reply is not None
    assert reply.status == 200


@WITH_BUSYBOX
def test_who_does_not_ask_for_it_is_left_to_other_servers(opened: Office) -> None:
    done = opened.guest.run(
        *("busybox", "udhcpc", "-i", "eth0", "-f", "-n", "-q", "-t", "2", "-T", "1"),
        *("-s", "/bin/true"),
    )

    assert done.returncode == 1
    assert "no lease" in done.stderr


def test_it_is_off_unless_it_is_asked_for(tmp_path: Path) -> None:
    quiet = NETWORK.replace(f'dhcp_245 = "{ENDPOINT}"\n', "").replace("port_8080 = true\n", "")
    with ExitStack() as stack:
        place = office(stack, tmp_path, quiet)
        place.guest.speak_from("10.77.1.21", ENDPOINT)
        place.guest.ip("route add default dev eth0")

        assert ask_as_the_sample_does(place.guest, 1.5) is None
        assert place.guest.get(endpoint=ENDPOINT) is not None
        assert place.guest.get(endpoint=ENDPOINT, port=8080) is None


def test_a_guest_that_lies_about_its_card_is_told_nothing(opened: Office) -> None:
    guest = opened.guest
    guest.take_card("52:54:00:77:00:99")
    guest.speak_from("10.77.1.21", ENDPOINT)
    guest.ip("route add default dev eth0")

    assert ask_as_the_sample_does(guest, 1.5) is None


def test_another_server_is_told_of(opened: Office, tmp_path: Path) -> None:
    """Two that answer on one bridge would not know of each other; the second one says so."""
    second = ServiceProcess(
        tmp_path / "second",
        FLEET,
        *("--network", str(opened.file)),
        inside=tuple(opened.host.inside),
    )
    with second:
        log = second.log.read_text()

    assert "cannot answer DHCP on br0" in log
    assert "another process listens there" in log


def test_a_renewal_is_answered_to_the_guest_alone(opened: Office) -> None:
    guest = opened.guest
    guest.speak_from("10.77.1.21", ENDPOINT)
    head = (
        struct.pack("!BBBBIHH", 1, 1, 6, 0, 77, 0, 0) + socket.inet_aton("10.77.1.21") + bytes(12)
    )
    card = bytes.fromhex(guest.mac.replace(":", "")).ljust(16, b"\0")
    datagram = head + card + bytes(192) + b"\x63\x82\x53\x63\x35\x01\x03\x37\x01\xf5\xff"
    with guest.do(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as asking:
        asking.bind(("10.77.1.21", 68))
        asking.settimeout(10)
        asking.sendto(datagram, (ENDPOINT, 67))

        said, sender = asking.recvfrom(1024)

    assert sender[1] == 67
    assert said[16:20] == socket.inet_aton("10.77.1.21")
