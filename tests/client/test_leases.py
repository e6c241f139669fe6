"""DHCP option 245 in what four DHCP clients leave behind, and the search for the endpoint."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.client import discovery
from forewarn.client.discovery import AZURE, Endpoint, Search, parse_endpoint
from forewarn.client.leases import fabric_address
from forewarn.errors import Malformed

WIRE_SERVER = "168.63.129.16"


def dhclient(value: str, name: str = "unknown-245") -> bytes:
    return (
        'lease {\n  interface "eth0";\n  fixed-address 10.0.0.4;\n'
        f"  option domain-name-servers 10.0.0.1;\n  option {name} {value};\n"
        "  renew 1 2030/01/01 12:00:00;\n}\n"
    ).encode("latin-1")


def networkd(value: str) -> bytes:
    return f"# This is private data. Do not parse.\nADDRESS=10.0.0.4\nOPTION_245={value}\n".encode()


def packet(*options: bytes) -> bytes:
    return bytes(236) + bytes((99, 130, 83, 99)) + b"".join(options)


ADDRESS = bytes((245, 4, 168, 63, 129, 16))


@pytest.mark.parametrize(
    "lease",
    [
        dhclient("a8:3f:81:10"),
        dhclient("A8:3F:81:10", "private-245"),
        dhclient("a8:3f:81:10", "option-245"),
        dhclient('"\\250?\\201\\020"'),
        dhclient('"\xa8?\x81\\020"'),
        dhclient("1:2:3:4") + dhclient("a8:3f:81:10"),
        networkd("a83f8110"),
        packet(bytes((53, 1, 5, 0, 0)), ADDRESS, b"\xff"),
        packet(ADDRESS),
    ],
)
def test_the_address_is_found_in_every_form(lease: bytes) -> None:
    """Keeps S2: a VM outside of a virtual network finds the endpoint by DHCP option 245."""
    assert str(fabric_address(lease)) == WIRE_SERVER


def test_a_byte_below_sixteen_may_have_one_digit() -> None:
    assert str(fabric_address(dhclient("a:0:0:1"))) == "10.0.0.1"


@pytest.mark.parametrize(
    "lease",
    [
        b"",
        b"ADDRESS=10.0.0.4\n",
        networkd("a83f81"),
        networkd("a83f811"),
        dhclient("a8:3f:81"),
        dhclient("x"),
        dhclient('"\\\\"'),
        dhclient("a8:3f:81:10", "unknown-244"),
        packet(),
        packet(b"\xff", ADDRESS),
        packet(bytes((245, 3, 1, 2, 3))),
        packet(bytes((245,))),
        packet(bytes((1, 200)), ADDRESS),
    ],
)
def test_a_lease_without_the_option_names_no_address(lease: bytes) -> None:
    assert fabric_address(lease) is None


@given(st.binary(), st.sampled_from([b"", packet(), b"OPTION_245=", b"option unknown-245 "]))
def test_no_lease_breaks_the_reader(rest: bytes, begun: bytes) -> None:
    fabric_address(begun + rest)


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("http://10.0.0.1", Endpoint("10.0.0.1")),
        ("http://10.0.0.1:8080/", Endpoint("10.0.0.1", 8080)),
        ("10.0.0.1", Endpoint("10.0.0.1")),
        ("localhost:81", Endpoint("localhost", 81)),
        (" http://[::1]:81 ", Endpoint("::1", 81)),
    ],
)
def test_an_endpoint_is_written_as_people_do(text: str, endpoint: Endpoint) -> None:
    assert parse_endpoint(text) == endpoint
    assert parse_endpoint(str(endpoint)) == endpoint


@pytest.mark.parametrize(
    "text", ["", "https://h", "http://", "http://h/metadata", "h:x", "h:99999", "http://u@h"]
)
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match="is no"):
        parse_endpoint(text)


def lease_at(root: Path, path: str, content: bytes, *, age: int) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    os.utime(file, (10_000 - age, 10_000 - age))


def test_what_was_told_counts_more_than_the_environment(tmp_path: Path) -> None:
    found = discovery.places("h:1", environment={"FOREWARN_ENDPOINT": "http://h:2"}, root=tmp_path)

    assert found == (Endpoint("h", 1),)


@pytest.mark.parametrize("name", ["FOREWARN_ENDPOINT", "SCHEDULEDEVENTSIP"])
def test_the_environment_counts_more_than_azures_address(tmp_path: Path, name: str) -> None:
    assert discovery.places(environment={name: "h:2"}, root=tmp_path) == (Endpoint("h", 2),)


def test_an_empty_variable_says_nothing(tmp_path: Path) -> None:
    assert discovery.places(environment={"FOREWARN_ENDPOINT": ""}, root=tmp_path) == (AZURE,)


def test_leases_are_tried_after_azures_address_the_newest_first(tmp_path: Path) -> None:
    """Keeps S2."""
    lease_at(tmp_path, "run/systemd/netif/leases/2", networkd("0a000001"), age=3)
    lease_at(tmp_path, "var/lib/dhcp/dhclient.eth0.leases", dhclient("a:0:0:2"), age=2)
    lease_at(tmp_path, "var/lib/NetworkManager/dhclient-x-eth0.lease", dhclient("a:0:0:3"), age=1)
    lease_at(tmp_path, "var/lib/NetworkManager/internal-x-eth0.lease", b"ADDRESS=10.0.0.4\n", age=0)
    lease_at(tmp_path, "var/lib/dhclient/eth0.lease", dhclient("a:0:0:3"), age=5)
    lease_at(tmp_path, "var/lib/dhcpcd/eth0.lease", packet(bytes((245, 4, 10, 0, 0, 4))), age=4)
    lease_at(tmp_path, "var/lib/dhcpcd5/dhcpcd-eth1.lease", networkd("a9fea9fe"), age=6)
    (tmp_path / "var/lib/dhclient/away.lease").symlink_to("nowhere")

    found = discovery.places(environment={}, root=tmp_path)

    assert [place.host for place in found] == [
        AZURE.host,
        "10.0.0.3",
        "10.0.0.2",
        "10.0.0.1",
        "10.0.0.4",
    ]


def test_places_are_tried_in_turn_until_one_answers() -> None:
    search = Search((Endpoint("a"), Endpoint("b")))

    assert search.is_exhausted
    second = search.after(is_well=False)
    assert second.endpoint == Endpoint("b")
    assert not second.is_exhausted
    assert second.after(is_well=False).is_exhausted
    found = second.after(is_well=True)
    assert found.after(is_well=False).endpoint == Endpoint("b")
    assert not found.is_exhausted


def test_this_process_looks_at_its_own_environment() -> None:
    assert discovery.places("h") == (Endpoint("h"),)
    assert discovery.places()[0].host
