"""Guests that take their neighbor's address, card, or both: on taps and on a bridge that were prepared.

Everything happens in network namespaces that the tests make: a host, and guests at its links.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from forewarn.networks.links import ENDPOINT
from forewarn.testing.networks import NO_ANSWER_SECONDS, Namespace, NamespaceGuest, guest_at
from forewarn.testing.processes import ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.namespaces]

FLEET = """
[[scope]]
name = "web"
kind = "availability-set"
enabled = "always"
  [[scope.machine]]
  name = "honest"
  address = "10.77.0.11"
  [[scope.machine]]
  name = "liar"
  address = "10.77.0.12"
"""
HONEST = ("honest0", "52:54:00:77:00:11", "10.77.0.11")
LIAR = ("liar0", "52:54:00:77:00:12", "10.77.0.12")
MEMBERS = 'device = "{}"\nmac = "{}"\naddress = "{}"\n'
TAPS = "".join(f"[[tap]]\n{MEMBERS.format(*one)}" for one in (HONEST, LIAR))
BRIDGE = '[[bridge]]\ndevice = "br0"\n' + "".join(
    f"[[bridge.port]]\n{MEMBERS.format(*one)}" for one in (HONEST, LIAR)
)


@dataclass(frozen=True)
class Town:
    """A host, two guests, and the service on the host."""

    host: Namespace
    honest: NamespaceGuest
    liar: NamespaceGuest
    service: ServiceProcess


def town(stack: ExitStack, folder: Path, network: str, *, prepared: bool = True) -> Town:
    host = stack.enter_context(Namespace())
    host.ip("link set lo up")
    honest, liar = (stack.enter_context(guest_at(host, *one)) for one in (HONEST, LIAR))
    if network is BRIDGE:
        host.ip(
            "link add br0 type bridge", "link set honest0 master br0", "link set liar0 master br0"
        )
    file = folder / "network.toml"
    file.write_text(network)
    if prepared:
        done = host.forewarn("host", "prepare", str(file))
        assert done.returncode == 0, done.stderr
    else:
        host.ip(f"address add {ENDPOINT}/32 dev br0", "link set br0 up")
        host.ip("route add 10.77.0.11 dev br0", "route add 10.77.0.12 dev br0")
    service = ServiceProcess(
        folder / "data", FLEET, "--network", str(file), inside=tuple(host.inside)
    )
    return Town(host, honest, liar, stack.enter_context(service))


@pytest.fixture(params=[TAPS, BRIDGE], ids=["taps", "bridge"])
def prepared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Town]:
    with ExitStack() as stack:
        yield town(stack, tmp_path, request.param)


def shout(guest: NamespaceGuest, address: str) -> None:
    """Tell everybody on the link, unasked, that an address is at this guest's card."""
    card = bytes.fromhex(guest.mac.replace(":", ""))
    claim = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2) + card + socket.inet_aton(address)
    frame = b"\xff" * 6 + card + b"\x08\x06" + claim + b"\xff" * 6 + socket.inet_aton(address)
    with guest.do(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)) as sending:
        sending.bind(("eth0", 0))
        for _ in range(3):
            sending.send(frame)


def answers_to_a_forged_knock(
    place: Town, tag: bytes, by: NamespaceGuest | None = None
) -> list[bytes]:
    """What the honest guest hears of a connection that somebody begins in its name."""
    knocker = by or place.liar
    links = json.loads(place.host.tell("ip", "-json", "link", "show"))
    cards = {one["ifname"]: bytes.fromhex(one["address"].replace(":", "")) for one in links}
    device = cards.get("br0", cards[knocker.device])
    frame = device + bytes.fromhex(knocker.mac.replace(":", "")) + tag + b"\x08\x00" + KNOCK
    raw = (socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    with (
        place.honest.do(lambda: socket.socket(*raw)) as hearing,
        knocker.do(lambda: socket.socket(*raw)) as sending,
    ):
        hearing.bind(("eth0", 0))
        hearing.settimeout(NO_ANSWER_SECONDS)
        sending.bind(("eth0", 0))
        sending.send(frame)
        heard: list[bytes] = []
        with suppress(TimeoutError):
            while not heard:
                heard += [one for one in (hearing.recv(2048),) if one[36:38] == KNOCK[20:22]]
        return heard


def knock(source: str) -> bytes:
    """The packet that begins a connection to the endpoint, from port 40404."""
    ends = socket.inet_aton(source) + socket.inet_aton(ENDPOINT)
    segment = struct.pack("!HHIIBBHHH", 40404, 80, 1, 0, 0x50, 2, 1024, 0, 0)
    proof = checksum(ends + struct.pack("!BBH", 0, 6, 20) + segment)
    segment = segment[:16] + proof + segment[18:]
    head = struct.pack("!BBHHHBBH", 0x45, 0, 40, 7, 0, 64, 6, 0) + ends
    return head[:10] + checksum(head) + head[12:] + segment


def checksum(data: bytes) -> bytes:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)


KNOCK = knock(HONEST[2])


def test_guests_are_who_they_are(prepared: Town) -> None:
    """Keeps S1: each guest reaches the endpoint at its real address, over its own link."""
    assert (prepared.honest.name, prepared.liar.name) == ("honest", "liar")


def test_who_takes_the_neighbors_address_is_not_answered(prepared: Town) -> None:
    """Keeps S14: nobody approves in a neighbor's name."""
    assert prepared.honest.name == "honest"

    prepared.liar.speak_from(prepared.honest.address)
    shout(prepared.liar, prepared.honest.address)

    assert prepared.liar.name is None
    assert prepared.honest.name == "honest"


def test_who_takes_the_neighbors_card_is_not_answered(prepared: Town) -> None:
    prepared.liar.take_card(prepared.honest.mac)
    prepared.liar.speak_from(prepared.liar.address)

    assert prepared.liar.name is None
    assert prepared.honest.name == "honest"


def test_who_takes_both_is_not_answered(prepared: Town) -> None:
    prepared.liar.take_card(prepared.honest.mac)
    prepared.liar.speak_from(prepared.honest.address)

    assert prepared.liar.name is None
    assert prepared.honest.name == "honest"


@pytest.mark.parametrize("tag", [b"", b"\x81\x00\x00\x00", b"\x81\x00\x20\x00"])
def test_lies_in_frames_of_their_own_making_are_not_heard(prepared: Town, tag: bytes) -> None:
    """A frame of VLAN 0 is an ordinary one to who receives it, and must be so to the filters."""
    assert not answers_to_a_forged_knock(prepared, tag)
    assert answers_to_a_forged_knock(prepared, b"", by=prepared.honest)


def test_nobody_passes_for_the_endpoint(prepared: Town) -> None:
    assert prepared.honest.name == "honest"

    shout(prepared.liar, ENDPOINT)

    assert prepared.honest.name == "honest"
    card = prepared.liar.mac
    assert card not in prepared.honest.tell("ip", "neighbor", "show", ENDPOINT)


def test_who_told_the_truth_again_is_answered_again(prepared: Town) -> None:
    prepared.liar.speak_from(prepared.honest.address)
    assert prepared.liar.name is None

    prepared.liar.speak_from(prepared.liar.address)

    assert prepared.liar.name == "liar"


def test_the_endpoint_is_reached_over_links_only(prepared: Town) -> None:
    """Keeps S1: what comes in elsewhere, even in a guest's name, is not for the endpoint."""
    with guest_at(prepared.host, "uplink0", "52:54:00:77:00:99", "10.77.0.99") as stranger:
        prepared.host.ip(
            "address add 10.77.0.98 peer 10.77.0.99/32 dev uplink0", "link set uplink0 up"
        )

        assert stranger.name is None
        stranger.speak_from(prepared.honest.address)
        assert stranger.name is None

    assert prepared.honest.name == "honest"


def test_an_undeclared_port_of_the_bridge_reaches_nothing(tmp_path: Path) -> None:
    with ExitStack() as stack:
        place = town(stack, tmp_path, BRIDGE)
        other = guest_at(place.host, "other0", "52:54:00:77:00:99", place.honest.address)
        stack.enter_context(other)
        place.host.ip("link set other0 master br0")

        shout(other, ENDPOINT)

        assert other.name is None
        assert place.honest.name == "honest"
        assert other.mac not in place.honest.tell("ip", "neighbor", "show", ENDPOINT)


@pytest.mark.parametrize("tag", [b"", b"\x81\x00\x00\x00"])
def test_frames_of_its_own_making_from_an_undeclared_port_are_not_heard(
    tmp_path: Path, tag: bytes
) -> None:
    with ExitStack() as stack:
        place = town(stack, tmp_path, BRIDGE)
        other = guest_at(place.host, "other0", "52:54:00:77:00:99", "10.77.0.99")
        stack.enter_context(other)
        place.host.ip("link set other0 master br0")
        assert place.honest.name == "honest"

        assert not answers_to_a_forged_knock(place, tag, by=other)


def test_an_undeclared_port_keeps_nobody_from_being_answered(tmp_path: Path) -> None:
    """Whoever makes the host believe that a neighbor's address is at its card hears what that is told."""
    with ExitStack() as stack:
        place = town(stack, tmp_path, BRIDGE)
        other = guest_at(place.host, "other0", "52:54:00:77:00:99", "10.77.0.99")
        stack.enter_context(other)
        place.host.ip("link set other0 master br0")
        assert place.honest.name == "honest"

        for _ in range(3):
            time.sleep(1.1)  # The kernel believes nothing new sooner.
            shout(other, place.honest.address)

        assert place.honest.name == "honest"
        assert other.mac not in place.host.tell("ip", "neighbor", "show", place.honest.address)


def test_without_filters_a_bridge_believes_everybody(tmp_path: Path) -> None:
    """Why prepare is needed; and that these tests would notice if it did nothing."""
    with ExitStack() as stack:
        place = town(stack, tmp_path, BRIDGE, prepared=False)
        assert (place.honest.name, place.liar.name) == ("honest", "liar")
        assert answers_to_a_forged_knock(place, b"")
        assert answers_to_a_forged_knock(place, b"\x81\x00\x00\x00")

        place.liar.speak_from(place.honest.address)
        shout(place.liar, place.honest.address)

        assert place.liar.name == "honest"


def test_a_listener_on_a_tap_knows_its_own_guest_only(tmp_path: Path) -> None:
    """Where the filters were taken away behind the service's back, it still does not believe a liar."""
    with ExitStack() as stack:
        place = town(stack, tmp_path, TAPS)
        place.host.tell("nft", "delete", "table", "inet", "forewarn")
        settings = [f"net/ipv4/conf/{one}/rp_filter=0" for one in ("all", "liar0", "honest0")]
        place.host.tell("sysctl", "-q", "-w", *settings)
        place.host.ip("route replace 10.77.0.11 dev liar0 src 169.254.169.254")
        place.liar.speak_from(place.honest.address)

        reply = place.liar.get()

        assert reply is not None
        assert reply.status == 403


def test_filters_alone_tell_guests_apart(tmp_path: Path) -> None:
    """A host whose rp_filter is loose for all devices, as systemd has it, is no less safe."""
    with ExitStack() as stack:
        place = town(stack, tmp_path, TAPS)
        place.host.tell("sysctl", "-q", "-w", "net/ipv4/conf/all/rp_filter=2")
        place.liar.speak_from(place.honest.address)

        again = place.host.forewarn("host", "prepare", str(tmp_path / "network.toml"))

        assert "rp_filter is 2 (loose)" in again.stderr
        assert place.liar.name is None
        assert place.honest.name == "honest"
