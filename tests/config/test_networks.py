"""The network file, read and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from forewarn.config.networks import load_network, parse_network
from forewarn.errors import Malformed
from forewarn.networks.links import Bridge, Guest, Network
from forewarn.tables.reading import Faulty

WHOLE = """
endpoint = ["169.254.169.254", "168.63.129.16"]

[[tap]]
device = "tap-web-0"
mac = "52:54:00:77:00:11"
address = "10.77.0.11"

[[tap]]
device = "tap-web-1"
mac = "52-54-00-77-00-AB"
address = ["10.77.0.12", "10.77.0.13"]

[[bridge]]
device = "br0"
prefix = 24
dhcp_245 = "168.63.129.16"
port_8080 = true
  [[bridge.port]]
  device = "vnet0"
  mac = "52:54:00:77:00:21"
  address = "10.77.1.21"
"""


def tap(**members: str) -> str:
    usual = {"device": "tap0", "mac": "52:54:00:00:00:01", "address": "10.0.0.1"} | members
    lines = (f'{key} = "{value}"' for key, value in usual.items() if value)
    return "[[tap]]\n" + "\n".join(lines) + "\n"


def test_a_network_file_is_understood(tmp_path: Path) -> None:
    file = tmp_path / "network.toml"
    file.write_text(WHOLE)

    network = load_network(file)

    assert network == Network(
        endpoints=("169.254.169.254", "168.63.129.16"),
        taps=(
            Guest("tap-web-0", "52:54:00:77:00:11", ("10.77.0.11",)),
            Guest("tap-web-1", "52:54:00:77:00:ab", ("10.77.0.12", "10.77.0.13")),
        ),
        bridges=(
            Bridge(
                "br0",
                (Guest("vnet0", "52:54:00:77:00:21", ("10.77.1.21",)),),
                prefix=24,
                dhcp_245="168.63.129.16",
                port_8080=True,
            ),
        ),
    )
    assert network.addresses_at("br0") == ("10.77.1.21",)
    assert network.addresses_at("tap-web-1") == ("10.77.0.12", "10.77.0.13")


def test_guests_ask_the_real_address_if_nothing_else_is_said() -> None:
    assert parse_network(tap(), "n").endpoints == ("169.254.169.254",)


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        (tap(device=""), 1, "device is missing"),
        (tap(address=""), 1, "address is missing"),
        (tap(device="a/b"), 2, "no name of a device"),
        (tap(device="sixteen-letters-"), 2, "no name of a device"),
        (tap(mac="52:54:00:00:00"), 3, "no MAC address"),
        (tap(mac="01:00:5e:00:00:01"), 3, "the address of a group"),
        (tap(address="fd00::1"), 4, "no IPv4 address"),
        (tap(address="127.0.0.1"), 4, "nobody's own address"),
        (tap(address="0.0.0.0"), 4, "nobody's own address"),
        (tap(address="255.255.255.255"), 4, "nobody's own address"),
        ('[[bridge]]\ndevice = "br0"\ndhcp_245 = "10.0.0.1"\n', 3, "no address of the endpoint"),
        (tap(address="169.254.169.254"), 4, "the endpoint's own address"),
        (tap(ip="10.0.0.1"), 5, "has no member 'ip'"),
        (tap() + tap(device="tap1", mac="52:54:00:00:00:02"), 8, "10.0.0.1 was given before (line 4)"),
        (tap() + tap(device="tap1", address="10.0.0.2"), 7, "00:01 was given before (line 3)"),
        (tap() + tap(mac="52:54:00:00:00:02", address="10.0.0.2"), 6, "tap0 was given before"),
        ('[[bridge]]\ndevice = "br0"\nprefix = 33\n', 3, "out of bounds"),
        ("[[tap]\n", 1, "not TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, complaint: str) -> None:
    with pytest.raises(Faulty) as refused:
        parse_network(text, "network.toml")

    assert f"network.toml:{line}: " in str(refused.value)
    assert complaint in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(Malformed, match=r"gone\.toml: cannot be read"):
        load_network(tmp_path / "gone.toml")
