"""What the filters let through, tried with a bare socket that would answer anybody."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from forewarn.networks.links import ENDPOINT
from forewarn.testing.networks import Namespace, NamespaceGuest, guest_at

pytestmark = [pytest.mark.end_to_end, pytest.mark.namespaces]

SECONDS_MAX = 1.0
HONEST = ("honest0", "52:54:00:77:00:11", "10.77.0.11")
LIAR = ("liar0", "52:54:00:77:00:12", "10.77.0.12")
MEMBERS = 'device = "{}"\nmac = "{}"\naddress = "{}"\n'
TAPS = "".join(f"[[tap]]\n{MEMBERS.format(*one)}" for one in (HONEST, LIAR))
BRIDGE = '[[bridge]]\ndevice = "br0"\n' + "".join(
    f"[[bridge.port]]\n{MEMBERS.format(*one)}" for one in (HONEST, LIAR)
)


@dataclass(frozen=True)
class Yard:
    """A host with two guests, and a socket at the endpoint that is on no device in particular."""

    host: Namespace
    honest: NamespaceGuest
    liar: NamespaceGuest
    is_bridged: bool


@pytest.fixture(params=[TAPS, BRIDGE], ids=["taps", "bridge"])
def yard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Yard]:
    network = request.param
    with ExitStack() as stack:
        host = stack.enter_context(Namespace())
        host.ip("link set lo up")
        honest = stack.enter_context(guest_at(host, *HONEST))
        liar = stack.enter_context(guest_at(host, *LIAR))
        if network is BRIDGE:
            ports = (f"link set {one[0]} master br0" for one in (HONEST, LIAR))
            host.ip("link add br0 type bridge", *ports)
        file = tmp_path / "network.toml"
        file.write_text(network)
        done = host.forewarn("host", "prepare", str(file))
        assert done.returncode == 0, done.stderr
        # The filters alone are tried.
        host.tell("sysctl", "-q", "-w", *(f"net/ipv4/conf/{one}/rp_filter=0" for one in devices(network)))  # fmt: skip
        endpoint = host.do(lambda: socket.create_server((ENDPOINT, 80)))
        stack.enter_context(endpoint)
        yield Yard(host, honest, liar, is_bridged=network is BRIDGE)


def devices(network: str) -> tuple[str, ...]:
    return ("br0",) if network is BRIDGE else (HONEST[0], LIAR[0])


def reaches(guest: NamespaceGuest) -> bool:
    with guest.do(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as asking:
        asking.settimeout(SECONDS_MAX)
        return asking.connect_ex((ENDPOINT, 80)) == 0


def test_the_truth_is_let_through(yard: Yard) -> None:
    assert reaches(yard.honest)
    assert reaches(yard.liar)


def test_a_neighbors_address_is_not(yard: Yard) -> None:
    """Keeps S14; a way back to the liar is there, so that only the filters are in the way."""
    yard.host.ip(f"route replace {HONEST[2]} dev {'br0' if yard.is_bridged else LIAR[0]}")
    yard.liar.speak_from(HONEST[2])

    assert not reaches(yard.liar)


def test_a_neighbors_card_is_not(yard: Yard) -> None:
    yard.liar.take_card(HONEST[1])
    yard.liar.speak_from(LIAR[2])

    assert not reaches(yard.liar)


def test_whatever_comes_in_elsewhere_is_not(yard: Yard) -> None:
    """Keeps S1: the endpoint is reached over links only."""
    with guest_at(yard.host, "uplink0", "52:54:00:77:00:99", "10.77.0.99") as stranger:
        yard.host.ip("address add 10.77.0.98 peer 10.77.0.99/32 dev uplink0")

        assert not reaches(stranger)

        yard.host.tell("nft", "delete", "table", "inet", "forewarn")
        if yard.is_bridged:
            yard.host.tell("nft", "delete", "table", "bridge", "forewarn")
        assert reaches(stranger)


def test_a_port_that_nobody_declared_is_not(yard: Yard) -> None:
    if not yard.is_bridged:
        yard.host.ip("link add br0 type bridge", "link set br0 up")
    with guest_at(yard.host, "other0", "52:54:00:77:00:99", "10.77.0.99") as stranger:
        yard.host.ip("link set other0 master br0", "route add 10.77.0.99 dev br0")

        assert not reaches(stranger)
