"""What is to be run, from what is wanted and what is found: values in, commands out."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from forewarn.errors import Refused
from forewarn.networks import filters, plans
from forewarn.networks.links import ENDPOINT, TAP_MAC, Bridge, Guest, Network
from forewarn.networks.plans import Command
from forewarn.networks.surveys import (
    Address,
    Device,
    Route,
    Survey,
    parse_devices,
    parse_routes,
)

WEB_0 = Guest("tap-web-0", "52:54:00:77:00:11", ("10.77.0.11",))
DB = Guest("vnet0", "52:54:00:77:00:21", ("10.77.1.21",))
TAPS = Network(taps=(WEB_0,))
BRIDGED = Network(bridges=(Bridge("br0", (DB,)),))
BR0 = Device(name="br0", kind="bridge", mac="52:54:00:00:00:01", is_up=True)
VNET0 = Device(name="vnet0", kind="tun", master="br0", is_up=True)
READY = Device(
    name="tap-web-0",
    kind="tun",
    mac=TAP_MAC,
    alias=plans.MADE,
    is_up=True,
    addresses=(Address(ENDPOINT, 32, "10.77.0.11"),),
    rp_filter=1,
)


def survey(*devices: Device, routes: tuple[Route, ...] = (), **tables: str) -> Survey:
    return Survey({device.name: device for device in devices}, routes, tables)


def ready(network: Network, *devices: Device, routes: tuple[Route, ...] = ()) -> Survey:
    return survey(*devices, routes=routes, **filters.tables(network))


def lines(commands: tuple[Command, ...]) -> list[str]:
    """What `ip` is told."""
    return [line for one in commands if one.words[0] == "ip" for line in one.told.splitlines()]


def test_a_tap_is_made_after_the_filters_stand() -> None:
    commands = plans.prepare(TAPS, survey())

    assert [command.words for command in commands] == [
        ("nft", "-f", "-"),
        ("ip", "-batch", "-"),
        ("sysctl", "-q", "-w", "net/ipv4/conf/tap-web-0/rp_filter=1"),
    ]
    assert lines(commands) == [
        "tuntap add dev tap-web-0 mode tap",
        "link set dev tap-web-0 alias forewarn:made",
        "link set dev tap-web-0 address 02:00:a9:fe:a9:fe",
        "address add 169.254.169.254 peer 10.77.0.11/32 dev tap-web-0",
        "link set dev tap-web-0 up",
    ]


def test_a_host_that_is_as_wanted_is_left_alone() -> None:
    assert plans.prepare(TAPS, ready(TAPS, READY)) == ()


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (replace(READY, mac="52:54:00:00:00:09"), "link set dev tap-web-0 address 02:00:a9:fe:a9:fe"),
        (replace(READY, is_up=False), "link set dev tap-web-0 up"),
        (
            replace(READY, addresses=()),
            "address add 169.254.169.254 peer 10.77.0.11/32 dev tap-web-0",
        ),
        (
            replace(READY, addresses=(*READY.addresses, Address(ENDPOINT, 32, "10.77.0.99"))),
            "address delete 169.254.169.254 peer 10.77.0.99/32 dev tap-web-0",
        ),
    ],
)  # fmt: skip
def test_what_went_astray_is_put_right_alone(found: Device, line: str) -> None:
    commands = plans.prepare(TAPS, ready(TAPS, found))

    assert lines(commands) == [line]
    assert len(commands) == 1


def test_strictness_that_was_lost_is_restored() -> None:
    commands = plans.prepare(TAPS, ready(TAPS, replace(READY, rp_filter=2)))

    assert commands == (Command(("sysctl", "-q", "-w", "net/ipv4/conf/tap-web-0/rp_filter=1")),)


def test_rules_that_somebody_changed_are_replaced_whole() -> None:
    found = ready(TAPS, READY)
    listed = found.tables["inet"].replace("10.77.0.11", "10.77.0.12")

    (command,) = plans.prepare(TAPS, replace(found, tables={"inet": listed}))

    assert command.words == ("nft", "-f", "-")
    assert command.told.startswith("table inet forewarn\ndelete table inet forewarn\n")
    assert '"tap-web-0" . 52:54:00:77:00:11 . 10.77.0.11' in command.told


def test_the_order_in_which_rules_name_guests_means_nothing() -> None:
    two = Network(taps=(WEB_0, Guest("tap1", "52:54:00:77:00:12", ("10.77.0.12",))))
    turned = Network(taps=tuple(reversed(two.taps)))

    assert filters.is_same(filters.tables(two)["inet"], filters.tables(turned)["inet"])


def test_a_device_that_was_there_remembers_what_it_was_like() -> None:
    before = Device(name="tap-web-0", kind="tun", mac="52:54:00:00:00:09", rp_filter=2)

    commands = plans.prepare(TAPS, survey(before))

    mark = "forewarn:mac=52:54:00:00:00:09,rp_filter=2,down"
    assert lines(commands)[0] == f"link set dev tap-web-0 alias {mark}"
    after = replace(READY, alias=mark)
    back = plans.unprepare(ready(TAPS, after))
    assert lines(back) == [
        "address delete 169.254.169.254 peer 10.77.0.11/32 dev tap-web-0",
        "link set dev tap-web-0 address 52:54:00:00:00:09",
        "link set dev tap-web-0 down",
        "link set dev tap-web-0 alias ''",
    ]
    assert back[1].words[-1] == "net/ipv4/conf/tap-web-0/rp_filter=2"
    assert back[-1].words[0] == "nft"


def test_what_was_made_is_removed_before_the_filters_fall() -> None:
    commands = plans.unprepare(ready(TAPS, READY))

    assert [command.words[0] for command in commands] == ["ip", "nft"]
    assert lines(commands) == ["link delete dev tap-web-0"]
    assert commands[-1].told == "table inet forewarn\ndelete table inet forewarn\n"


def test_a_host_that_was_never_prepared_has_nothing_to_lose() -> None:
    somebodys = Device(name="lo", addresses=(Address(ENDPOINT, 32),))

    assert plans.unprepare(survey(BR0, somebodys)) == ()


def test_a_link_that_left_the_file_is_taken_away() -> None:
    other = replace(READY, name="tap-gone", addresses=())

    assert lines(plans.prepare(TAPS, ready(TAPS, READY, other))) == ["link delete dev tap-gone"]


def test_other_endpoints_are_taken_away_too() -> None:
    """What was told to prepare is read from its rules: unprepare needs no file."""
    network = Network(endpoints=("168.63.129.16",), taps=(WEB_0,))
    device = replace(
        READY, alias="forewarn:rp_filter=0", addresses=(Address("168.63.129.16", 32, "10.77.0.11"),)
    )

    commands = plans.unprepare(ready(network, device))

    assert "address delete 168.63.129.16 peer 10.77.0.11/32 dev tap-web-0" in lines(commands)


def test_a_bridge_gets_the_address_beside_its_own_and_ways_to_its_guests() -> None:
    commands = plans.prepare(BRIDGED, survey(BR0, VNET0))

    assert lines(commands) == [
        "link set dev br0 alias forewarn:rp_filter=0",
        "address add 169.254.169.254/32 dev br0",
        "route add 10.77.1.21 dev br0 proto 245",
    ]
    assert "table bridge forewarn {" in commands[0].told


def test_a_way_that_is_there_already_is_not_made_again() -> None:
    whole = (Route(IPv4Network("10.77.1.0/24"), "br0", "kernel"),)

    commands = plans.prepare(BRIDGED, survey(BR0, VNET0, routes=whole))

    assert not any(line.startswith("route") for line in lines(commands))


def test_ways_to_guests_that_left_are_taken_away() -> None:
    marked = replace(
        BR0, alias="forewarn:rp_filter=0", addresses=(Address(ENDPOINT, 32),), rp_filter=1
    )
    routes = (
        Route(IPv4Network("10.77.1.21/32"), "br0", "245"),
        Route(IPv4Network("10.77.1.22/32"), "br0", "245"),
        Route(IPv4Network("10.77.1.23/32"), "br0", "static"),
    )

    commands = plans.prepare(BRIDGED, ready(BRIDGED, marked, VNET0, routes=routes))

    assert lines(commands) == ["route delete 10.77.1.22 dev br0 proto 245"]


@pytest.mark.parametrize(
    ("network", "found", "says", "next_step"),
    [
        (BRIDGED, survey(), "no bridge br0", "ip link add br0 type bridge"),
        (BRIDGED, survey(replace(BR0, kind="veth")), "no bridge", "[[tap]]"),
        (
            BRIDGED,
            survey(BR0, replace(VNET0, master="")),
            "no port of br0",
            "ip link set dev vnet0 master br0",
        ),
        (TAPS, survey(replace(READY, master="br9")), "a port of br9", "nomaster"),
        (TAPS, survey(replace(READY, kind="bridge")), "is a bridge", "[[bridge]]"),
        (TAPS, survey(replace(READY, alias="mine")), "the alias 'mine'", "alias ''"),
        (TAPS, survey(Device(name="tap-web-0")), "no virtual device", "give another name"),
        (
            TAPS,
            survey(READY, routes=(Route(IPv4Network("0.0.0.0/0"), "tap-web-0"),)),
            "this host's own way out",
            "give another name",
        ),
        (
            TAPS,
            survey(Device(name="lo", addresses=(Address(ENDPOINT, 32),))),
            "lo has 169.254.169.254 already",
            "ip address del 169.254.169.254/32 dev lo",
        ),
        (
            TAPS,
            survey(routes=(Route(IPv4Network("169.254.169.254/32"), "eth0"),)),
            "this host itself asks 169.254.169.254",
            "ip route del 169.254.169.254 dev eth0",
        ),
        (
            Network(),
            ready(TAPS, replace(READY, has_carrier=True)),
            "tap-web-0 is in use",
            "stop its VM first",
        ),
    ],
)
def test_a_refusal_says_the_next_step(
    network: Network, found: Survey, says: str, next_step: str
) -> None:
    with pytest.raises(Refused) as refused:
        plans.prepare(network, found)

    assert says in str(refused.value)
    assert next_step in str(refused.value)


def test_notes_tell_what_is_not_in_the_way() -> None:
    notes = plans.notes(BRIDGED, survey(BR0), plans.LOOSE)

    assert [note.split(",")[0] for note in notes] == ["vnet0", "net.ipv4.conf.all.rp_filter is 2 (loose)"]  # fmt: skip
    assert plans.notes(BRIDGED, survey(BR0, VNET0), plans.STRICT) == ()


def test_a_command_is_spelled_as_a_shell_takes_it() -> None:
    assert Command(("ip", "link", "set", "x y")).spelled == "ip link set 'x y'"
    assert Command(("nft", "-f", "-"), "a\n").spelled == "nft -f - <<'END'\na\nEND"


def test_what_ip_says_is_understood() -> None:
    listing = """[{}, {"ifname": "eth0", "flags": ["UP", "LOWER_UP"], "address": "52:54:00:00:00:01",
        "master": "br0", "ifalias": "x", "linkinfo": {"info_kind": "tun"}, "addr_info": [
        {"family": "inet", "local": "10.0.0.1", "prefixlen": 24},
        {"family": "inet6", "local": "::1", "prefixlen": 128}]}]"""

    devices = parse_devices(listing, {"eth0": 2})
    routes = parse_routes(
        '[{"dst": "default", "dev": "eth0"}, {"dst": "10.1.0.1", "dev": "eth1", "protocol": 245},'
        ' {"dst": "10.2.0.0/16", "nexthops": []}]'
    )

    assert devices == {
        "eth0": Device(
            name="eth0",
            kind="tun",
            mac="52:54:00:00:00:01",
            alias="x",
            master="br0",
            is_up=True,
            has_carrier=True,
            addresses=(Address("10.0.0.1", 24),),
            rp_filter=2,
        )
    }
    assert routes == (
        Route(IPv4Network("0.0.0.0/0"), "eth0"),
        Route(IPv4Network("10.1.0.1/32"), "eth1", "245"),
    )
    assert not Survey(routes=routes).reaches("10.9.9.9", "eth0")
